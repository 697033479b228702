"""Streams: a request to look at an inbox live in; events, or messages of a socket, until either side ends it, out."""

import asyncio
from typing import Annotated, Any
from urllib.parse import quote_from_bytes

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.types import Receive, Scope, Send

from noroshi.domain.passes import PassKind
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import Caller
from noroshi.entrypoints.api.answers import Answer, deliver, start_of
from noroshi.entrypoints.api.calls import Call, Row, missing
from noroshi.entrypoints.api.connections import EXTENSION
from noroshi.entrypoints.api.decoding import decode_query
from noroshi.entrypoints.api.desk import Desk, Gatekeeper
from noroshi.entrypoints.api.inbox import EntryNumber
from noroshi.entrypoints.api.origins import is_ours, sharing
from noroshi.entrypoints.api.outlets import DirectOutlet, PumpedOutlet, as_events, as_messages
from noroshi.entrypoints.api.serving import RequestIds, RowServer
from noroshi.ports.live import Following, Outlet

EVENTS = "text/event-stream"
SOCKET = "websocket"
"""Media of the rows that are served here."""

_FIRST = b"retry: 2000\n\n"
_BEAT = b":\n\n"
_NOT_SPOKEN_TO = 1008
_GOING_AWAY = 1001
_ENDS = frozenset({"http.disconnect", "websocket.disconnect"})

TicketText = Annotated[str, Meta(min_length=1, max_length=1000, pattern=f"^{PassKind.TICKET}[A-Za-z0-9_-]+$")]


class StreamQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`after`: the last `entry_id` seen (left out: only what is new); the header `Last-Event-ID` goes before it.
    `ticket`: instead of the header `Authorization`."""

    after: EntryNumber | UnsetType = UNSET
    ticket: TicketText | UnsetType = UNSET


async def open_stream(desk: Desk, call: Call[StreamQuery, None], outlet: Outlet) -> Following:
    after = None if call.query.after is UNSET else call.query.after
    following = await desk.live.follow(call.owner, after, outlet, call.caller.key_id, call.caller.until)
    if following is None:
        raise missing("user")
    return following


async def open_socket(desk: Desk, call: Call[StreamQuery, None], outlet: Outlet | None = None) -> Following:
    """Without an outlet it was asked for as if it were a page."""
    if outlet is None and await desk.inbox.head(call.owner) is None:
        raise missing("user")
    if outlet is None:
        raise ProblemError("upgrade_required", "Open it as a WebSocket.", headers={"Upgrade": SOCKET})
    return await open_stream(desk, call, outlet)


class _LiveServer(RowServer):
    """What streams and sockets share: a ticket opens them, too."""

    async def _admit(self, scope: Scope, authorization: bytes | None) -> Caller:
        query = decode_query(scope["query_string"], StreamQuery)
        if query.ticket is UNSET:
            return await super()._admit(scope, authorization)
        return await self._desk.passes.admit(query.ticket)

    async def _follow(self, scope: Scope, receive: Receive, outlet: Outlet) -> Following:
        following: Following = await self.row.run(self._desk, await self._call(scope, receive), outlet)
        return following


class StreamServer(_LiveServer):
    """Server-sent events (N1.6)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = self._request_ids.next()
        connection = scope.get("extensions", {}).get(EXTENSION)
        outlet: DirectOutlet | PumpedOutlet = _pumped(send) if connection is None else DirectOutlet(connection)
        try:
            following = await self._follow(_from_where_it_was(scope), receive, outlet)
        except Exception as error:  # noqa: BLE001  whatever broke, the caller gets an answer that leaks nothing
            await deliver(self._refusal(error, scope, request_id), request_id, send)
            return
        try:
            await send(start_of(_head(scope, self._desk), request_id))
            await send({"type": "http.response.body", "body": _FIRST, "more_body": scope["method"] != "HEAD"})
            if scope["method"] != "HEAD":
                scope["headers"].clear()  # a stream may last for an hour, and there may be ten thousand of them
                await _attend(following, outlet, receive)
                await send({"type": "http.response.body"})
        finally:
            following.end()


