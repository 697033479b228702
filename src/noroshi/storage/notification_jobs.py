"""StoredNotificationJobs: payments, cancellations, claims and results in; what is decided, one commit each, out."""

from datetime import timedelta
from typing import Any

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import instant_of_iso, iso, plus
from noroshi.domain.notification_jobs import (
    MAX_ATTEMPTS,
    CancelVerdict,
    Claim,
    ClaimFacts,
    ClaimVerdict,
    DueJobs,
    Job,
    JobId,
    JobStatus,
    LeaseAnswer,
    NewJob,
    PaymentVerdict,
)
from noroshi.domain.reservations import Payment, ReservationId, ReservationStatus
from noroshi.ports.notification_jobs import DecideCancellation, DecideClaim, DecideConfirmation
from noroshi.ports.sealer import Sealer
from noroshi.storage.reservations import JOB_COLUMNS, BookingReader, CustomerSealer, count_on, read_job, when
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns

_SEALED = 9
"""The column of a job with its LINE user id."""


class StoredNotificationJobs:
    """Implements ports/notification_jobs.py. Whoever decides about a reservation or one of its jobs holds the row of
    the reservation first, so that a claim and a cancellation never meet."""

    def __init__(self, turns: Turns, readings: Readings, sealer: Sealer) -> None:
        self._turns = turns
        self._readings = readings
        self._sealer = CustomerSealer(sealer)
        self._bookings = BookingReader(self._sealer)

    async def schedule_for_reservation(
        self, tenant: TenantId, payment: Payment, decide: DecideConfirmation
    ) -> PaymentVerdict:
        reservation_id, paid = payment.reservation_id, (payment.amount, payment.reference)

        async def work(turn: Turn) -> PaymentVerdict:
            await turn.one("hold_reservation", tenant, reservation_id)
            booking = await self._bookings.find(turn, tenant, reservation_id)
            if booking is None:
                return PaymentVerdict.UNKNOWN_RESERVATION
            decided, now = decide(booking, payment, turn.now), iso(turn.now)
            if decided.is_recorded and decided.policy is not None:
                await turn.run("confirm_reservation", tenant, reservation_id, *paid, decided.policy.value, now)
            elif decided.is_recorded:
                is_short = decided.verdict is PaymentVerdict.AMOUNT_TOO_LOW
                name = "record_short_payment" if is_short else "record_payment"
                await turn.run(name, tenant, reservation_id, *paid, now)
            await _insert_jobs(turn, tenant, reservation_id, decided.jobs)
            return decided.verdict

        return await self._turns.turn("schedule_for_reservation", work)

    async def schedule_cancel_completed(
        self, tenant: TenantId, reservation_id: ReservationId, decide: DecideCancellation
    ) -> CancelVerdict | None:
        async def work(turn: Turn) -> CancelVerdict | None:
            await turn.one("hold_reservation", tenant, reservation_id)
            booking = await self._bookings.find(turn, tenant, reservation_id)
            if booking is None:
                return None
            decided = decide(booking, turn.now)
            if decided.verdict is CancelVerdict.CANCELLED:
                await turn.run("cancel_reservation", tenant, reservation_id, iso(turn.now))
                await turn.run("delete_pending_reminder_jobs", tenant, reservation_id)
                await _insert_jobs(turn, tenant, reservation_id, decided.jobs)
            return decided.verdict

        return await self._turns.turn("schedule_cancel_completed", work)

    async def list_due(self, tenant: TenantId, first: ReservationId | None, limit: int) -> DueJobs:
        async def read(reader: Statements) -> DueJobs:
            now = await reader.moment()
            counted = await reader.one("count_due_jobs", tenant, iso(now))
            rows = await reader.rows("list_due_jobs", tenant, iso(now), first, MAX_ATTEMPTS, limit)
            facts = tuple(_read_facts(row, now=now) for row in rows)
            return DueJobs(now, counted[0] if counted else 0, facts)

        return await self._readings.read(read)

    async def find_facts(self, tenant: TenantId, job_id: JobId) -> ClaimFacts | None:
        async def read(reader: Statements) -> ClaimFacts | None:
            row = await reader.one("find_job", tenant, job_id)
            return None if row is None else _read_facts(row, now=await reader.moment())

        return await self._readings.read(read)

    async def take_lease(self, tenant: TenantId, holder: str, span: timedelta) -> LeaseAnswer:
        async def work(turn: Turn) -> LeaseAnswer:
            paused = await turn.one("is_line_paused")
            if paused is not None and paused[0]:
                return LeaseAnswer.PAUSED
            until, unbelievable = iso(plus(turn.now, span)), iso(plus(turn.now, 2 * span))
            is_taken = await turn.has_changed("take_lease", tenant, holder, until, iso(turn.now), unbelievable)
            return LeaseAnswer.TAKEN if is_taken else LeaseAnswer.BUSY

        return await self._turns.turn("take_lease", work)

    async def release_lease(self, tenant: TenantId, holder: str) -> None:
        await self._turns.turn("release_lease", lambda turn: turn.run("release_lease", tenant, holder))

    async def claim(
        self, tenant: TenantId, job_id: JobId, holder: str, span: timedelta, decide: DecideClaim, *, is_asked: bool
    ) -> Claim | None:
        async def work(turn: Turn) -> Claim | None:
            if not await turn.has_changed("renew_sender_lease", tenant, holder, iso(plus(turn.now, span))):
                return None
            owner = await turn.one("reservation_of_job", tenant, job_id)
            if owner is None:
                return None
            await turn.one("hold_reservation", tenant, owner[0])
            row = await turn.one("find_job", tenant, job_id)
            if row is None:
                return None
            return await self._claim(turn, tenant, row, decide, is_asked=is_asked)

        return await self._turns.turn("claim_job", work)

    async def _claim(self, turn: Turn, tenant: TenantId, row: Row, decide: DecideClaim, *, is_asked: bool) -> Claim:
        before, attempt, customer_id, data_key = read_job(row), row[15] + 1, row[16], row[17]
        # Whoever failed for want of a LINE user id may have one by the time a person sends it again.
        sealed = row[18] if is_asked and row[_SEALED] is None else row[_SEALED]
        decision = decide(_read_facts((*row[:_SEALED], sealed, *row[_SEALED + 1 :]), now=turn.now, is_asked=is_asked))
        if decision.verdict is ClaimVerdict.FAIL:
            await _write(turn, tenant, before, JobStatus.FAILED, decision.error, sealed)
            await turn.run("end_attempts", tenant, before.job_id, iso(turn.now))
        elif decision.verdict is ClaimVerdict.SEND:
            await turn.run("begin_attempt", tenant, before.job_id, attempt, iso(turn.now))
            await _write(turn, tenant, before, JobStatus.PENDING, before.last_error, sealed)
        else:
            return Claim(before, before, decision)
        after = await _read_again(turn, tenant, before)
        line_user_id = self._sealer.open(data_key, tenant, customer_id, sealed) or ""
        return Claim(before, after, decision, attempt, line_user_id)

    async def record(self, tenant: TenantId, job_id: JobId, attempt: int, error: str | None) -> Job | None:
        async def work(turn: Turn) -> Job | None:
            owner = await turn.one("reservation_of_job", tenant, job_id)
            if owner is None:
                return None
            await turn.one("hold_reservation", tenant, owner[0])
            row = await turn.one("find_job", tenant, job_id)
            if row is None:
                return None
            job, newest = read_job(row), row[15]
            # That LINE took it is true whoever says so; that it failed, only of the newest attempt (W9).
            is_sent = error is None
            stands = (
                job.status is not JobStatus.SENT if is_sent else (job.status, newest) == (JobStatus.PENDING, attempt)
            )
            if not stands:
                await turn.run("end_attempt", tenant, job_id, attempt, iso(turn.now))
                return None
            await _write(turn, tenant, job, JobStatus.SENT if is_sent else JobStatus.FAILED, error, row[_SEALED])
            await turn.run("end_attempts", tenant, job_id, iso(turn.now))
            return await _read_again(turn, tenant, job)

        return await self._turns.turn("record_job", work)


