"""One rendering child as its parent sees it: orders are sent, answers received, or how it ended is told."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

import noroshi
from noroshi.machine.rendering.child import CPU_SECONDS, MEMORY
from noroshi.machine.rendering.orders import OrderBook
from noroshi.machine.rendering.protocol import LENGTH, Answer, Order, decode_answer, frame

START_SECONDS = 10.0
_BUFFER = 4 * 1024 * 1024
_LONGEST_ANSWER = 32 * 1024 * 1024

_TOO_LONG = f"rendering took more than {CPU_SECONDS * 1000:.0f} ms of CPU time"
_TOO_MUCH = f"rendering needed more than {MEMORY // 1024**2} MB of memory or too deep a stack"
_TOO_LATE = "rendering gave no answer in time"


class BreachError(Exception):
    """The child died or missed its deadline. `is_exact`: it was surely the recipient it was at, since the CPU timer
    is wound up for each; memory may also have been taken by those before, and a kill may come from anywhere."""

    def __init__(self, reason: str, *, is_exact: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_exact = is_exact


class ChildStartError(Exception):
    """No child can be started: the fault of this machine, not of any template."""


class ChildProcess:
    """After a BreachError it is of no more use and must be ended."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.book = OrderBook()
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> "ChildProcess":
        """A child that has said it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_BUFFER)
            try:
                process = _spawn(theirs)
            except OSError as error:
                writer.close()
                raise ChildStartError(f"the rendering child cannot be started: {error.strerror}") from error
        child = cls(process, reader, writer)
        try:
            async with asyncio.timeout(START_SECONDS):
                await reader.readexactly(LENGTH.size)
        except (TimeoutError, EOFError, OSError) as error:
            raise ChildStartError(f"the rendering child ended with {await child.end()}") from error
        except BaseException:
            child.kill()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, order: Order) -> None:
        """Never waits: what the pipe cannot take yet is kept."""
        self._writer.write(frame(order))

    async def receive(self, seconds: float) -> Answer:
        try:
            async with asyncio.timeout(seconds):
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                if length > _LONGEST_ANSWER:
                    raise BreachError(_TOO_MUCH)
                return decode_answer(await self._reader.readexactly(length))
        except TimeoutError:
            raise BreachError(_TOO_LATE) from None
        except msgspec.MsgspecError:
            raise BreachError(_TOO_MUCH) from None
        except (EOFError, OSError):
            raise _breach(await self.end()) from None

    def kill(self) -> None:
        self._process.kill()
        self._writer.close()

    async def end(self) -> int:
        """Kills it if it still lives; the status it ended with. In a thread, since giving back half a gigabyte
        takes the system a while."""
        self.kill()
        return await asyncio.to_thread(self._process.wait)


class ChildCell:
    """Where one child lives at a time: started when it is needed, and again after the last was cleared away."""

    def __init__(self) -> None:
        self.child: ChildProcess | None = None

    async def inhabited(self) -> ChildProcess:
        """Tries three times to start one: memory or processes may be short for a moment."""
        for pause in (0.2, 0.5, None):
            if self.child is not None:
                break
            try:
                self.child = await ChildProcess.start()
            except ChildStartError:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        assert self.child is not None  # noqa: S101 - the last start raised if it failed
        return self.child

    async def clear(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            await child.end()


def _spawn(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """Without our environment, which may hold secrets; with our import path, so that it runs the same code; in a
    session of its own, so that Ctrl-C reaches only us."""
    path = [Path(noroshi.__file__).parent.parent, *map(Path, filter(None, sys.path))]
    return subprocess.Popen(
        [sys.executable, "-S", "-P", "-m", "noroshi.machine.rendering.child"],
        stdin=theirs.fileno(),
        stdout=theirs.fileno(),
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(str(entry.absolute()) for entry in path)},
        cwd="/",
        start_new_session=True,
    )


def _breach(status: int) -> BreachError:
    if status == -signal.SIGPROF:
        return BreachError(_TOO_LONG, is_exact=True)
    return BreachError(_TOO_LATE if status == -signal.SIGKILL else _TOO_MUCH)