def _head(scope: Scope, desk: Desk) -> Answer:
    more = ((b"x-accel-buffering", b"no"), *sharing(scope["headers"], desk.origins))
    return Answer(200, EVENTS.encode(), b"", more)


def _from_where_it_was(scope: Scope) -> Scope:
    """A browser that comes again sends the address it had at first, and beside it the last id it has seen."""
    seen = next((value for name, value in scope["headers"] if name == b"last-event-id"), b"")
    if not seen:
        return scope
    kept = [part for part in scope["query_string"].split(b"&") if part and not part.startswith(b"after=")]
    return {**scope, "query_string": b"&".join([*kept, b"after=" + quote_from_bytes(seen).encode()])}


def _pumped(send: Send) -> PumpedOutlet:
    async def write(events: list[bytes]) -> None:
        await send({"type": "http.response.body", "body": b"".join(events), "more_body": True})

    return PumpedOutlet(as_events, write, _BEAT)


class SocketServer(_LiveServer):
    """The same over a WebSocket (N1.6). A page of another site is refused before anything else is looked at."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await super().__call__(scope, receive, send)
            return
        request_id = self._request_ids.next()
        await receive()  # the wish to connect
        outlet = PumpedOutlet(as_messages, lambda messages: _send_texts(send, messages))
        try:
            following = await self._follow(scope, receive, outlet)
        except Exception as error:  # noqa: BLE001  whatever broke, the caller gets an answer that leaks nothing
            await deliver(self._refusal(error, scope, request_id), request_id, _as_refusal(send))
            return
        try:
            await send({"type": "websocket.accept"})
            code = await _attend(following, outlet, receive)
            await _close(send, code)
        finally:
            following.end()

    async def _admit(self, scope: Scope, authorization: bytes | None) -> Caller:
        if not is_ours(scope["headers"], self._desk.origins):
            raise ProblemError("forbidden", "Pages of this site may not open it: see NOROSHI_INBOX_ORIGINS.")
        return await super()._admit(scope, authorization)


async def _attend(following: Following, outlet: DirectOutlet | PumpedOutlet, receive: Receive) -> int:
    """Until either side has had enough; answers with what a socket is to be closed."""
    if isinstance(outlet, DirectOutlet):
        outlet.open()
        catching = asyncio.create_task(following.catch_up())
        try:
            return await _listen(receive)
        finally:
            catching.cancel()
    listening = asyncio.create_task(_listen(receive))
    pumping = asyncio.create_task(outlet.run())
    catching = asyncio.create_task(following.catch_up())
    try:
        await asyncio.wait((listening, pumping), return_when=asyncio.FIRST_COMPLETED)
        return listening.result() if listening.done() else _GOING_AWAY
    finally:
        for task in (listening, pumping, catching):
            task.cancel()


async def _listen(receive: Receive) -> int:
    """Nobody is expected to speak here."""
    while (message := await receive())["type"] not in _ENDS:
        if message["type"] == "websocket.receive":
            return _NOT_SPOKEN_TO
    return _GOING_AWAY


async def _send_texts(send: Send, messages: list[bytes]) -> None:
    for message in messages:
        await send({"type": "websocket.send", "text": message.decode()})


async def _close(send: Send, code: int) -> None:
    reason = "this socket only speaks" if code == _NOT_SPOKEN_TO else "come again"
    try:
        await send({"type": "websocket.close", "code": code, "reason": reason})
    except (OSError, RuntimeError):
        """The other side was first."""


def _as_refusal(send: Send) -> Send:
    """An answer instead of a socket: the status says why, where the server can show one."""

    async def refuse(message: Any) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return refuse


SERVERS: dict[str, type[RowServer]] = {EVENTS: StreamServer, SOCKET: SocketServer}


def server_of(row: Row, desk: Desk, request_ids: RequestIds, gate: Gatekeeper) -> RowServer:
    return SERVERS.get(row.media, RowServer)(row, desk, request_ids, gate)
