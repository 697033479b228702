"""Notification jobs: made with what they tell of, in one commit; claimed and recorded by the one sender at a time."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.notification_jobs import (
    Booking,
    Cancellation,
    CancelVerdict,
    Claim,
    ClaimDecision,
    ClaimFacts,
    Confirmation,
    DueJobs,
    Job,
    JobId,
    LeaseAnswer,
    PaymentVerdict,
)
from noroshi.domain.reservations import Payment, ReservationId

DecideConfirmation = Callable[[Booking, Payment, Instant], Confirmation]
DecideCancellation = Callable[[Booking, Instant], Cancellation]
DecideClaim = Callable[[ClaimFacts], ClaimDecision]


class NotificationJobs(Protocol):
    async def schedule_for_reservation(
        self, tenant: TenantId, payment: Payment, decide: DecideConfirmation
    ) -> PaymentVerdict:
        """Records the payment, confirms the reservation and adds the jobs it lacks."""
        ...

    async def schedule_cancel_completed(
        self, tenant: TenantId, reservation_id: ReservationId, decide: DecideCancellation
    ) -> CancelVerdict | None:
        """Cancels the reservation, deletes its reminder while that is pending and nobody has claimed it, and adds
        the job that says so. None: there is no such reservation."""
        ...

    async def list_due(self, tenant: TenantId, first: ReservationId | None, limit: int) -> DueJobs:
        """Pending and due, oldest first, those of the reservation `first` before all others; what has been tried too
        often stands last, so that it keeps nobody waiting."""
        ...

    async def find_facts(self, tenant: TenantId, job_id: JobId) -> ClaimFacts | None: ...

    async def take_lease(self, tenant: TenantId, holder: str, span: timedelta) -> LeaseAnswer:
        """Leave to be the one who sends, for `span`; PAUSED while an operator has stopped LINE or everything."""
        ...

    async def release_lease(self, tenant: TenantId, holder: str) -> None: ...

    async def claim(
        self, tenant: TenantId, job_id: JobId, holder: str, span: timedelta, decide: DecideClaim, *, is_asked: bool
    ) -> Claim | None:
        """Reads the job again and does what is decided: for SEND an attempt is begun, and a FAILED job is PENDING; for
        FAIL it is FAILED. The lease lasts for `span` from now. None: the lease is another's, or the job is gone."""
        ...

    async def record(self, tenant: TenantId, job_id: JobId, attempt: int, error: str | None) -> Job | None:
        """The result of an attempt: SENT without an error, else FAILED. None: the job had its result already, which
        stands."""
        ...
