"""Answers: what a route returned or raised in; status, headers and bytes on the wire out."""

from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.types import Message, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from noroshi.domain.problems import PROBLEMS, ProblemError, ProblemKind
from noroshi.domain.requests import AcceptedAnswer
from noroshi.entrypoints.api.calls import Row

PROBLEM_JSON = "application/problem+json"

ERRORS_PATH = "/docs/errors"
"""Where the page is that has an anchor for every code."""

Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]

_EVERY_ANSWER: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_encode = msgspec.json.Encoder().encode


class Problem(Struct, frozen=True, kw_only=True):
    """RFC 9457. `code` is stable and documented; `todo` says what to do; `field` names what is wrong, if one is.
    `batch_id` and `first` (the first answer, once it is known) stand with `idempotency_replay`, `problems` with
    `not_ready`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    todo: str
    request_id: str
    field: str | UnsetType = UNSET
    batch_id: str | UnsetType = UNSET
    first: AcceptedAnswer | UnsetType | None = UNSET
    problems: list[str] | UnsetType = UNSET


class Answer(NamedTuple):
    status: int
    media: bytes
    body: bytes
    headers: Headers = ()


def answer_of(row: Row, result: Any) -> Answer:
    if result is None:
        return Answer(204, b"", b"")
    return Answer(row.status, row.media.encode(), result if isinstance(result, bytes) else _encode(result), row.headers)


def answer_of_problem(problem: ProblemError, request_id: str) -> Answer:
    kind = problem.kind
    members: dict[str, Any] = _members(kind, problem.detail, request_id)
    if problem.field is not None:
        members["field"] = problem.field
    members |= problem.extra
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(max(ceil(problem.retry_after.total_seconds()), 1)).encode()))
    if kind.code == "too_large":
        # The rest of the body is not read: the connection cannot be used again.
        headers.append((b"connection", b"close"))
    return Answer(kind.status, PROBLEM_JSON.encode(), _encode(members), tuple(headers))


def answer_of_bug(request_id: str) -> Answer:
    kind = PROBLEMS["internal"]
    members = _members(kind, "The error is in the log under `request_id`.", request_id)
    return Answer(kind.status, PROBLEM_JSON.encode(), _encode(members))


def wrong_method(allowed: Iterable[str]) -> ProblemError:
    allow = ", ".join(allowed)
    return ProblemError("method_not_allowed", f"Allowed here: {allow}.", headers={"Allow": allow})


async def deliver(answer: Answer, request_id: str, send: Send) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": _headers(answer, request_id)})
    await send({"type": "http.response.body", "body": answer.body})


def wire_of(answer: Answer, request_id: str, before: Iterable[Header], *, stays_open: bool) -> bytes:
    """A whole answer in the bytes of HTTP/1.1; `before` are headers that every answer of the server begins with."""
    return b"%b%bx-request-id: %b\r\n%bcontent-length: %d\r\n%b\r\n%b" % (
        STATUS_LINE[answer.status],
        _lines(tuple(before)),
        request_id.encode(),
        _lines(_usual_headers(answer.media, answer.headers)),
        len(answer.body),
        b"" if stays_open else b"connection: close\r\n",
        answer.body,
    )


@lru_cache(maxsize=64)
def _lines(headers: Headers) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


@lru_cache(maxsize=64)
def _usual_headers(media: bytes, own: Headers) -> Headers:
    """All but those that every answer has another value of."""
    names = {name for name, _ in own}
    every = (line for line in _EVERY_ANSWER if line[0] not in names)
    return (*every, *own, *(((b"content-type", media),) if media else ()))


def _headers(answer: Answer, request_id: str) -> list[Header]:
    headers = [(b"x-request-id", request_id.encode()), *_usual_headers(answer.media, answer.headers)]
    if answer.media:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    return headers


def start_of(answer: Answer, request_id: str) -> Message:
    """The beginning of an answer whose end nobody knows."""
    headers = [(b"x-request-id", request_id.encode()), *_EVERY_ANSWER, (b"content-type", answer.media), *answer.headers]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


def _members(kind: ProblemKind, detail: str, request_id: str) -> dict[str, Any]:
    return {
        "type": f"{ERRORS_PATH}#{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": kind.code,
        "todo": kind.todo,
        "request_id": request_id,
    }
