"""The operator's view: a booking in; for each kind of notification one of five states, and why, out (L4, L11)."""

from noroshi.domain.notification_jobs import MAX_ATTEMPTS, Booking, DisplayState, Job, JobKind, JobStatus
from noroshi.domain.shop import KindView, Why
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
    return KindView(kind, DisplayState(job.status), job=job, no_resend=no_resend)


def _why_not_wanted(booking: Booking, kind: JobKind, job: Job | None) -> Why | None:
    reservation = booking.reservation
    if kind is JobKind.CANCEL_COMPLETED:
        return None if reservation.is_cancelled else Why.NOT_CANCELLED
    if reservation.confirmed_at is None:
        return Why.UNCONFIRMED
    if kind is JobKind.CONFIRMATION or job is not None:
        return None
    if reservation.is_cancelled:
        return Why.CANCELLED
    policy = reservation.reminder_policy or booking.farm.reminder_policy
    return plan_reminder(policy, reservation.event_start, reservation.confirmed_at).why


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
