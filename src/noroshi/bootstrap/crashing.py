"""Settings in, the points at which a test wants the process to end out."""

from noroshi.machine.crash_points import EnvCrashPoints, NoCrashPoints
from noroshi.ports.crash_points import CrashPoints
from noroshi.settings import Settings


def crash_points(settings: Settings) -> CrashPoints:
    return EnvCrashPoints(settings.crash_at) if settings.crash_at else NoCrashPoints()
