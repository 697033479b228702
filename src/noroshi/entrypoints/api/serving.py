"""Serving: an ASGI request for one row of the table in, the row's answer out."""

import traceback
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import Any

import structlog
from starlette.types import Message, Receive, Scope, Send

from noroshi.domain.bodies import BodyDecoder
from noroshi.domain.passes import token_in
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller
from noroshi.entrypoints.api.answers import (
    Answer,
    Header,
    answer_of,
    answer_of_bug,
    answer_of_problem,
    deliver,
    wrong_method,
)
from noroshi.entrypoints.api.calls import ANYONE, Call, NoQuery, RawBody, Row, missing
from noroshi.entrypoints.api.decoding import decode_path_text, decode_query
from noroshi.entrypoints.api.desk import Desk, Gatekeeper
from noroshi.entrypoints.api.origins import preflight, sharing
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

    def __init__(self, row: Row, desk: Desk, request_ids: RequestIds, gate: Gatekeeper) -> None:
        self.row = row
        self._desk = desk
        self._gate = gate
        self._request_ids = request_ids
        self._allowed_scopes = frozenset({row.scope, KeyScope.ADMIN})
        self._is_raw = row.body is RawBody
        self._body = None if row.body is None or self._is_raw else BodyDecoder(row.body, row.multiline)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = self._request_ids.next()
        try:
            answer = answer_of(self.row, await self.row.run(self._desk, await self._call(scope, receive)))
            if self.row.is_personal:
                answer = answer._replace(headers=(*answer.headers, *sharing(scope["headers"], self._desk.origins)))
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001  whatever broke, the caller gets an answer that leaks nothing
            answer = self._refusal(error, scope, request_id)
        await deliver(answer, request_id, send)

    async def answer_whole(self, headers: Sequence[Header], body: bytes) -> tuple[Answer, str]:
        """To a request that is here from its first byte to its last, for a path without variable parts; and its id."""
        request_id = self._request_ids.next()
        try:
            known = _headers_of_interest(headers)
            caller = await self._admit({}, known.get(b"authorization"))
            asked = None if self._body is None else self._body.decode(body)
            key = _idempotency_key(known.get(b"idempotency-key")) if self.row.takes_idempotency_key else None
            answer = answer_of(self.row, await self.row.run(self._desk, Call(caller, {}, _NO_QUERY, asked, key)))
        except Exception as error:  # noqa: BLE001  as above
            answer = self._refusal(error, {"headers": headers}, request_id)
        return answer, request_id

    async def _call(self, scope: Scope, receive: Receive) -> Call[Any, Any]:
        headers = _headers_of_interest(scope["headers"])
        row = self.row
        is_open = row.scope is None or (row.takes_link and b"authorization" not in headers)
        caller = ANYONE if is_open else await self._admit(scope, headers.get(b"authorization"))
        path = scope.get("path_params") or {}
        if path:
            path = {name: decode_path_text(raw, name) for name, raw in path.items()}
        if caller.user_id is not None and caller.user_id != path["user_id"]:
            raise missing("user")
        return Call(
            caller,
            path,
            self._query(scope["query_string"]),
            await self._read_raw(scope, receive) if self._is_raw else await self._read_body(headers, receive),
            _idempotency_key(headers.get(b"idempotency-key")) if row.takes_idempotency_key else None,
        )

    async def _admit(self, scope: Scope, authorization: bytes | None) -> Caller:  # noqa: ARG002 - for streams
        header = None if authorization is None else authorization.decode("latin-1")
        caller = self._gate.caller_if_cached(header)
        if caller is None and (token := token_in(header)) is not None:
            caller = await self._desk.passes.authenticate(token)
            if not self.row.is_personal:
                raise ProblemError("forbidden", "This token opens one person's inbox and preferences only.")
            return caller
        if caller is None:
            caller = await self._gate.authenticate(header)
        if caller.scopes.isdisjoint(self._allowed_scopes):
            raise ProblemError("forbidden", f"This needs a key with the scope `{self.row.scope}`.")
        return caller

    def _refusal(self, error: Exception, scope: Scope, request_id: str) -> Answer:
        if isinstance(error, ProblemError):
            answer = answer_of_problem(error, request_id)
        else:
            answer = self._report(error, request_id)
        shared = sharing(scope["headers"], self._desk.origins) if self.row.is_personal else ()
        return answer._replace(headers=(*answer.headers, *shared))

    async def _read_body(self, headers: dict[bytes, bytes], receive: Receive) -> object:
        return None if self._body is None else self._body.decode(await _read(headers, receive, self.row.max_body))

    async def _read_raw(self, scope: Scope, receive: Receive) -> RawBody:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return RawBody(await _read(_headers_of_interest(scope["headers"]), receive, self.row.max_body), headers)

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

    def __init__(self, servers: Sequence[RowServer], request_ids: RequestIds, origins: AbstractSet[str]) -> None:
        self._origins = origins
        self._by_method = {server.row.method: server for server in servers}
        if "GET" in self._by_method:
            self._by_method["HEAD"] = self._by_method["GET"]
        self._request_ids = request_ids
        self._shared = [server.row.method for server in servers if server.row.is_personal]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = self._by_method.get(scope["method"])
        if server is not None:
            await server(scope, receive, send)
        elif scope["method"] == "OPTIONS" and (answer := self._preflight(scope)) is not None:
            await deliver(answer, self._request_ids.next(), send)
        else:
            await refuse(wrong_method(self._by_method), self._request_ids.next(), send)

    def _preflight(self, scope: Scope) -> Answer | None:
        return preflight(scope["headers"], self._origins, self._shared) if self._shared else None


async def refuse(problem: ProblemError, request_id: str, send: Send) -> None:
    await deliver(answer_of_problem(problem, request_id), request_id, send)


def _headers_of_interest(headers: Sequence[Header]) -> dict[bytes, bytes]:
    return {name: value for name, value in headers if name in _OF_INTEREST}


def _idempotency_key(raw: bytes | None) -> str | None:
    if raw is None:
        return None
    key = raw.decode("latin-1")
    if not (key.isascii() and key.isprintable() and 1 <= len(key) <= _LONGEST_KEY):
        detail = f"Expected 1 to {_LONGEST_KEY} printable ASCII characters."
        raise ProblemError("bad_field", detail, field="Idempotency-Key")
    return key


async def _read(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The whole body; never keeps more than the limit."""
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > limit:
        if b"expect" not in headers:  # who asks before sending has sent nothing yet
            await _discard(receive)
        raise _too_large(limit)
    message = await receive()
    body = _part(message)
    if not message.get("more_body", False):
        if len(body) > limit:
            raise _too_large(limit)
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False):
        message = await receive()
        parts.append(_part(message))
        size += len(parts[-1])
        if size > limit:
            await _discard(receive)
            raise _too_large(limit)
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


def _too_large(limit: int) -> ProblemError:
    return ProblemError("too_large", f"The body is over {limit:,} bytes.")
