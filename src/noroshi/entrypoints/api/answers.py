"""Answers: what a route returned or raised in; status, headers and bytes on the wire out."""

from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.types import Message, Send

from noroshi.domain.problems import PROBLEMS, ProblemError, ProblemKind
from noroshi.domain.requests import AcceptedAnswer
from noroshi.entrypoints.api.calls import Row

PROBLEM_JSON = "application/problem+json"

ERRORS_PATH = "/docs/errors"
"""Where the page is that has an anchor for every code."""

Headers = tuple[tuple[bytes, bytes], ...]

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
    every = _EVERY_ANSWER
    if answer.headers:
        own = {name for name, _ in answer.headers}
        every = tuple(line for line in every if line[0] not in own)
    headers = [(b"x-request-id", request_id.encode()), *every, *answer.headers]
    if answer.media:
        headers.append((b"content-type", answer.media))
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


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
