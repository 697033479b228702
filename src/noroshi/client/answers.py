"""Answers: what the API says, as structs. Fields that a newer server adds are passed over.

A test holds every struct to the API's own description.
"""

from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from noroshi.domain.inbox import InboxContent

T = TypeVar("T")


class Page(Struct, Generic[T], frozen=True):
    """`next_cursor` is None on the last page."""

    items: list[T]
    next_cursor: str | None


class TrailEntry(Struct, frozen=True):
    """One decision or outcome; `sentence` says it in words."""

    at: datetime
    kind: str
    detail: dict[str, Any]
    sentence: str | None


class Notification(Struct, frozen=True):
    """One batch to one user on one channel, with the trail that explains its status."""

    notification_id: str
    batch_id: str
    user_id: str
    channel: str
    status: str
    reason: str | None
    decided_at: datetime
    sent_at: datetime | None
    due_at: datetime | None
    retry_count: int
    error: str | None
    template_id: str | None
    template_version: int | None
    template_locale: str | None
    trail: list[TrailEntry]


class Attachment(Struct, frozen=True):
    """What was attached; `size` is in bytes."""

    filename: str
    content_type: str
    size: int
    content_id: str | None = None


class Batch(Struct, frozen=True):
    """A batch and a page of its notifications."""

    batch_id: str
    template_id: str
    channels: list[str]
    priority: str
    category: str
    digest_key: str | None
    status: str
    created_at: datetime
    created_by: str
    scheduled_at: datetime | None
    due_at: datetime
    expires_at: datetime | None
    cancelled_at: datetime | None
    total_recipients: int
    accepted: int
    rejected: int
    undecided: int
    reasons: dict[str, int]
    items: list[Notification]
    next_cursor: str | None
    attachments: list[Attachment] = []


class Sums(Struct, frozen=True):
    """In notifications (user x channel), adding up to total."""

    total: int
    delivered: int
    failed: int
    pending: int
    suppressed: int
    cancelled: int


class BatchEntry(Struct, frozen=True):
    """A batch in a list; `sums` is None for large ones."""

    batch_id: str
    template_id: str
    channels: list[str]
    priority: str
    category: str
    status: str
    created_at: datetime
    created_by: str
    scheduled_at: datetime | None
    cancelled_at: datetime | None
    total_recipients: int
    accepted: int
    rejected: int
    undecided: int
    sums: Sums | None


class BatchStatus(Struct, frozen=True):
    """The sums of a batch, and the raw count of each status."""

    batch_id: str
    total: int
    delivered: int
    failed: int
    pending: int
    suppressed: int
    cancelled: int
    undecided: int
    delivery_rate: float
    statuses: dict[str, int]


class Rejection(Struct, frozen=True):
    user_id: str
    code: str


class Cancelled(Struct, frozen=True):
    batch_id: str
    cancelled: int


class User(Struct, frozen=True):
    user_id: str
    email: str | None
    phone: str | None
    line_user_id: str | None
    name: str | None
    locale: str | None
    timezone: str | None
    timezone_confirmed: bool
    attributes: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class UserEntry(Struct, frozen=True):
    """A person in a list, without addresses."""

    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    reachable_by: list[str]
    created_at: datetime
    updated_at: datetime


class Device(Struct, frozen=True):
    token_id: int
    user_id: str
    platform: str
    device_token: str
    app_version: str | None
    is_active: bool
    created_at: datetime
    last_used_at: datetime


class InboxEntry(Struct, frozen=True):
    """A notification in a person's inbox. The `entry_id`s of one person rise without a gap."""

    entry_id: int
    notification_id: str
    category: str
    content: InboxContent
    created_at: datetime
    read_at: datetime | None
    archived_at: datetime | None


class InboxState(Struct, frozen=True):
    """`unread` counts what is neither read nor archived; `changes` rises when earlier entries were marked or went."""

    unread: int
    last_entry_id: int
    changes: int


class Marked(Struct, frozen=True):
    """`unread` is how many are left."""

    entry_id: int
    read_at: datetime | None
    archived_at: datetime | None
    unread: int


