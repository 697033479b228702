"""The keeper's life: a fork of the serving process that opens the store when told, and dies with whoever began it."""

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import structlog
import uvloop

from noroshi.keeper.answering import Answering, Told
from noroshi.keeper.line import CLOSE, OPEN, Line, Notice, RemotePorts
from noroshi.keeper.methods import Method
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import DIED, EnvCrashPoints, NoCrashPoints
from noroshi.machine.sealing import AesSealer
from noroshi.ports.meter import Meter
from noroshi.ports.store import StorePorts
from noroshi.storage.sqlite.store import open_store

_PR_SET_PDEATHSIG = 1
_LOCK = "keeper.lock"

_log = structlog.get_logger(__name__)


class Order(msgspec.Struct, frozen=True):
    """What a keeper is told to open. The folder holds the lock of keepers."""

    path: str
    folder: str
    masters: dict[int, bytes]
    blind_index: bytes
    crash_at: str | None


_decode_order = msgspec.msgpack.Decoder(Order).decode


class Keeper:
    """A forked process that waits for its order."""

    def __init__(self, pid: int, ours: socket.socket) -> None:
        self.socket = ours
        self._pid = pid
        self._code: int | None = None

    def end(self) -> int:
        """Waits for its end, which comes when its line is closed; the exit code, or minus the signal."""
        if self._code is None:
            _, status = os.waitpid(self._pid, 0)
            self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def kill(self) -> None:
        """Of no effect on one that has ended: a store that was stopped is closed by now."""
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            self.end()


@contextmanager
def forked_keeper() -> Iterator[Keeper]:
    """Forks before there is any thread, loop or open file to be inherited: the child shares all code that is loaded,
    and begins nothing before it is told to."""
    parent = os.getpid()
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _live(theirs, parent)
    theirs.close()
    keeper = Keeper(pid, ours)
    try:
        yield keeper
    finally:
        ours.close()
        keeper.kill()


def _live(line: socket.socket, parent: int) -> NoReturn:
    """In the child: never returns to what was under way in the process it was forked from."""
    code = 1
    try:
        # The stop signals of a terminal or a supervisor are the server's; it closes the store when all else is done.
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, signal.SIG_IGN)
        _die_with(parent)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_keep(line))
        code = 0
    except BaseException as error:  # noqa: BLE001 - the process ends here whatever happened
        _log.error("keeper_failed", error=type(error).__name__)
    finally:
        os._exit(code)


def _die_with(parent: int) -> None:
    """At once, even in the middle of a call: a keeper without its server must not go on committing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


async def _keep(line: socket.socket) -> None:
    _, answering = await asyncio.get_running_loop().create_unix_connection(lambda: Answering(_opened), sock=line)
    await answering.done.wait()


def _opened(ordered: bytes, meter: Meter, told: Told) -> StorePorts:
    order = _decode_order(ordered)
    _await_former(Path(order.folder))
    return open_store(
        order.path,
        sealer=AesSealer(order.masters, order.blind_index),
        clock=SystemClock(),
        meter=meter,
        crash_points=EnvCrashPoints(order.crash_at) if order.crash_at else NoCrashPoints(),
        on_broken=lambda: told(Notice.BROKEN),
        on_full=lambda: told(Notice.FULL),
        is_apart=True,
    )


def _await_former(folder: Path) -> None:
    """A killed server's keeper may be in a commit when the next one starts: it is killed too, but has to come back
    from the disk first. The lock is held until this process ends."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)


class KeptStore(RemotePorts):
    """The store in a keeper, as the server sees it. A keeper that dies takes the server with it: at a crash point at
    once, otherwise as a broken disk does."""

    def __init__(
        self,
        keeper: Keeper,
        order: Order,
        *,
        meter: Meter,
        on_broken: Callable[[], None],
        on_full: Callable[[], None],
    ) -> None:
        super().__init__(self._ask)
        self._keeper = keeper
        self._order = order
        self._meter = meter
        self._on_broken = on_broken
        self._on_full = on_full
        self._closing: asyncio.Future[Any] | None = None
        self._line: Line

    async def _ask(self, topic: int, value: Any, method: Method | None = None) -> Any:
        return await self._line.ask(topic, value, method)

    async def start(self) -> int:
        loop = asyncio.get_running_loop()
        _, self._line = await loop.create_unix_connection(
            lambda: Line(self._meter, self._heed, self._lost), sock=self._keeper.socket
        )
        schema: int = await self._ask(OPEN, self._order)
        return schema

    async def stop(self) -> None:
        """A keeper that dies instead of closing the file has lost nothing that was answered: the next start goes on
        with what is there, as after a broken disk."""
        if not self._line.closed.done():
            self._closing = self._line.ask(CLOSE, None)
            await self._line.closed

    def _heed(self, notice: Notice) -> None:
        if notice is Notice.FULL:
            self._on_full()
        else:
            self._on_broken()

    def _lost(self) -> None:
        code = self._keeper.end()
        if code == DIED:
            os._exit(DIED)
        # Every call on the line has its answer by now, or the error that there is none.
        failure = None if self._closing is None else self._closing.exception()
        if self._closing is None or failure is not None:
            _log.error("keeper_died", status=code, error=type(failure).__name__ if failure else None)
            self._on_broken()