async def _insert_jobs(turn: Turn, tenant: TenantId, reservation_id: ReservationId, jobs: tuple[NewJob, ...]) -> None:
    if not jobs:
        return
    first = await count_on(turn, tenant, "job", len(jobs))
    for number, job in enumerate(jobs, first):
        words = (job.kind.value, iso(job.scheduled_at), job.message_text, iso(turn.now))
        await turn.run("insert_job", tenant, number, reservation_id, *words)


async def _write(
    turn: Turn, tenant: TenantId, job: Job, status: JobStatus, error: str | None, sealed: bytes | None
) -> None:
    """A result counts as an attempt; being pending again does not."""
    attempts = job.attempt_count + (status is not JobStatus.PENDING)
    await turn.run("write_job", tenant, job.job_id, status.value, attempts, error, sealed, iso(turn.now))


async def _read_again(turn: Turn, tenant: TenantId, job: Job) -> Job:
    row = await turn.one("find_job", tenant, job.job_id)
    return job if row is None else read_job(row)


def _read_facts(row: Row, **more: Any) -> ClaimFacts:
    """From the columns of a job and the three after them."""
    ends, status, open_since = row[JOB_COLUMNS : JOB_COLUMNS + 3]
    return ClaimFacts(
        job=read_job(row),
        event_end=instant_of_iso(ends),
        is_cancelled=status == ReservationStatus.CANCELLED,
        open_since=when(open_since),
        **more,
    )
