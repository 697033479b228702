"""What a payment, a cancellation and a claim lead to (L5, L7, L8, L10, L11), decided without a store."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.reservation_cast import (
    EARLY,
    FARM,
    PICKUP_END,
    PICKUP_START,
    booking,
    cancelled,
    confirmed,
    job,
    jst,
    reservation,
)

from noroshi.domain.instants import Instant, plus
from noroshi.domain.notification_jobs import (
    CancelVerdict,
    ClaimFacts,
    ClaimVerdict,
    Job,
    JobKind,
    JobStatus,
    PaymentVerdict,
)
from noroshi.domain.reservations import Payment, PaymentStatus, ReminderPolicy, ReservationId
from noroshi.domain.shop import Why
from noroshi.reservations.claims import LEASE, decide_claim
from noroshi.reservations.doubts import RETRY_KEY_LIVES
from noroshi.reservations.scheduling import decide_cancellation, decide_confirmation

CONFIRMATION, REMINDER, CANCEL = JobKind.CONFIRMATION, JobKind.REMINDER, JobKind.CANCEL_COMPLETED
PAID = Payment(ReservationId(237), 9_500, "jpy", "pi_1")
SECOND = timedelta(seconds=1)


# payments


def test_a_first_payment_makes_a_confirmation_for_now_and_a_reminder_by_the_rule() -> None:
    # L5, L6, L7
    found = decide_confirmation(booking(), PAID, EARLY)
    assert (found.verdict, found.is_recorded, found.policy) == (PaymentVerdict.CONFIRMED, True, FARM.reminder_policy)
    assert [(new.kind, new.scheduled_at) for new in found.jobs] == [
        (CONFIRMATION, EARLY),
        (REMINDER, jst("2025-12-01 19:00")),
    ]
    assert found.jobs[0].message_text.startswith("ご予約いただき、")
    assert found.jobs[1].message_text.startswith("お米の受け渡し日時が近づいて")


def test_a_late_payment_makes_no_reminder() -> None:
    # L6
    found = decide_confirmation(booking(), PAID, plus(PICKUP_START, -timedelta(hours=47)))
    assert [new.kind for new in found.jobs] == [CONFIRMATION]


def test_a_second_payment_changes_nothing() -> None:
    # L5
    of = booking(confirmed(), job(CONFIRMATION), job(REMINDER))
    found = decide_confirmation(of, PAID, plus(EARLY, SECOND))
    assert (found.verdict, found.is_recorded, found.jobs) == (PaymentVerdict.REPEATED, False, ())


def test_jobs_that_are_missing_are_made_by_the_first_confirmations_time() -> None:
    # L5: 47 hours before the pickup, of a reservation confirmed long before
    now = plus(PICKUP_START, -timedelta(hours=47))
    found = decide_confirmation(booking(confirmed()), PAID, now)
    assert [(new.kind, new.scheduled_at) for new in found.jobs] == [
        (CONFIRMATION, now),
        (REMINDER, jst("2025-12-01 19:00")),
    ]
    only_reminder = decide_confirmation(booking(confirmed(), job(CONFIRMATION)), PAID, now)
    assert (only_reminder.verdict, [new.kind for new in only_reminder.jobs]) == (PaymentVerdict.REPEATED, [REMINDER])


def test_a_cancelled_reservation_stays_cancelled_and_only_the_payment_is_recorded() -> None:
    # L5
    found = decide_confirmation(booking(cancelled()), PAID, EARLY)
    assert (found.verdict, found.is_recorded, found.jobs) == (PaymentVerdict.CANCELLED, True, ())
    again = decide_confirmation(booking(cancelled(payment_status=PaymentStatus.SUCCEEDED)), PAID, EARLY)
    assert (again.verdict, again.is_recorded) == (PaymentVerdict.CANCELLED, False)


@pytest.mark.parametrize(
    ("payment", "verdict"),
    [
        (replace(PAID, amount=9_499), PaymentVerdict.AMOUNT_TOO_LOW),
        (replace(PAID, amount=9_500), PaymentVerdict.CONFIRMED),
        (replace(PAID, amount=9_501), PaymentVerdict.CONFIRMED),
        (replace(PAID, currency="JPY"), PaymentVerdict.CONFIRMED),
        (replace(PAID, currency="usd"), PaymentVerdict.WRONG_CURRENCY),
    ],
)
def test_a_payment_confirms_only_if_it_comes_to_the_total(payment: Payment, verdict: PaymentVerdict) -> None:
    # L5
    found = decide_confirmation(booking(), payment, EARLY)
    assert found.verdict is verdict
    assert (found.policy is not None) is bool(found.jobs) is (verdict is PaymentVerdict.CONFIRMED)


def test_too_little_is_recorded_once_and_never_over_a_payment_in_full() -> None:
    # L5: for the operator to see; nothing is confirmed by it
    short = replace(PAID, amount=9_499)
    for of, is_recorded in (
        (reservation(), True),
        (reservation(paid_amount=9_499), False),
        (reservation(paid_amount=9_000), True),
        (cancelled(), True),
        (confirmed(paid_amount=9_500), False),
    ):
        found = decide_confirmation(booking(of), short, EARLY)
        assert (found.verdict, found.is_recorded, found.jobs) == (PaymentVerdict.AMOUNT_TOO_LOW, is_recorded, ())
    assert not decide_confirmation(booking(), replace(PAID, currency="usd"), EARLY).is_recorded


def test_the_policy_is_the_farms_when_it_is_confirmed() -> None:
    # L6
    farm = replace(FARM, reminder_policy=ReminderPolicy.TIME_SLOTS)
    found = decide_confirmation(booking(farm=farm), PAID, EARLY)
    assert found.jobs[1].scheduled_at == jst("2025-12-03 12:00")


# cancellations


@pytest.mark.parametrize("of", [reservation(), confirmed()], ids=["unpaid", "confirmed"])
def test_a_cancellation_is_told_now(of: object) -> None:
    # L7
    found = decide_cancellation(booking(of), EARLY)  # type: ignore[arg-type]
    assert found.verdict is CancelVerdict.CANCELLED
    assert [(new.kind, new.scheduled_at) for new in found.jobs] == [(CANCEL, EARLY)]


def test_a_second_cancellation_makes_no_second_job() -> None:
    # L7
    assert decide_cancellation(booking(cancelled()), EARLY).verdict is CancelVerdict.REPEATED


def test_a_pickup_that_is_over_cannot_be_cancelled() -> None:
    # L14: cancelling asks the same event_end as everything else
    assert decide_cancellation(booking(confirmed()), PICKUP_END).verdict is CancelVerdict.CANCELLED
    assert decide_cancellation(booking(confirmed()), plus(PICKUP_END, SECOND)).verdict is CancelVerdict.PICKUP_OVER


# claims


def facts(
    of: Job,
    now: Instant = EARLY,
    *,
    is_cancelled: bool = False,
    open_since: Instant | None = None,
    is_asked: bool = False,
) -> ClaimFacts:
    return ClaimFacts(
        job=of, now=now, event_end=PICKUP_END, is_cancelled=is_cancelled, open_since=open_since, is_asked=is_asked
    )


def verdict(given: ClaimFacts) -> tuple[ClaimVerdict, str]:
    found = decide_claim(given)
    return found.verdict, found.error or ""


def test_a_job_is_sent_from_its_very_time_on() -> None:
    # L8
    assert verdict(facts(job())) == (ClaimVerdict.SEND, "")
    assert verdict(facts(job(scheduled_at=plus(EARLY, SECOND))))[0] is ClaimVerdict.SKIP


@pytest.mark.parametrize("status", [JobStatus.SENT, JobStatus.FAILED])
def test_what_is_not_pending_is_skipped(status: JobStatus) -> None:
    # L8: no automatic resend of FAILED
    assert verdict(facts(job(status=status)))[0] is ClaimVerdict.SKIP


def test_after_five_attempts_a_job_is_skipped() -> None:
    # L8
    assert verdict(facts(job(attempt_count=4)))[0] is ClaimVerdict.SEND
    assert verdict(facts(job(attempt_count=5)))[0] is ClaimVerdict.SKIP


def test_a_missing_field_is_named() -> None:
    # L8
    assert verdict(facts(job(has_line_user_id=False))) == (ClaimVerdict.FAIL, "customer_line_user_id is missing")
    assert verdict(facts(job(message_text=" \n"))) == (ClaimVerdict.FAIL, "message_text is empty")


def test_a_reminder_after_the_pickup_is_not_sent() -> None:
    # L8: pickup over
    assert verdict(facts(job(REMINDER), PICKUP_END))[0] is ClaimVerdict.SEND
    found = verdict(facts(job(REMINDER), plus(PICKUP_END, SECOND)))
    assert found[0] is ClaimVerdict.FAIL
    assert found[1].startswith("pickup over")
    assert verdict(facts(job(CONFIRMATION), plus(PICKUP_END, SECOND)))[0] is ClaimVerdict.SEND


def test_an_attempt_without_a_result_is_repeated_while_line_knows_its_key() -> None:
    # L10: the next attempt must end before the 24 hours are over
    last = plus(EARLY, RETRY_KEY_LIVES - LEASE)
    assert verdict(facts(job(), last, open_since=EARLY))[0] is ClaimVerdict.SEND
    found = verdict(facts(job(), plus(last, timedelta(microseconds=1)), open_since=EARLY))
    assert found[0] is ClaimVerdict.FAIL
    assert found[1].startswith("outcome unknown")


def test_a_reminder_of_a_cancelled_reservation_is_never_tried_again() -> None:
    # L7, L10
    assert verdict(facts(job(REMINDER), is_cancelled=True, open_since=EARLY))[0] is ClaimVerdict.FAIL
    assert verdict(facts(job(CONFIRMATION), is_cancelled=True))[0] is ClaimVerdict.SEND
    assert verdict(facts(job(CANCEL), is_cancelled=True))[0] is ClaimVerdict.SEND


@pytest.mark.parametrize("kind", [CONFIRMATION, REMINDER])
def test_a_person_may_send_a_failed_job_again(kind: JobKind) -> None:
    # L11
    failed = job(kind, JobStatus.FAILED, attempt_count=1)
    assert verdict(facts(failed, is_asked=True))[0] is ClaimVerdict.SEND
    assert verdict(facts(failed))[0] is ClaimVerdict.SKIP


@pytest.mark.parametrize(
    ("of", "is_cancelled", "why"),
    [
        (job(CANCEL, JobStatus.FAILED, attempt_count=1), True, Why.FINAL),
        (job(CONFIRMATION, JobStatus.FAILED, attempt_count=5), False, Why.TOO_MANY_ATTEMPTS),
        (job(CONFIRMATION, JobStatus.FAILED, attempt_count=1), True, Why.RESERVATION_CANCELLED),
        (job(REMINDER, JobStatus.FAILED, attempt_count=1), True, Why.RESERVATION_CANCELLED),
    ],
)
def test_what_a_person_may_not_send_again_is_refused(of: Job, is_cancelled: bool, why: Why) -> None:
    # L11
    assert verdict(facts(of, is_cancelled=is_cancelled, is_asked=True)) == (ClaimVerdict.REFUSE, why)


def test_a_cancel_notice_that_a_crash_left_pending_still_gets_its_one_attempt() -> None:
    # L11
    assert verdict(facts(job(CANCEL), is_cancelled=True, open_since=EARLY))[0] is ClaimVerdict.SEND
