"""The fields of a request in, the body that the store keeps out, checked by the rules of the API."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Required, TypedDict

import msgspec

from noroshi.domain.bodies import MAX_BODY, check_text
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import MAX_REQUEST, read_request
from noroshi.enqueueing.errors import BadRequestError, bad_request

_LONGEST_NAME = 128

_encode = msgspec.json.Encoder().encode


class RequestFields(TypedDict, total=False):
    """What the API takes (N4.1). What is left out, or None, is as there. The content of an attachment is bytes."""

    user_ids: Required[list[str] | tuple[str, ...]]
    template_id: Required[str]
    channels: list[str] | tuple[str, ...] | None
    data: Mapping[str, Any] | None
    priority: Priority | str
    scheduled_at: datetime | None
    idempotency_key: str | None
    category: str
    strategy: str | None
    expires_at: datetime | None
    digest_key: str | None
    attachments: Sequence[Mapping[str, Any]] | None


def body_of(fields: RequestFields) -> bytes:
    """Raises BadRequestError."""
    given = {name: _encoded(name, value) for name, value in fields.items() if value is not None}
    body = _encode(given)
    limit, largest = (MAX_REQUEST, "attachments") if given.get("attachments") else (MAX_BODY, "data")
    if len(body) > limit:
        raise BadRequestError("too_large", f"the request is over {limit:,} bytes", largest)
    try:
        read_request(body)
    except ProblemError as problem:
        raise bad_request(problem) from None
    return body


def check_name(name: object, field: str) -> None:
    """Raises BadRequestError unless it is 1 to 128 characters without control characters."""
    if not (isinstance(name, str) and 1 <= len(name) <= _LONGEST_NAME):
        raise BadRequestError("bad_field", f"expected 1 to {_LONGEST_NAME} characters", field)
    try:
        check_text(name, field)
    except ProblemError as problem:
        raise bad_request(problem) from None


def _encoded(field: str, value: object) -> msgspec.Raw:
    if not _is_finite(value):
        raise BadRequestError("bad_field", "JSON has no NaN and no infinity", field)
    try:
        return msgspec.Raw(_encode(value))
    except RecursionError:
        raise BadRequestError("bad_field", "nested too deeply", field) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRequestError("bad_field", f"cannot be written as JSON ({error})", field) from None


def _is_finite(value: object) -> bool:
    """msgspec would write null instead."""
    left: list[object] = [value]
    while left:
        one = left.pop()
        if isinstance(one, float) and not isfinite(one):
            return False
        if isinstance(one, Mapping):
            left.extend(one.values())
        elif isinstance(one, Iterable) and not isinstance(one, str | bytes):
            left.extend(one)
    return True
