"""Scheduling: a payment or a cancellation in, the jobs that must come of it out. Pure: the store calls these inside the
transaction that keeps what they decide (L5, L7)."""

from collections.abc import Iterator

from noroshi.domain.instants import Instant
from noroshi.domain.notification_jobs import (
    Booking,
    Cancellation,
    CancelVerdict,
    Confirmation,
    JobKind,
    NewJob,
    PaymentVerdict,
)
from noroshi.domain.reservations import Payment, PaymentStatus, ReservationStatus
from noroshi.reservations.context import build_context
from noroshi.reservations.messages import MessageBuilder
from noroshi.reservations.reminders import plan_reminder

CURRENCY = "jpy"

_messages = MessageBuilder()


def decide_confirmation(booking: Booking, payment: Payment, now: Instant) -> Confirmation:
    """`schedule_for_reservation`: whatever order and however often payments come, each kind of job is made once."""
    reservation = booking.reservation
    if payment.currency.lower() != CURRENCY:
        return Confirmation(PaymentVerdict.WRONG_CURRENCY)
    is_news = reservation.payment_status is not PaymentStatus.SUCCEEDED
    if payment.amount < reservation.total:
        is_seen = reservation.paid_amount == payment.amount
        return Confirmation(PaymentVerdict.AMOUNT_TOO_LOW, is_recorded=is_news and not is_seen)
    if reservation.is_cancelled:
        return Confirmation(PaymentVerdict.CANCELLED, is_recorded=is_news)
    jobs = tuple(plan_jobs(booking, now))
    is_first = any(job.kind is JobKind.CONFIRMATION for job in jobs)
    return Confirmation(
        PaymentVerdict.CONFIRMED if is_first else PaymentVerdict.REPEATED,
        is_recorded=is_news or reservation.status is not ReservationStatus.CONFIRMED or bool(jobs),
        policy=booking.farm.reminder_policy,
        jobs=jobs,
    )


def plan_jobs(booking: Booking, now: Instant) -> Iterator[NewJob]:
    """The jobs that a confirmed reservation lacks; one not confirmed yet is taken as confirmed now."""
    reservation, context = booking.reservation, build_context(booking)
    if booking.job(JobKind.CONFIRMATION) is None:
        yield NewJob(JobKind.CONFIRMATION, now, _messages.build_confirmation(context))
    policy = reservation.reminder_policy or booking.farm.reminder_policy
    confirmed_at = now if reservation.confirmed_at is None else reservation.confirmed_at
    plan = plan_reminder(policy, reservation.event_start, confirmed_at)
    if plan.scheduled_at is not None and booking.job(JobKind.REMINDER) is None:
        yield NewJob(JobKind.REMINDER, plan.scheduled_at, _messages.build_reminder(context))


def decide_cancellation(booking: Booking, now: Instant) -> Cancellation:
    """`schedule_cancel_completed`: once, and not after the pickup."""
    reservation = booking.reservation
    if reservation.is_cancelled:
        return Cancellation(CancelVerdict.REPEATED)
    if now > reservation.event_end:
        return Cancellation(CancelVerdict.PICKUP_OVER)
    text = _messages.build_cancel_completed(build_context(booking))
    return Cancellation(CancelVerdict.CANCELLED, (NewJob(JobKind.CANCEL_COMPLETED, now, text),))
