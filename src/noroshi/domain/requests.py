"""Requests: what a caller asks for, as it comes over the wire, and the answer (N4.1)."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

from noroshi.domain.ids import TenantId
from noroshi.domain.priorities import Priority
from noroshi.domain.records import KeyScope

MAX_RECIPIENTS = 10_000

UserIdText = Annotated[str, Meta(min_length=1, max_length=128)]
NameText = Annotated[str, Meta(min_length=1, max_length=128)]
KeyText = Annotated[str, Meta(min_length=1, max_length=255)]
OffsetTime = Annotated[datetime, Meta(tz=True)]


class Caller(Struct, frozen=True):
    """Who is calling: resolved from the API key."""

    tenant: TenantId
    key_id: str
    name: str
    scopes: frozenset[KeyScope]


class NotificationRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """`channels` left out means every channel the template has; `scheduled_at` needs an offset."""

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
