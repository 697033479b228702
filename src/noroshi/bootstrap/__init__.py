"""Settings in, a whole Noroshi out: the only place that knows settings, flow, storage and machine together."""

from noroshi.bootstrap.back import Back, opened_back
from noroshi.bootstrap.locking import DataLock, DataLockedError
from noroshi.bootstrap.machine import Machine
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import (
    START_ERRORS,
    Opening,
    Role,
    join,
    made_ready,
    needs_postgres,
    open_noroshi,
    roll_of,
    set_up_logs,
)
from noroshi.bootstrap.playing import Play, played_shop

__all__ = [
    "START_ERRORS",
    "Back",
    "DataLock",
    "DataLockedError",
    "Machine",
    "Noroshi",
    "Opening",
    "Play",
    "Role",
    "join",
    "made_ready",
    "needs_postgres",
    "open_noroshi",
    "opened_back",
    "played_shop",
    "roll_of",
    "set_up_logs",
]
