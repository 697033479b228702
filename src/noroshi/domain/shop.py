"""What the shop shows of reservations: reports of the sender, the operator's view, previews, the customer's page."""

from enum import StrEnum

from msgspec import Struct

from noroshi.domain.instants import Instant
from noroshi.domain.notification_jobs import Booking, DisplayState, Job, JobId, JobKind, JobStatus, NewJob
from noroshi.domain.reservations import FarmId, ReservationId


class SendResult(StrEnum):
    SENT = "SENT"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    DRY_RUN = "DRY_RUN"


class JobReport(Struct, frozen=True, kw_only=True):
    job_id: JobId
    reservation_id: ReservationId
    kind: JobKind
    status_before: JobStatus
    status_after: JobStatus
    attempt_count_before: int
    attempt_count_after: int
    result: SendResult
    error: str | None = None


class SendSummary(Struct, frozen=True, kw_only=True):
    """`now` is UTC; `total_candidates` are all that were due, whatever the limit."""

    now: str
    total_candidates: int
    processed: int
    sent: int
    skipped: int
    failed: int
    dry_run: bool
    dry_run_count: int


class SendReport(Struct, frozen=True, kw_only=True):
    """The answer of every run of the sender (L8)."""

    ok: bool = True
    summary: SendSummary
    results: list[JobReport]


class Why(StrEnum):
    """Why there is no job, or why one may not be sent again."""

    UNCONFIRMED = "unconfirmed"
    PAID_TOO_LITTLE = "paid_too_little"
    PAID_AFTER_CANCELLATION = "paid_after_cancellation"
    TOO_SOON = "too_soon"
    NOT_AFTER_CONFIRMATION = "not_after_confirmation"
    NOT_BEFORE_PICKUP = "not_before_pickup"
    CANCELLED = "cancelled"
    NOT_CANCELLED = "not_cancelled"
    MISSING = "missing"
    NOT_FAILED = "not_failed"
    FINAL = "final"
    TOO_MANY_ATTEMPTS = "too_many_attempts"
    RESERVATION_CANCELLED = "reservation_cancelled"


SENTENCES: dict[Why, str] = {
    Why.UNCONFIRMED: "The reservation is not confirmed: no payment in yen has come in for it.",
    Why.PAID_TOO_LITTLE: "The reservation is not confirmed: what came in for it is less than its total.",
    Why.PAID_AFTER_CANCELLATION: "The payment came in after the cancellation: nothing was confirmed, and whether it is "
    "refunded is for a person to decide.",
    Why.TOO_SOON: "It was confirmed less than 48 hours before the pickup: nobody is reminded so shortly before.",
    Why.NOT_AFTER_CONFIRMATION: "The reminder would have been due no later than the confirmation itself.",
    Why.NOT_BEFORE_PICKUP: "The reminder would have been due no earlier than the pickup.",
    Why.CANCELLED: "The reservation was cancelled before a reminder was sent.",
    Why.NOT_CANCELLED: "The reservation is not cancelled.",
    Why.MISSING: "By the rules there should be a job, and there is none: somebody has to look into it.",
    Why.NOT_FAILED: "Only what has failed can be sent again.",
    Why.FINAL: "A notice of cancellation is tried once, and its failure is final: tell the customer in another way.",
    Why.TOO_MANY_ATTEMPTS: "It was tried five times, which is the most: tell the customer in another way.",
    Why.RESERVATION_CANCELLED: "Its reservation is cancelled: what it says is no longer true. Nobody is to be told.",
}
"""In English, as the API says them; the pages have them in Japanese."""


class KindView(Struct, frozen=True):
    """One kind of notification of one reservation, as the operator sees it. `no_resend` None: the button is there;
    `doubles_after`: LINE may have taken it, and from then on it may arrive twice if it is sent again."""

    kind: JobKind
    state: DisplayState
    why: Why | None = None
    job: Job | None = None
    no_resend: Why | None = None
    doubles_after: Instant | None = None


class BookingView(Struct, frozen=True):
    booking: Booking
    kinds: tuple[KindView, ...]
    link: str


class NotificationContext(Struct, frozen=True, kw_only=True):
    """Everything a message may say (L13). What is absent is None, and left out of the text."""

    reservation_id: ReservationId
    farm_id: FarmId
    customer_line_user_id: str | None
    pickup_display: str
    pickup_place_name: str | None
    pickup_map_url: str | None
    pickup_detail_memo: str | None
    pickup_code: str
    qty_5: int
    qty_10: int
    qty_25: int
    subtotal_5: int
    subtotal_10: int
    subtotal_25: int
    rice_subtotal: int
    label_5kg: str
    label_10kg: str
    label_25kg: str


class Preview(Struct, frozen=True):
    """What would be said and made; nothing is kept or sent."""

    context: NotificationContext
    texts: dict[JobKind, str]
    existing: tuple[Job, ...]
    planned: tuple[NewJob, ...]


class BookedView(Struct, frozen=True):
    """The customer's page: `is_expired` after the end, `is_expired_for_display` a quarter of an hour later (L14)."""

    booking: Booking
    context: NotificationContext
    event_start: Instant
    event_end: Instant
    is_expired: bool
    is_expired_for_display: bool
