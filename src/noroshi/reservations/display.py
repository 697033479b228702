"""The operator's view: a booking in; for each kind of notification one of five states, and why, out (L4, L11)."""

from noroshi.domain.notification_jobs import MAX_ATTEMPTS, Booking, DisplayState, Job, JobKind, JobStatus
from noroshi.domain.reservations import PaymentStatus, Reservation
from noroshi.domain.shop import KindView, Why
from noroshi.reservations.doubts import doubles_after
from noroshi.reservations.reminders import plan_reminder


def view_kinds(booking: Booking) -> tuple[KindView, ...]:
    return tuple(view_kind(booking, kind) for kind in JobKind)


def view_kind(booking: Booking, kind: JobKind) -> KindView:
    job = booking.job(kind)
    why = _why_not_wanted(booking, kind, job)
    if why is not None:
        return KindView(kind, DisplayState.DASH, why, no_resend=Why.NOT_FAILED)
    if job is None:
        return KindView(kind, DisplayState.NONE, Why.MISSING, no_resend=Why.NOT_FAILED)
    no_resend = why_no_resend(job, is_cancelled=booking.reservation.is_cancelled)
    doubtful = doubles_after(job) if no_resend is None else None
    return KindView(kind, DisplayState(job.status), job=job, no_resend=no_resend, doubles_after=doubtful)


def _why_not_wanted(booking: Booking, kind: JobKind, job: Job | None) -> Why | None:
    reservation = booking.reservation
    if kind is JobKind.CANCEL_COMPLETED:
        return None if reservation.is_cancelled else Why.NOT_CANCELLED
    if reservation.confirmed_at is None:
        return _why_unconfirmed(reservation)
    if kind is JobKind.CONFIRMATION or job is not None:
        return None
    policy = reservation.reminder_policy or booking.farm.reminder_policy
    ruled_out = plan_reminder(policy, reservation.event_start, reservation.confirmed_at).why
    return Why.CANCELLED if ruled_out is None and reservation.is_cancelled else ruled_out


def _why_unconfirmed(reservation: Reservation) -> Why:
    if reservation.payment_status is PaymentStatus.SUCCEEDED:
        return Why.PAID_AFTER_CANCELLATION
    return Why.UNCONFIRMED if reservation.paid_amount is None else Why.PAID_TOO_LITTLE


def why_no_resend(job: Job, *, is_cancelled: bool) -> Why | None:
    """Why a person may not have this job sent again; None: they may (L11)."""
    if job.status is not JobStatus.FAILED:
        return Why.NOT_FAILED
    if job.kind is JobKind.CANCEL_COMPLETED:
        return Why.FINAL
    if is_cancelled:
        return Why.RESERVATION_CANCELLED
    if job.attempt_count >= MAX_ATTEMPTS:
        return Why.TOO_MANY_ATTEMPTS
    return None
