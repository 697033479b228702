"""Outlets: news of an inbox in, bytes on one connection out; none holds more than its connection has room for."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from noroshi.domain.inbox import News
from noroshi.entrypoints.api.connections import Connection
from noroshi.entrypoints.api.inbox import show_entry, show_state

ROOM = 65_536
"""Bytes that may wait for a reader."""

Form = Callable[[News], Sequence[bytes]]

_BEAT = b":\n\n"
_encode = msgspec.json.Encoder().encode


def as_events(news: News) -> list[bytes]:
    """Server-sent events. Only an entry has an id: it is what a browser names when it comes again."""
    events = [
        b"id: %d\nevent: entry\ndata: %b\n\n" % (entry.number, _encode(show_entry(entry))) for entry in news.entries
    ]
    events.append(b"event: state\ndata: %b\n\n" % _encode(show_state(news.head)))
    return events


def as_messages(news: News) -> list[bytes]:
    """The same as messages of a socket."""
    messages = [b'{"event":"entry","data":%b}' % _encode(show_entry(entry)) for entry in news.entries]
    messages.append(b'{"event":"state","data":%b}' % _encode(show_state(news.head)))
    return messages


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class DirectOutlet:
    """Implements ports/live.py Outlet: events in the chunks of a response whose connection is ours from now on. There
    is no task and no queue between, for a fan-out is nothing but writes."""

    __slots__ = ("_connection", "_flow", "_transport")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._flow = connection.flow
        self._transport: asyncio.Transport | None = None

    def open(self) -> None:
        """Once the head of the response is written."""
        self._transport = self._connection.taken_over()

    @property
    def is_full(self) -> bool:
        return self._flow.write_paused

    def form(self, news: News) -> Sequence[bytes]:
        return (_chunk(b"".join(as_events(news))),)

    def put(self, formed: Sequence[bytes]) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            for chunk in formed:
                transport.write(chunk)

    def beat(self) -> None:
        self.put((_chunk(_BEAT),))

    async def drained(self) -> None:
        await self._flow.drain()

    def close(self) -> None:
        transport = self._transport
        if transport is None or self.is_full:
            self._connection.transport.abort()
        elif not transport.is_closing():
            transport.write(b"0\r\n\r\n")
            transport.close()


class PumpedOutlet:
    """Implements ports/live.py Outlet over whatever takes messages and may make one wait: `run` carries them."""

    def __init__(self, form: Form, send: Callable[[list[bytes]], Awaitable[None]], beat: bytes = b"") -> None:
        self.form = form
        self._send = send
        self._beat = beat
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_closed = False
        self._has_more = asyncio.Event()
        self._has_room = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self._size > ROOM

    def beat(self) -> None:
        if self._beat:
            self.put([self._beat])

    def put(self, formed: Sequence[bytes]) -> None:
        if not formed:
            return
        self._waiting += formed
        self._size += sum(map(len, formed))
        self._has_room.clear()
        self._has_more.set()

    async def drained(self) -> None:
        await self._has_room.wait()

    def close(self) -> None:
        self._is_closed = True
        self._has_more.set()

    async def run(self) -> None:
        """Until it is closed, or the connection is gone."""
        try:
            while not self._is_closed:
                await self._has_more.wait()
                self._has_more.clear()
                waiting, self._waiting = self._waiting, []
                if waiting:
                    await self._send(waiting)
                self._size = sum(map(len, self._waiting))
                if not self.is_full:
                    self._has_room.set()
        except OSError:
            """The other side is gone."""
        finally:
            self._has_room.set()
