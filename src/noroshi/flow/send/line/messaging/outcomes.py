"""Outcomes: what became of a push in, what that means for the message or for the account out.

A push that was not clearly refused may have been taken: it is tried again with its retry key, and LINE answers 409 if
it was.
"""

from datetime import timedelta
from enum import Enum, auto
from typing import Any

import msgspec

from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.outgoing import Answered, NoAnswer, NotAllowed, NotSent, OutgoingReply

MONTHLY_LIMIT = "LINE_MONTHLY_LIMIT"
RATE_LIMITED = "LINE_RATE_LIMITED"

_ACCEPTED_ID = "x-line-accepted-request-id"
_REQUEST_ID = "x-line-request-id"
_CONFLICT = 409
_TOO_MANY = 429


class Kind(Enum):
    """`LATER` concerns the message and `HOLD` the account."""

    SENT = auto()
    LATER = auto()
    HOLD = auto()
    GONE = auto()
    REJECTED = auto()
    CONFIG = auto()


_BY_STATUS: dict[int, Kind] = {
    200: Kind.SENT,
    202: Kind.SENT,
    400: Kind.REJECTED,  # `details` names the fault; Gone if that is the recipient alone
    401: Kind.CONFIG,  # token invalid or expired
    403: Kind.CONFIG,  # plan or feature not allowed
    404: Kind.CONFIG,  # no such path: the address is not LINE's
    409: Kind.SENT,  # a push with this retry key was taken before
    410: Kind.REJECTED,  # gone
    413: Kind.REJECTED,  # over 2 MB
    415: Kind.REJECTED,  # not JSON
}

_BY_LIMIT: tuple[tuple[str, Kind, str], ...] = (
    ("monthly limit", Kind.CONFIG, MONTHLY_LIMIT),  # until the month turns (in Japan) or the plan changes
    ("concurrent", Kind.LATER, "LINE_CONCURRENT"),  # audience and narrowcast
    ("", Kind.HOLD, RATE_LIMITED),
)
"""429 means three things, told apart by a part of the text; the last is for any other."""


def outcome_of(reply: OutgoingReply, to: str, rest: timedelta) -> Outcome:
    """`to` is left out of whatever is said; `rest` is how long to leave LINE alone if it gives no time itself."""
    match reply:
        case Answered():
            return _of_answer(reply, to, rest)
        case NoAnswer(code=code, error=error):
            return Unknown(code, error)
        case NotSent(code=code, error=error):
            return Retry(code, error, scope=Scope.ACCOUNT)
        case NotAllowed(error=error):
            return Misconfigured("LINE_URL", error)


def _of_answer(answer: Answered, to: str, rest: timedelta) -> Outcome:
    body = _read(answer.body)
    text = _text_of(body).replace(to, "…") if to else _text_of(body)
    kind, code = classify(answer.status, body)
    match kind:
        case Kind.SENT:
            if body is None or not answer.is_whole:
                return Unknown(f"LINE_{answer.status}", "the answer cannot be read")
            return Sent(_message_id(answer, body))
        case Kind.HOLD:
            return Retry(code, text, after_of(answer) or rest, Scope.ACCOUNT)
        case Kind.LATER:
            return Retry(code, text, after_of(answer))
        case Kind.GONE:
            return Gone(code, text)
        case Kind.CONFIG:
            return Misconfigured(code, text)
        case Kind.REJECTED:
            return Rejected(code, text)


def classify(status: int, body: dict[str, Any] | None) -> tuple[Kind, str]:
    """The kind of an answer, and the code by which dead letters are filtered."""
    code = f"LINE_{status}"
    if status == _TOO_MANY:
        text = _text_of(body).casefold()
        return next((kind, name) for part, kind, name in _BY_LIMIT if part in text)
    if status == 400 and _blames_recipient(body):
        return Kind.GONE, f"{code}_TO"
    found = _BY_STATUS.get(status)
    if found is not None:
        return found, code
    if status >= 500:  # may have been taken
        return Kind.LATER, code
    return (Kind.REJECTED if status >= 400 else Kind.CONFIG), code


def after_of(answer: Answered) -> timedelta | None:
    """LINE documents no Retry-After; if one stands there, it is seconds."""
    text = answer.headers.get("retry-after", "")
    return timedelta(seconds=int(text)) if text.isdecimal() and len(text) < 10 else None


def request_id_of(answer: Answered) -> str:
    """Of the push that was taken, now or before."""
    name = _ACCEPTED_ID if answer.status == _CONFLICT else _REQUEST_ID
    return answer.headers.get(name, "")


def _message_id(answer: Answered, body: dict[str, Any]) -> str:
    if answer.status == _CONFLICT and (accepted := request_id_of(answer)):
        return accepted
    named = [message["id"] for message in _objects(body, "sentMessages") if isinstance(message.get("id"), str)]
    return named[0] if named else request_id_of(answer)


def _blames_recipient(body: dict[str, Any] | None) -> bool:
    """Whether the recipient is all that is wrong. Nothing else may cost a person their endpoint."""
    faults = _objects(body or {}, "details")
    if faults:
        return all(fault.get("property") == "to" for fault in faults)
    return "the property, 'to', in the request body is invalid" in _text_of(body).casefold()


def _read(raw: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _objects(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = body.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _text_of(body: dict[str, Any] | None) -> str:
    """LINE's words: the message, and which property has which fault."""
    if body is None:
        return ""
    faults = [f"{fault.get('property', '')}: {fault.get('message', '')}" for fault in _objects(body, "details")]
    return "; ".join([str(body.get("message", "")), *faults])
