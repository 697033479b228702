"""What passes between the store and the address stage: facts about a slice in, changes out."""

from typing import NamedTuple

from msgspec import Struct, field

from noroshi.domain.batches import BatchHead
from noroshi.domain.ids import BatchId, EndpointId, NotificationId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.people import EndpointFact, Preferences
from noroshi.domain.states import Status
from noroshi.domain.templates import TemplateChoice


class Candidate(NamedTuple):
    """One recipient to decide. A recipient met for the first time is decided on all channels of the batch;
    one that a hold releases only on `held_channel`, the number of that channel in the batch."""

    batch: BatchHead
    position: int
    user_id: str
    held_channel: int | None


class Person(Struct, frozen=True):
    """What addressing must know of a user."""

    locale: str | None
    timezone: str | None
    preferences: Preferences | None
    endpoints: tuple[EndpointFact, ...]


class Usage(NamedTuple):
    """Counted notifications of one user on one channel in the hour and day before now, and when the oldest
    of each was counted."""

    hour: int
    day: int
    oldest_in_hour: Instant
    oldest_in_day: Instant


class SliceFacts(Struct):
    """Everything the decision needs, read in one go. A user missing from `people` was never registered;
    `duplicates` holds the ids of notifications whose content the same person already has on that channel."""

    now: Instant
    candidates: list[Candidate]
    people: dict[tuple[TenantId, str], Person]
    usage: dict[tuple[TenantId, str, str], Usage]
    duplicates: set[NotificationId]
    templates: dict[tuple[TenantId, str], list[TemplateChoice]]


class Standing:
    """What a notification row means to limits and duplicates: nothing, owner of its content, or also counted."""

    NONE = 0
    KEPT = 1
    COUNTED = 2


class NotificationRow(NamedTuple):
    """A decided notification, in the order of the table's columns. `at` is when it was decided."""

    tenant: TenantId
    notification_id: NotificationId
    user_id: str
    channel: str
    status: Status
    reason: str | None
    at: Instant
    content_hash: int
    standing: int
    template_row: int | None


class DeliveryRow(NamedTuple):
    """A delivery for its lane, in the order of the table's columns."""

    tenant: TenantId
    notification_id: NotificationId
    endpoint_id: EndpointId
    lane: str
    due_at: Instant
    user_id: str
    category: str
    template_row: int
    expires_at: Instant | None
    wanted_at: Instant


class HoldRow(NamedTuple):
    """A notification that waits until `due_at` and is then decided again."""

    tenant: TenantId
    notification_id: NotificationId
    due_at: Instant
    reason: str


class LedgerRow(NamedTuple):
    """One decision or outcome. `kind` is past tense; `detail` is JSON text or None."""

    tenant: TenantId
    notification_id: NotificationId
    at: Instant
    kind: str
    detail: str | None


class DeadLetterRow(NamedTuple):
    """A notification (endpoint 0) or delivery that ended without success, with what a replay needs."""

    tenant: TenantId
    notification_id: NotificationId
    endpoint_id: EndpointId
    lane: str
    user_id: str
    category: str
    template_row: int | None
    expires_at: Instant | None
    wanted_at: Instant
    code: str
    error: str
    tries: int
    at: Instant


class Rejected(NamedTuple):
    """A recipient met for the first time who gets nothing on any channel, and why."""

    batch_id: BatchId
    position: int
    user_id: str
    code: str


class SliceChanges(Struct):
    """What the decision wants written; for held candidates `notifications` replace their rows. Recipients met for the
    first time who are not among the `rejected` are accepted."""

    notifications: list[NotificationRow] = field(default_factory=list)
    deliveries: list[DeliveryRow] = field(default_factory=list)
    holds: list[HoldRow] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    dead_letters: list[DeadLetterRow] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
