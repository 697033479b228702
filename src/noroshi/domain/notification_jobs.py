"""Notification jobs: what a customer is to be told about a reservation, and what became of it (L1, L3, L4)."""

from enum import StrEnum
from typing import NewType

from msgspec import Struct

from noroshi.domain.instants import Instant
from noroshi.domain.reservations import Customer, Farm, FarmId, ReminderPolicy, Reservation, ReservationId

JobId = NewType("JobId", int)

MAX_ATTEMPTS = 5


class JobKind(StrEnum):
    CONFIRMATION = "CONFIRMATION"
    REMINDER = "REMINDER"
    CANCEL_COMPLETED = "CANCEL_COMPLETED"


class JobStatus(StrEnum):
    """What is stored."""

    PENDING = "PENDING"
    SENT = "SENT"
    FAILED = "FAILED"


class DisplayState(StrEnum):
    """What an operator sees: DASH where the rules want no job, NONE where one should be and is not."""

    PENDING = "PENDING"
    SENT = "SENT"
    FAILED = "FAILED"
    DASH = "DASH"
    NONE = "NONE"


class NewJob(Struct, frozen=True):
    """`message_text` is rendered when the job is made: what an operator sees is what is sent."""

    kind: JobKind
    scheduled_at: Instant
    message_text: str


class Job(Struct, frozen=True, kw_only=True):
    job_id: JobId
    reservation_id: ReservationId
    farm_id: FarmId
    kind: JobKind
    scheduled_at: Instant
    status: JobStatus
    attempt_count: int
    last_error: str | None
    message_text: str
    has_line_user_id: bool
    created_at: Instant
    updated_at: Instant


class Booking(Struct, frozen=True):
    """A reservation with everything that is said about it; at most one job of each kind."""

    reservation: Reservation
    farm: Farm
    customer: Customer
    jobs: tuple[Job, ...] = ()

    def job(self, kind: JobKind) -> Job | None:
        return next((job for job in self.jobs if job.kind is kind), None)


class PaymentVerdict(StrEnum):
    """What a payment did."""

    CONFIRMED = "confirmed"
    REPEATED = "repeated"
    CANCELLED = "cancelled"
    AMOUNT_TOO_LOW = "amount_too_low"
    WRONG_CURRENCY = "wrong_currency"
    UNKNOWN_RESERVATION = "unknown_reservation"
    WRONG_MODE = "wrong_mode"
    IGNORED = "ignored"


class Confirmation(Struct, frozen=True):
    """What a payment changes: nothing unless it is recorded; a cancelled reservation stays so and gets no jobs, and
    what is too little is recorded for people to see, and pays for nothing."""

    verdict: PaymentVerdict
    is_recorded: bool = False
    policy: ReminderPolicy | None = None
    jobs: tuple[NewJob, ...] = ()


class CancelVerdict(StrEnum):
    CANCELLED = "cancelled"
    REPEATED = "repeated"
    PICKUP_OVER = "pickup_over"


class Cancellation(Struct, frozen=True):
    verdict: CancelVerdict
    jobs: tuple[NewJob, ...] = ()


class ClaimFacts(Struct, frozen=True, kw_only=True):
    """What decides about one job. `open_since` is when its first attempt without a result began; `is_asked`: a person
    named this very job."""

    job: Job
    now: Instant
    event_end: Instant
    is_cancelled: bool
    open_since: Instant | None = None
    is_asked: bool = False


class ClaimVerdict(StrEnum):
    SEND = "send"
    SKIP = "skip"
    FAIL = "fail"
    REFUSE = "refuse"


class ClaimDecision(Struct, frozen=True):
    """`error` says why it is not sent."""

    verdict: ClaimVerdict
    error: str | None = None


class Claim(Struct, frozen=True):
    """A job as it stands after the claim. `attempt` is the number of the attempt that was begun for SEND."""

    before: Job
    after: Job
    decision: ClaimDecision
    attempt: int = 0
    line_user_id: str = ""


class LeaseAnswer(StrEnum):
    TAKEN = "taken"
    BUSY = "busy"
    PAUSED = "paused"


class DueJobs(Struct, frozen=True):
    """`total` counts all that are due, `facts` are those within the limit."""

    now: Instant
    total: int
    facts: tuple[ClaimFacts, ...] = ()
