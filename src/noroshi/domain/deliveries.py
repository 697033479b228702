"""Deliveries as dispatch meets them: a claim taken from a lane, and the settlement that ends it."""

from datetime import timedelta
from enum import IntEnum
from typing import Any, NamedTuple

from msgspec import Struct

from noroshi.domain.accounts import BreakerState
from noroshi.domain.attachments import Attachment
from noroshi.domain.ids import EndpointId, NotificationId, TenantId
from noroshi.domain.inbox import Draft, Filled
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.templates import Content, TemplateVersion


class DeliveryKey(NamedTuple):
    tenant: TenantId
    notification_id: NotificationId
    endpoint_id: EndpointId


class Recipient(Struct, frozen=True):
    """The person as a template may see them (N2.7)."""

    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    attributes: dict[str, Any]


class Claim(Struct, frozen=True):
    """A delivery leased to us, with everything its composing and sending needs. `fence` rises with every
    claim; `claims` counts those without an outcome, this one included; `tries` the outcomes so far.
    `data` is the batch's data; `address` is open: the user id for endpoint 0, empty if there is nobody or nothing
    left to send to."""

    key: DeliveryKey
    lane: Lane
    fence: int
    claims: int
    tries: int
    category: str
    wanted_at: Instant
    expires_at: Instant | None
    lease_until: Instant
    recipient: Recipient
    address: str
    data: dict[str, Any]
    template: TemplateVersion
    is_cancelled: bool
    attachments: tuple[Attachment, ...] = ()


class Taken(Struct, frozen=True):
    """`next_due_at`: when the lane's next ready delivery falls due, if it has one that is not due yet;
    `has_more`: more were due than were taken. `wait`: how long the account's pace makes these claims wait before they
    are sent; without claims, how long it lets nothing go. `breaker`: how it stands, if that kept everything back."""

    claims: list[Claim]
    next_due_at: Instant | None
    has_more: bool
    wait: timedelta = timedelta(0)
    breaker: BreakerState | None = None


class Verdict(IntEnum):
    """How a settlement ends or continues a delivery."""

    SENT = 1
    RETRY = 2
    DEAD = 3
    RELEASE = 4
    SUPPRESSED = 5
    CANCELLED = 6
    RESEND = 7
    DELIVERED = 8


class Settlement(NamedTuple):
    """What becomes of a claim. RETRY: ready again at `due_at`, tries + 1, claims 0. RELEASE: ready again at
    `due_at`, nothing used up, claims as before the claim. RESEND: the outcome was never learnt (a crash); ready
    again at `due_at` with its claims kept. DELIVERED: the draft becomes an entry of its person's inbox. `is_gone`
    deactivates the endpoint. `started_at` is when the attempt began (None: no attempt was made)."""

    key: DeliveryKey
    fence: int
    verdict: Verdict
    at: Instant
    started_at: Instant | None = None
    due_at: Instant | None = None
    message_id: str | None = None
    code: str = ""
    error: str = ""
    is_gone: bool = False
    draft: Draft | None = None


class Expired(Struct, frozen=True):
    """A lease that ran out (or whose process is gone) without an outcome, for the sweeper to judge."""

    key: DeliveryKey
    lane: Lane
    fence: int
    claims: int
    tries: int
    category: str
    expires_at: Instant | None
    wanted_at: Instant = Instant(0)


class Settled(Struct, frozen=True):
    """What a settling commit did: how many deliveries ended, which results came too late to count, and what came into
    which inboxes."""

    finished: int
    late: tuple[DeliveryKey, ...]
    dead_letters: int
    filled: tuple[Filled, ...] = ()


class Attempt(Struct, frozen=True):
    """One try, as a channel gets it. The key names the delivery: the same on every try. The contents of the
    attachments, which may be large, a channel asks for itself."""

    key: DeliveryKey
    lane: Lane
    category: str
    recipient: Recipient
    address: str
    content: Content
    number: int
    expires_at: Instant | None
    attachments: tuple[Attachment, ...] = ()
