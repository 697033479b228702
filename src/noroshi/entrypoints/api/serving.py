"""Serving: an ASGI request for one row of the table in, the row's answer out."""

import traceback
from collections.abc import Iterable
from itertools import count

import structlog
from starlette.types import Message, Receive, Scope, Send

from noroshi.domain.bodies import MAX_BODY, BodyDecoder
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller
from noroshi.entrypoints.api.answers import (
    Answer,
    answer_of,
    answer_of_bug,
    answer_of_problem,
    deliver,
    wrong_method,
)
from noroshi.entrypoints.api.calls import ANYONE, Call, NoQuery, Row
from noroshi.entrypoints.api.decoding import decode_path_text, decode_query
from noroshi.entrypoints.api.desk import Desk
from noroshi.ports.clock import Clock

log = structlog.get_logger()

_LONGEST_KEY = 255
_DISCARDED_AT_MOST = 20_000_000
_NO_QUERY = NoQuery()
_OF_INTEREST = frozenset({b"authorization", b"content-length", b"expect", b"idempotency-key"})


class ClientGoneError(Exception):
    """The client hung up before its request was whole; nobody waits for an answer."""


class RequestIds:
    """Ids to find a request in the log by: the moment this server started, and a number."""

    def __init__(self, clock: Clock) -> None:
        self._start = f"{clock.now():x}-"
        self._numbers = count(1)

    def next(self) -> str:
        return self._start + str(next(self._numbers))


class RowServer:
    """Serves one row. `POST /api/v1/notifications` comes here without a router in between: keep it short."""

    def __init__(self, row: Row, desk: Desk, request_ids: RequestIds) -> None:
        self.row = row
        self._desk = desk
        self._gate = desk.gate
        self._request_ids = request_ids
        self._allowed_scopes = frozenset({row.scope, KeyScope.ADMIN})
        self._body = BodyDecoder(row.body, row.multiline) if row.body is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = self._request_ids.next()
        try:
            answer = await self._answer(scope, receive)
        except ProblemError as problem:
            answer = answer_of_problem(problem, request_id)
        except ClientGoneError:
            return
        except Exception as bug:  # noqa: BLE001  whatever broke, the caller gets an answer that leaks nothing
            answer = self._report(bug, request_id)
        await deliver(answer, request_id, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = _headers_of_interest(scope["headers"])
        row = self.row
        caller = ANYONE if row.scope is None else await self._admit(headers.get(b"authorization"))
        path = scope.get("path_params") or {}
        call = Call(
            caller,
            {name: decode_path_text(raw, name) for name, raw in path.items()} if path else path,
            self._query(scope["query_string"]),
            None if self._body is None else self._body.decode(await _read(headers, receive)),
            _idempotency_key(headers.get(b"idempotency-key")) if row.takes_idempotency_key else None,
        )
        return answer_of(row, await row.run(self._desk, call))

    async def _admit(self, authorization: bytes | None) -> Caller:
        header = None if authorization is None else authorization.decode("latin-1")
        caller = self._gate.caller_if_cached(header)
        if caller is None:
            caller = await self._gate.authenticate(header)
        if caller.scopes.isdisjoint(self._allowed_scopes):
            raise ProblemError("forbidden", f"This needs a key with the scope `{self.row.scope}`.")
        return caller

    def _query(self, raw: bytes) -> object:
        row = self.row
        if row.scope is None or (not raw and row.query is NoQuery):
            return _NO_QUERY
        return decode_query(raw, row.query)

    def _report(self, bug: Exception, request_id: str) -> Answer:
        # Not the bug's own text: it may hold an address, a token or a key.
        places = traceback.format_tb(bug.__traceback__)
        log.error("request_failed", request_id=request_id, route=self.row.name, error=type(bug).__name__, trace=places)
        return answer_of_bug(request_id)


class PathServer:
    """All rows of one path; HEAD is answered like GET (the server leaves the body out)."""

    def __init__(self, servers: Iterable[RowServer], request_ids: RequestIds) -> None:
        self._by_method = {server.row.method: server for server in servers}
        if "GET" in self._by_method:
            self._by_method["HEAD"] = self._by_method["GET"]
        self._request_ids = request_ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = self._by_method.get(scope["method"])
        if server is not None:
            await server(scope, receive, send)
        else:
            await refuse(wrong_method(self._by_method), self._request_ids.next(), send)


async def refuse(problem: ProblemError, request_id: str, send: Send) -> None:
    await deliver(answer_of_problem(problem, request_id), request_id, send)


def _headers_of_interest(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    return {name: value for name, value in headers if name in _OF_INTEREST}


def _idempotency_key(raw: bytes | None) -> str | None:
    if raw is None:
        return None
    key = raw.decode("latin-1")
    if not (key.isascii() and key.isprintable() and 1 <= len(key) <= _LONGEST_KEY):
        detail = f"Expected 1 to {_LONGEST_KEY} printable ASCII characters."
        raise ProblemError("bad_field", detail, field="Idempotency-Key")
    return key


async def _read(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """The whole body; never keeps more than the limit."""
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > MAX_BODY:
        if b"expect" not in headers:  # who asks before sending has sent nothing yet
            await _discard(receive)
        raise _too_large()
    message = await receive()
    body = _part(message)
    if not message.get("more_body", False):
        if len(body) > MAX_BODY:
            raise _too_large()
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False):
        message = await receive()
        parts.append(_part(message))
        size += len(parts[-1])
        if size > MAX_BODY:
            await _discard(receive)
            raise _too_large()
    return b"".join(parts)


async def _discard(receive: Receive) -> None:
    """Reads the rest, though not for ever: most clients listen only when they have sent everything."""
    left = _DISCARDED_AT_MOST
    while left > 0:
        message = await receive()
        left -= len(_part(message))
        if not message.get("more_body", False):
            return


def _part(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    body: bytes = message.get("body", b"")
    return body


def _too_large() -> ProblemError:
    return ProblemError("too_large", f"The body is over {MAX_BODY:,} bytes.")
