"""The loop in virtual time, with real connections to a PostgreSQL server: time stands still while the server works.

As long as a server owes an answer the loop waits for it; only when nothing is owed does time jump to the next timer.
So no time-out of a connection can run out because somebody slept for a virtual hour. What is ready runs in the order
it came, on which asyncio's own connections depend: the order is the server's, and not drawn from a seed.
"""

import asyncio
import random
from asyncio.selector_events import BaseSelectorEventLoop, _SelectorSocketTransport  # type: ignore[attr-defined]
from collections import deque
from typing import Any

from tests.faults.machinery.sim_loop import SimLoop, StuckError

_READY_FOR_QUERY = b"Z\x00\x00\x00\x05"
"""The last message of every answer, but for one byte that tells of the transaction."""

_PATIENCE = 60.0
"""In real seconds: a server that takes longer has been forgotten by whoever was to answer."""


class WiredLoop(SimLoop, BaseSelectorEventLoop):
    """`owing` are the connections whose server owes an answer."""

    _ready: deque[asyncio.Handle]  # type: ignore[assignment]
    _selector: Any
    _transports: Any
    _process_events: Any
    _close_self_pipe: Any

    def __init__(self, start: float = 0.0) -> None:
        SimLoop.__init__(self, random.Random(0), start)
        BaseSelectorEventLoop.__init__(self)
        self._connecting = 0
        self._answers_left = 0
        self.owing: set[_Wire] = set()

    def run_until_answered(self, count: int) -> None:
        """Until the server has answered so often; it may have stopped asking before."""
        self._answers_left = count
        self.run_until_idle(self.time())

    def note_answer(self) -> None:
        self._answers_left -= 1
        if self._answers_left == 0:
            self.stop()

    def _take_steps(self, deadline: float) -> None:
        while not self._is_halting and (self._ready or self._wake(deadline)):
            handle = self._ready.popleft() if self._ready else None
            if handle is not None and not handle._cancelled:
                self.steps += 1
                handle._run()

    def _wake(self, deadline: float) -> bool:
        if not (self.owing or self._connecting):
            return super()._wake(deadline)
        happened = self._selector.select(_PATIENCE)
        if not happened:
            raise StuckError(f"the server has not answered for {_PATIENCE} s")
        self._process_events(happened)
        return True

    async def create_connection(self, *where: Any, **options: Any) -> Any:
        self._connecting += 1
        try:
            return await BaseSelectorEventLoop.create_connection(self, *where, **options)
        finally:
            self._connecting -= 1

    def _make_socket_transport(self, sock: Any, protocol: Any, waiter: Any = None, **more: Any) -> "_Wire":
        return _Wire(self, sock, protocol, waiter, **more)

    def close(self) -> None:
        """Connections end without a word, as those of a dead process do, before what used them can say one."""
        if self.is_closed():
            return
        for wire in list(self._transports.values()):
            wire.cut()
        SimLoop.close(self)
        self._close_self_pipe()
        self._selector.close()


class _Wire(_SelectorSocketTransport):  # type: ignore[misc]
    """A connection; from whatever it is sent until it is ready for more, its server owes an answer."""

    def __init__(self, loop: WiredLoop, sock: Any, protocol: asyncio.Protocol, waiter: Any, **more: Any) -> None:
        self._wired_loop = loop
        self._heard = b""
        super().__init__(loop, sock, protocol, waiter, **more)

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        super().set_protocol(_Ear(protocol, self))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._wired_loop.owing.add(self)
        super().write(data)

    def hear(self, data: bytes) -> None:
        self._heard = (self._heard + data)[-len(_READY_FOR_QUERY) - 1 :]
        if self._heard.startswith(_READY_FOR_QUERY):
            self._wired_loop.owing.discard(self)
            self._wired_loop.note_answer()

    def cut(self) -> None:
        self.abort()
        if self._sock is not None:
            self._call_connection_lost(None)

    def _call_connection_lost(self, exc: Exception | None) -> None:
        self._wired_loop.owing.discard(self)
        super()._call_connection_lost(exc)


class _Ear(asyncio.Protocol):
    """Passes everything on to the protocol of a connection, and tells the wire what was heard."""

    def __init__(self, protocol: asyncio.Protocol, wire: _Wire) -> None:
        self._wire = wire
        self.connection_made = protocol.connection_made  # type: ignore[method-assign]
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self._data_received = protocol.data_received

    def data_received(self, data: bytes) -> None:
        self._wire.hear(data)
        self._data_received(data)
