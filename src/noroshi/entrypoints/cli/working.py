"""Working: settings and the lanes to serve in, a worker until it is told to stop, its exit code out."""

import asyncio
import signal

import structlog
import uvloop

from noroshi import __version__
from noroshi.bootstrap.opening import Role, needs_postgres, open_noroshi, set_up_logs
from noroshi.domain.channels import CHANNELS
from noroshi.domain.priorities import Priority
from noroshi.entrypoints.cli.watching import watched
from noroshi.settings import Settings, SettingsError


def read_role(channels: str | None, priorities: str | None) -> Role:
    """What `--channels email,push --priorities critical,high` ask for; left out: everything."""
    return Role(
        takes_in=False,
        channels=_named("--channels", channels, list(CHANNELS)),
        priorities=None if priorities is None else _priorities(priorities),
    )


def _priorities(text: str) -> frozenset[Priority]:
    return frozenset(map(Priority, _named("--priorities", text, list(Priority)) or ()))


def _named(option: str, text: str | None, known: list[str]) -> frozenset[str] | None:
    if text is None:
        return None
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    if not words or not words <= set(known):
        raise SettingsError(f"{option} takes {', '.join(known)}, several separated by commas, not {text!r}")
    return words


def work(settings: Settings, role: Role, metrics_port: int | None) -> int:
    if not settings.is_on_postgres:
        raise SettingsError(needs_postgres("noroshi worker"))
    set_up_logs(settings.log_level, settings.log_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_work(settings, role, metrics_port))


async def _work(settings: Settings, role: Role, metrics_port: int | None) -> int:
    """Told to stop, it claims nothing more, finishes what it is sending, and releases the rest (W26)."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    noroshi = open_noroshi(settings, is_dev=False, on_broken=stop.set, role=role)
    log = structlog.get_logger()
    async with watched(noroshi, settings.host, metrics_port):
        await noroshi.start()
        try:
            log.info("working", version=__version__, lanes=[lane.name for lane in noroshi.lanes()], port=metrics_port)
            for note in noroshi.notes():
                log.warning(note)
            await stop.wait()
        finally:
            await noroshi.stop()
    log.info("stopped", code="asked")
    return 0
