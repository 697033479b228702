"""Connections: what one turn of the loop writes to a client goes in piece by piece and out in one write; what a client
sends too slowly goes in and nothing comes out but the end of the connection; what is asked for thousands of times a
second goes in whole and its answer out without ASGI between."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from noroshi.entrypoints.api.answers import Answer, Header, wire_of

AnswerWhole = Callable[[Sequence[Header], bytes], Awaitable[tuple[Answer, str]]]
"""Headers and body of a request in, the answer and the request's id out; never raises."""

EXTENSION = "noroshi.connection"
"""Under this name a request for a stream finds its connection in the scope."""

_CycleOrNone = RequestResponseCycle | None
"""uvicorn has none before the first request, though it does not say so."""

_OF_A_STREAM = b"/inbox/stream"
_DIGITS = 5
"""A length that has more is no small one."""

_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 32\r\n\r\nThe request did not come in time"
)


class JoinedWrites:
    """A transport that waits for the end of the loop's turn: uvicorn writes an answer's head and body apart, and each
    write is a call to the kernel and a packet that wakes the client."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: list[bytes] = []
        self._call_soon = asyncio.get_running_loop().call_soon

    def write(self, data: bytes) -> None:
        if not self._held:
            self._call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def single(self) -> asyncio.Transport:
        """The transport itself, once what was held is out."""
        self._flush()
        return self._transport

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _NobodyWaits:
    """Where uvicorn keeps the event by which an application hears that more of a body has come."""

    def set(self) -> None: ...


class WholeRequest:
    """What uvicorn wants to know of the request that a connection is at; for one that nobody reads piece by piece."""

    __slots__ = (
        "answer",
        "body",
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "response_complete",
        "response_started",
    )

    def __init__(self, answer: AnswerWhole, *, keep_alive: bool) -> None:
        self.answer = answer
        self.keep_alive = keep_alive
        self.body = bytearray()
        self.more_body = True
        self.disconnected = self.response_started = self.response_complete = False
        self.message_event = _NobodyWaits()


class Connection(HttpToolsProtocol):
    """A request for a stream may take the connection over, and then writes to it without anything between. One for
    a path of `whole` is answered without a scope, messages and events, a quarter of what is done for it.

    uvicorn waits for ever for a request to begin or to become whole: here both have their time (F15)."""

    receive_seconds = 30.0
    whole: Mapping[bytes, AnswerWhole] = {}
    _deadline: asyncio.TimerHandle | None = None
    _was_paused = False

    @classmethod
    def to(cls, whole: Mapping[bytes, AnswerWhole], receive_within: timedelta) -> type["Connection"]:
        """The same, for clients that have `receive_within` from the first byte of a request to its last."""
        return type("Connection", (cls,), {"whole": whole, "receive_seconds": receive_within.total_seconds()})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport)))
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle = cast(_CycleOrNone, self.cycle)
        is_answered = cycle is not None and not cycle.more_body and not cycle.response_complete
        if is_answered or self not in self.connections:  # it is whole, or has become a WebSocket
            self._lift_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.receive_seconds, self._cut)

    def _lift_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused or self._was_paused:  # it is we who are slow, or were until a moment ago
            self._was_paused = self.flow.read_paused
            self._deadline = self.loop.call_later(self.receive_seconds, self._cut)
            return
        cycle = cast(_CycleOrNone, self.cycle)
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_TOO_SLOW)
        self.transport.close()

    def on_headers_complete(self) -> None:
        answer = self.whole.get(self.url)
        if answer is not None and self._will_be_whole():
            keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
            self.cycle = cast(RequestResponseCycle, WholeRequest(answer, keep_alive=keep_alive))
            return
        super().on_headers_complete()
        if _OF_A_STREAM in self.url:
            self.scope["extensions"] = {EXTENSION: cast(dict[object, object], self)}

    def _will_be_whole(self) -> bool:
        """A small POST, with nothing before it that is still to be answered; whatever is unusual goes the usual way. Of
        more than this limit uvicorn reads no further until somebody takes what has come."""
        cycle = cast(_CycleOrNone, self.cycle)
        if cycle is not None and not cycle.response_complete:
            return False
        if self.parser.get_method() != b"POST" or self.parser.should_upgrade() or self.expect_100_continue:
            return False
        if self.limit_concurrency is not None and max(len(self.connections), len(self.tasks)) >= self.limit_concurrency:
            return False
        for name, length in self.headers:
            if name == b"content-length":
                return length.isdigit() and len(length) <= _DIGITS and int(length) <= HIGH_WATER_LIMIT
        return False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        request: object = self.cycle
        if isinstance(request, WholeRequest):
            task = self.loop.create_task(self._serve_whole(request, self.headers))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    async def _serve_whole(self, request: WholeRequest, headers: Sequence[Header]) -> None:
        answer, request_id = await request.answer(headers, bytes(request.body))
        if self.transport.is_closing():
            return
        stays_open = request.keep_alive
        wire = wire_of(answer, request_id, self.server_state.default_headers, stays_open=stays_open)
        request.response_started = request.response_complete = True
        self.transport.write(wire)
        if not stays_open:
            self.transport.close()
        self.on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._lift_deadline()
        self._unset_keepalive_if_required()
        if self.scope is not None:
            self.scope.pop("extensions", None)  # else the two would hold each other

    def taken_over(self) -> asyncio.Transport:
        return cast(JoinedWrites, self.transport).single()


class Socket(WebSocketsSansIOProtocol):
    async def send(self, message: ASGISendEvent) -> None:
        """A refusal is a whole answer: uvicorn takes it for a handshake that was left half done, and logs an error."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True
