"""Connections: what one turn of the loop writes to a client goes in piece by piece and out in one write; what a client
sends too slowly goes in and nothing comes out but the end of the connection; what is asked for thousands of times a
second goes in whole and its answer out without ASGI between."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, cast

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

_END_OF_HEAD = b"\r\n\r\n"
_LONGEST_KNOWN_HEAD = 4096
_MOST_KNOWN_HEADS = 1024
"""A client sends the same head again and again, but for the length of the body."""

_OF_A_STREAM = b"/inbox/stream"
_DIGITS = 5
"""A length that has more is no small one."""

_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 32\r\n\r\nThe request did not come in time"
)


class Outbox:
    """What many connections write in one turn of the loop goes out at its end, one after the other: a client who has
    many of them is then woken once, not for each answer."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def put(self, flush: Callable[[], None]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(flush)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for flush in waiting:
            flush()


class JoinedWrites:
    """A transport that waits for the end of the loop's turn: uvicorn writes an answer's head and body apart, and each
    write is a call to the kernel and a packet that wakes the client."""

    def __init__(self, transport: asyncio.Transport, outbox: Outbox) -> None:
        self._transport = transport
        self._held: list[bytes] = []
        self._outbox = outbox

    def write(self, data: bytes) -> None:
        if not self._held:
            self._outbox.put(self._flush)
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
            self._transport.write(b"".join(held) if len(held) > 1 else held[0])

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


class KnownHead(NamedTuple):
    """What the parser made of the head of a request that was answered whole: the same bytes mean the same again."""

    headers: Sequence[Header]
    body_length: int
    answer: AnswerWhole


class Connection(HttpToolsProtocol):
    """A request for a stream may take the connection over, and then writes to it without anything between. One for
    a path of `whole` is answered without a scope, messages and events, a quarter of what is done for it; and without
    the parser, if its head is known to the letter and all of it comes at once.

    uvicorn waits for ever for a request to begin or to become whole: here both have their time (F15)."""

    receive_seconds: float
    whole: Mapping[bytes, AnswerWhole]
    heads: ClassVar[dict[bytes, KnownHead]]
    outbox: ClassVar[Outbox]
    _deadline: asyncio.TimerHandle | None = None
    _was_paused = False
    _is_inside = False  # the parser is in the middle of a request
    _rests_since = 0.0

    @classmethod
    def to(
        cls, whole: Mapping[bytes, AnswerWhole], receive_within: timedelta = timedelta(seconds=30)
    ) -> type["Connection"]:
        """The connections of one server, whose clients have `receive_within` from the first byte of a request to its
        last. What they share is the server's own: there is none without it."""
        own = {"whole": whole, "heads": {}, "outbox": Outbox(), "receive_seconds": receive_within.total_seconds()}
        return type("Connection", (cls,), own)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.outbox)))
        self._rest()

    def data_received(self, data: bytes) -> None:
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        known = self.heads.get(data[:end])
        if (
            known is not None
            and len(data) == end + known.body_length
            and self._is_at_rest()
            and not self._are_too_many()
        ):
            self._begin_whole(WholeRequest(known.answer, keep_alive=True), known.headers, data[end:])
            return
        before, was_inside = self.cycle, self._is_inside
        super().data_received(data)
        if self.cycle is not before and not was_inside:
            self._remember_head(data, end)
        cycle = cast(_CycleOrNone, self.cycle)
        is_answered = cycle is not None and not cycle.more_body and not cycle.response_complete
        if is_answered or self not in self.connections:  # it is whole, or has become a WebSocket
            self._lift_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.receive_seconds, self._cut)

    def _is_at_rest(self) -> bool:
        """Nothing is half received, nothing is to be answered before."""
        if self._is_inside or self._deadline is not None:
            return False
        cycle = cast(_CycleOrNone, self.cycle)
        return cycle is None or cycle.response_complete

    def _remember_head(self, data: bytes, end: int) -> None:
        """If the data is a request to be answered whole, from its first byte to its last."""
        request: object = self.cycle
        if not isinstance(request, WholeRequest) or self._is_inside or len(data) != end + len(request.body):
            return
        if not request.keep_alive or end > _LONGEST_KNOWN_HEAD:
            return
        if len(self.heads) >= _MOST_KNOWN_HEADS:
            del self.heads[next(iter(self.heads))]
        self.heads[data[:end]] = KnownHead(tuple(self.headers), len(request.body), request.answer)

    def _rest(self) -> None:
        """Waits for the next request. A timer that runs is not begun anew for each: where it ends it looks how long the
        rest has been."""
        self._rests_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_after(self.timeout_keep_alive)

    def _look_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        left = self._rests_since + self.timeout_keep_alive - self.loop.time()
        if not self._is_at_rest():
            self._look_after(self.timeout_keep_alive)
        elif left > 0:
            self._look_after(left)
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_inside = True

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
        if self._are_too_many():
            return False
        for name, length in self.headers:
            if name == b"content-length":
                return length.isdigit() and len(length) <= _DIGITS and int(length) <= HIGH_WATER_LIMIT
        return False

    def _are_too_many(self) -> bool:
        limit = self.limit_concurrency
        return limit is not None and (len(self.connections) >= limit or len(self.tasks) >= limit)

    def on_message_complete(self) -> None:
        self._is_inside = False
        super().on_message_complete()
        request: object = self.cycle
        if isinstance(request, WholeRequest):
            self._begin_whole(request, self.headers, bytes(request.body))

    def _begin_whole(self, request: WholeRequest, headers: Sequence[Header], body: bytes) -> None:
        self.cycle = cast(RequestResponseCycle, request)
        request.more_body = False
        task = self.loop.create_task(self._serve_whole(request, headers, body))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _serve_whole(self, request: WholeRequest, headers: Sequence[Header], body: bytes) -> None:
        answer, request_id = await request.answer(headers, body)
        transport = self.transport
        if transport.is_closing():
            return
        stays_open = request.keep_alive
        request.response_started = request.response_complete = True
        transport.write(wire_of(answer, request_id, self.server_state.default_headers, stays_open=stays_open))
        if self.pipeline or not stays_open:
            if not stays_open:
                transport.close()
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1
            self._rest()

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