class ReadAll(Struct, frozen=True):
    """`read` counts what this call has read."""

    read: int
    unread: int


class Token(Struct, frozen=True):
    """Opens the inbox and the preferences of this person and nothing else."""

    user_id: str
    token: str
    expires_at: datetime


class Ticket(Struct, frozen=True):
    """Opens one stream or socket: `?ticket=...`."""

    ticket: str
    expires_at: datetime


class QuietHours(Struct, frozen=True):
    enabled: bool
    start: str
    end: str
    timezone: str | None


class Limit(Struct, frozen=True):
    per_hour: int
    per_day: int


class Preferences(Struct, frozen=True):
    """What holds for a person, whether they named it or not."""

    channels: dict[str, bool]
    categories: dict[str, bool]
    quiet_hours: QuietHours
    category_channels: dict[str, dict[str, bool]]
    frequency_limit: dict[str, Limit]
    locale: str | None
    timezone: str | None


class Window(Struct, frozen=True):
    """`reset` is when the oldest counted notification leaves the window."""

    limit: int
    remaining: int
    reset: datetime | None


class Windows(Struct, frozen=True):
    hour: Window
    day: Window


class RateLimits(Struct, frozen=True):
    """For priority normal, per channel."""

    user_id: str
    channels: dict[str, Windows]


class Version(Struct, frozen=True):
    """Which version of a template was added, or made current."""

    template_id: str
    version: int
    channel: str
    locale: str
    variant: str


class TemplateEntry(Struct, frozen=True):
    """A template in a list."""

    template_id: str
    channels: list[str]
    locales: list[str]
    version: int
    created_at: datetime
    updated_at: datetime


class TemplateVersion(Struct, frozen=True):
    """A version as it was stored."""

    template_id: str
    version: int
    channel: str
    locale: str
    variant: str
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]
    is_active: bool
    created_by: str
    created_at: datetime


class Preview(Struct, frozen=True):
    """What a person would get; `version` is None for a draft."""

    channel: str
    locale: str
    variant: str
    version: int | None
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]


class DeadLetter(Struct, frozen=True):
    dead_letter_id: int
    notification_id: str
    endpoint_id: int
    user_id: str
    channel: str
    priority: str
    category: str
    code: str
    error: str
    tries: int
    at: datetime
    trail: list[TrailEntry]


class Replayed(Struct, frozen=True):
    """`untouched` can have no delivery; `is_complete` is false if the call should be made again."""

    replayed: int
    untouched: int
    is_complete: bool


class Discarded(Struct, frozen=True):
    discarded: int
    is_complete: bool


class Enqueued(Struct, frozen=True):
    """A request that was written in the caller's own transaction: `batch_id` says what it became, `code` and `error`
    why it became nothing."""

    request_id: str
    state: str
    idempotency_key: str | None
    batch_id: str | None
    code: str | None
    error: str | None
    created_at: datetime
    created_by: str


class Pause(Struct, frozen=True):
    pause_id: int
    kind: str
    name: str | None
    created_at: datetime
    created_by: str


class Caught(Struct, frozen=True):
    """A message as its recipient would have got it; the address is masked."""

    caught_id: int
    channel: str
    user_id: str
    notification_id: str
    address: str
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]
    caught_at: datetime
    attachments: list[Attachment] = []


class Alert(Struct, frozen=True):
    kind: str
    severity: str
    subject: str
    since: datetime
    last_at: datetime
    count: int


class Readiness(Struct, frozen=True):
    """`notes` tell what an operator should know although the server is ready."""

    status: str
    notes: list[str]


class Lane(Struct, frozen=True):
    """One that holds ready deliveries; `due_at` is when the first of them is, or was, due."""

    channel: str
    account: str
    priority: str
    due_at: datetime


class Workload(Struct, frozen=True):
    """In deliveries, over all processes; `oldest_due_at` is None while nothing that is due waits."""

    unfinished: int
    oldest_due_at: datetime | None
    lanes: list[Lane]
    open_breakers: list[str]
    blocked: dict[str, datetime]
