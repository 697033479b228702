"""Receipts: a webhook's body with its signature in; who can be reached no longer, or again, out."""

import hmac
from base64 import b64encode
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from noroshi.domain.channels import Needs
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.receipts import Reach
from noroshi.flow.send.line.messaging.payload import is_user_id

SIGNATURE = "x-line-signature"
UNFOLLOWED = "unfollowed"

_REACHABLE = {"follow": True, "unfollow": False}
_MILLISECOND = 1_000


class _Source(Struct, frozen=True):
    userId: str = ""  # noqa: N815 - LINE's spelling


class _Event(Struct, frozen=True):
    """What every event has. `timestamp` is in milliseconds and decides: redelivered events come in any order."""

    type: str
    timestamp: int
    source: _Source = _Source()


class _Webhook(Struct, frozen=True):
    events: list[_Event]


_decode = msgspec.json.Decoder(_Webhook).decode


def is_signed(secrets: Sequence[str], raw: bytes, signature: str) -> bool:
    """Whether one of the secrets made the signature, over the body as it came."""
    given = signature.encode("utf-8", "replace")
    matches = [hmac.compare_digest(b64encode(hmac.digest(one.encode(), raw, "sha256")), given) for one in secrets]
    return any(matches)


def read_reaches(raw: bytes) -> list[Reach]:
    """Every `follow` and `unfollow` among the events; the rest says nothing that we act on."""
    try:
        webhook = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProblemError("bad_json", "Not a webhook of LINE's Messaging API.") from None
    return [
        Reach(
            kind=Needs.LINE.value,
            address=event.source.userId,
            at=Instant(event.timestamp * _MILLISECOND),
            is_reachable=_REACHABLE[event.type],
            reason=UNFOLLOWED,
        )
        for event in webhook.events
        if event.type in _REACHABLE and is_user_id(event.source.userId)
    ]
