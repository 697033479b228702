"""What the API shows of what happened: notifications with their trail, dead letters, pauses, alerts, keys."""

from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from noroshi.domain.attachments import Attachment
from noroshi.domain.ids import DEFAULT_TENANT, BatchId, EndpointId, NotificationId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.states import Status


class LedgerEntry(Struct, frozen=True):
    at: Instant
    kind: str
    detail: dict[str, Any] = field(default_factory=dict)


class NotificationView(Struct, frozen=True):
    """`status` is the one people know: SENDING while a delivery is leased. `due_at` is set while it waits."""

    notification_id: NotificationId
    batch_id: BatchId
    user_id: str
    channel: str
    status: Status
    reason: str | None
    decided_at: Instant
    sent_at: Instant | None
    due_at: Instant | None
    retry_count: int
    error: str | None
    template_id: str | None = None
    template_version: int | None = None
    template_locale: str | None = None
    trail: tuple[LedgerEntry, ...] = ()


class DeadLetter(Struct, frozen=True):
    """`dead_letter_id` is shown to people; `endpoint_id` 0 means the notification never had a delivery."""

    dead_letter_id: int
    notification_id: NotificationId
    endpoint_id: EndpointId
    user_id: str
    channel: str
    priority: str
    category: str
    code: str
    error: str
    tries: int
    at: Instant
    trail: tuple[LedgerEntry, ...] = ()


class DeadLetterFilter(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything named must match; at least one must be named when many are replayed or discarded."""

    channel: str | None = None
    code: str | None = None
    category: str | None = None
    user_id: str | None = None
    batch_id: str | None = None


class PauseKind(StrEnum):
    ACCOUNT = "account"
    CHANNEL = "channel"
    CATEGORY = "category"
    EVERYTHING = "everything"


class Pause(Struct, frozen=True):
    pause_id: int
    kind: PauseKind
    name: str | None
    created_at: Instant
    created_by: str


class Alert(Struct, frozen=True):
    """Raised once; `count` says how often since."""

    kind: str
    severity: str
    subject: str
    tenant: TenantId = DEFAULT_TENANT


class RaisedAlert(Struct, frozen=True):
    """An alert as it is kept: raised `count` times from `since` to `last_at`."""

    kind: str
    severity: str
    subject: str
    since: Instant
    last_at: Instant
    count: int


class Workload(Struct, frozen=True):
    """What is not finished, in deliveries. `waiting`: when the first ready one of a lane is or was due."""

    unfinished: int
    waiting: dict[Lane, Instant]
    open_breakers: tuple[str, ...]
    blocked: dict[str, Instant]


class CaughtMessage(Struct, frozen=True):
    """What the catcher got instead of a provider. `address` is masked: a viewer is not a leak."""

    caught_id: int
    channel: str
    user_id: str
    notification_id: NotificationId
    address: str
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]
    caught_at: Instant
    attachments: tuple[Attachment, ...] = ()


class KeyScope(StrEnum):
    SEND = "send"
    READ = "read"
    ADMIN = "admin"


class ApiKey(Struct, frozen=True):
    """A stored key without its secret: `digest` is HMAC-SHA256 with the server's pepper."""

    key_id: str
    tenant: TenantId
    name: str
    scopes: tuple[KeyScope, ...]
    digest: bytes
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    per_minute: int | None = None


class StatusCounts(Struct, frozen=True):
    """Notifications of one batch by (channel, status); `undecided` are recipients not yet addressed."""

    by_channel: dict[tuple[str, Status], int]
    undecided_recipients: int
    channels: tuple[str, ...]
    is_cancelled: bool
