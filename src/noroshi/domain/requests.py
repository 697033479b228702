"""Requests: what a caller asks for, as it comes over the wire, and the answer (N4.1)."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

from noroshi.domain.attachments import MAX_ATTACHMENTS, AttachmentBody, check_attachments
from noroshi.domain.bodies import BodyDecoder
from noroshi.domain.channels import CHANNELS
from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant, NaiveTimeError, at
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope

MAX_RECIPIENTS = 10_000
MAX_REQUEST = 12_000_000
"""Bytes: base64 makes seven million of the largest attachments, and the rest has the room of every other body."""

MULTILINE = frozenset({"data"})
"""The fields in whose values tabs and line breaks are allowed."""

UserIdText = Annotated[str, Meta(min_length=1, max_length=128)]
NameText = Annotated[str, Meta(min_length=1, max_length=128)]
KeyText = Annotated[str, Meta(min_length=1, max_length=255)]
OffsetTime = Annotated[datetime, Meta(tz=True)]


class Caller(Struct, frozen=True):
    """Who is calling: resolved from the API key. With a person's pass it is that person, `until` it expires: who has
    no scope and may enter their own routes only."""

    tenant: TenantId
    key_id: str
    name: str
    scopes: frozenset[KeyScope]
    user_id: str | None = None
    until: Instant | None = None


class NotificationRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """`channels` left out means every channel the template has; `scheduled_at` needs an offset. Attachments go with
    e-mail only; the other channels leave them out."""

    user_ids: Annotated[list[UserIdText], Meta(min_length=1, max_length=MAX_RECIPIENTS)]
    template_id: NameText
    channels: Annotated[list[str], Meta(min_length=1, max_length=16)] | UnsetType = UNSET
    data: dict[str, Any] = field(default_factory=dict)
    priority: Priority = Priority.NORMAL
    scheduled_at: OffsetTime | None = None
    idempotency_key: KeyText | None = None
    category: NameText = "general"
    strategy: str | None = None
    expires_at: OffsetTime | None = None
    digest_key: NameText | None = None
    # Left out it is nowhere in the fingerprint, as before there were any: keys outlive a new version.
    attachments: Annotated[list[AttachmentBody], Meta(max_length=MAX_ATTACHMENTS)] | UnsetType = UNSET


_decode = BodyDecoder(NotificationRequest, MULTILINE).decode


def read_request(body: bytes) -> NotificationRequest:
    """The request that a body asks for, checked as far as that can be without the store."""
    request = _decode(body)
    check_request(request)
    return request


def check_request(request: NotificationRequest) -> None:
    """Refuses what the shape alone allows and no store would make right."""
    for number, channel in enumerate(request.channels or ()):
        if channel not in CHANNELS:
            known = ", ".join(CHANNELS)
            raise ProblemError("bad_field", f"no such channel; there are {known}", field=f"channels[{number}]")
    if request.strategy not in (None, "all"):
        raise ProblemError("strategy_not_supported", "only `all` is supported", field="strategy")
    if "user" in request.data:
        raise ProblemError("bad_field", "the key `user` is taken by the person", field="data.user")
    check_attachments(request.attachments or ())
    scheduled_at = instant_of(request.scheduled_at, "scheduled_at")
    expires_at = instant_of(request.expires_at, "expires_at")
    # Compared with what the caller says, not with now: a call repeated later must not be refused for its age.
    if expires_at is not None and scheduled_at is not None and expires_at <= scheduled_at:
        raise ProblemError("bad_field", "it would expire before it is sent", field="expires_at")


def instant_of(moment: datetime | None, field: str) -> Instant | None:
    """The instant that a field of the request names."""
    if moment is None:
        return None
    try:
        return at(moment)
    except NaiveTimeError:
        raise ProblemError(
            "bad_field", "the time has no offset; write 2026-01-31T09:00:00+09:00 or ...Z", field=field
        ) from None


class RejectionText(Struct, frozen=True):
    user_id: str
    code: str


class AcceptedAnswer(Struct, frozen=True, omit_defaults=False):
    """The 202: `status` is `queued` once all are decided, else `processing`, or `scheduled`."""

    batch_id: str
    status: str
    total_recipients: int
    accepted: int
    rejected: int
    undecided: int
    reasons: dict[str, int]
    rejections: list[RejectionText]
    rejections_url: str | None = None
