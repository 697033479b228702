"""Outcomes of Courier: what became of a call in, what that means for the message or for the account out."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.outgoing import Answered, NoAnswer, NotAllowed, NotSent, OutgoingReply


class _Taken(Struct):
    id: str


_BY_STATUS: dict[int, Callable[[str], Outcome]] = {
    400: Rejected,  # malformed
    401: Misconfigured,  # token unknown
    404: Gone,  # no such number
    429: lambda code: Retry(code, scope=Scope.ACCOUNT),  # too fast
}


def outcome_of(reply: OutgoingReply) -> Outcome:
    match reply:
        case Answered():
            return _of_answer(reply)
        case NoAnswer(code=code, error=error):
            return Unknown(code, error)
        case NotSent(code=code, error=error):
            return Retry(code, error, scope=Scope.ACCOUNT)
        case NotAllowed(error=error):
            return Misconfigured("COURIER_URL", error)


def _of_answer(answer: Answered) -> Outcome:
    code = f"COURIER_{answer.status}"
    if answer.status == 202:
        try:
            return Sent(msgspec.json.decode(answer.body, type=_Taken).id)
        except msgspec.DecodeError:
            return Unknown(code, "the answer cannot be read")
    return _BY_STATUS.get(answer.status, Retry if answer.status >= 500 else Rejected)(code)
