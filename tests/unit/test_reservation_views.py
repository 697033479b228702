"""What an operator and a customer see of a reservation (L4, L11, L14): the decision table of every state."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.reservation_cast import FARM, PICKUP_END, booking, cancelled, confirmed, job, jst, reservation

from noroshi.domain.instants import plus
from noroshi.domain.notification_jobs import Booking, DisplayState, JobKind, JobStatus
from noroshi.domain.reservations import PaymentStatus, ReminderPolicy
from noroshi.domain.shop import SENTENCES, Why
from noroshi.entrypoints.api.shop_sentences import japanese
from noroshi.reservations.booked import view_booked
from noroshi.reservations.display import view_kind, view_kinds, why_no_resend

CONFIRMATION, REMINDER, CANCEL = JobKind.CONFIRMATION, JobKind.REMINDER, JobKind.CANCEL_COMPLETED
DASH, NONE = DisplayState.DASH, DisplayState.NONE
PENDING, SENT, FAILED = JobStatus.PENDING, JobStatus.SENT, JobStatus.FAILED
LATE = jst("2025-12-02 12:00")
CANCELLED_THEN_PAID = cancelled(payment_status=PaymentStatus.SUCCEEDED, paid_amount=9_500)
PAID_THEN_CANCELLED = cancelled(confirmed_at=jst("2025-12-01 01:54"), reminder_policy=ReminderPolicy.FIXED_48H)

TABLE = [
    # unconfirmed
    (booking(), CONFIRMATION, DASH, Why.UNCONFIRMED),
    (booking(), REMINDER, DASH, Why.UNCONFIRMED),
    (booking(), CANCEL, DASH, Why.NOT_CANCELLED),
    # confirmed
    (booking(confirmed()), CONFIRMATION, NONE, Why.MISSING),
    (booking(confirmed()), REMINDER, NONE, Why.MISSING),
    (booking(confirmed()), CANCEL, DASH, Why.NOT_CANCELLED),
    *((booking(confirmed(), job(CONFIRMATION, s)), CONFIRMATION, DisplayState(s), None) for s in JobStatus),
    *((booking(confirmed(), job(REMINDER, s)), REMINDER, DisplayState(s), None) for s in JobStatus),
    # ruled out by L6
    (booking(confirmed(LATE)), REMINDER, DASH, Why.TOO_SOON),
    (booking(confirmed(jst("2025-12-01 19:00"))), REMINDER, DASH, Why.NOT_AFTER_CONFIRMATION),
    (
        booking(confirmed(reminder_policy=ReminderPolicy.TIME_SLOTS, pickup_start=jst("2025-12-05 05:00"))),
        REMINDER,
        DASH,
        Why.NOT_BEFORE_PICKUP,
    ),
    # cancelled before it was paid
    (booking(cancelled()), CONFIRMATION, DASH, Why.UNCONFIRMED),
    (booking(cancelled()), REMINDER, DASH, Why.UNCONFIRMED),
    (booking(cancelled()), CANCEL, NONE, Why.MISSING),
    # money that confirmed nothing
    (booking(reservation(paid_amount=9_499)), CONFIRMATION, DASH, Why.PAID_TOO_LITTLE),
    (booking(reservation(paid_amount=9_499)), REMINDER, DASH, Why.PAID_TOO_LITTLE),
    (booking(CANCELLED_THEN_PAID), CONFIRMATION, DASH, Why.PAID_AFTER_CANCELLATION),
    (booking(CANCELLED_THEN_PAID), REMINDER, DASH, Why.PAID_AFTER_CANCELLATION),
    # cancelled afterwards
    (booking(PAID_THEN_CANCELLED), CONFIRMATION, NONE, Why.MISSING),
    (booking(PAID_THEN_CANCELLED, job(CONFIRMATION, SENT)), CONFIRMATION, DisplayState.SENT, None),
    (booking(PAID_THEN_CANCELLED), REMINDER, DASH, Why.CANCELLED),
    (booking(cancelled(confirmed_at=LATE, cancelled_at=LATE)), REMINDER, DASH, Why.TOO_SOON),
    *((booking(PAID_THEN_CANCELLED, job(REMINDER, s)), REMINDER, DisplayState(s), None) for s in JobStatus),
    *((booking(PAID_THEN_CANCELLED, job(CANCEL, s)), CANCEL, DisplayState(s), None) for s in JobStatus),
]


@pytest.mark.parametrize(("of", "kind", "state", "why"), TABLE)
def test_the_state_that_is_shown(of: Booking, kind: JobKind, state: DisplayState, why: Why | None) -> None:
    # L4
    view = view_kind(of, kind)
    assert (view.state, view.why) == (state, why)


def test_every_kind_is_shown_once() -> None:
    # L3, L4
    assert [view.kind for view in view_kinds(booking())] == [CONFIRMATION, REMINDER, CANCEL]
    assert list(JobKind) == ["CONFIRMATION", "REMINDER", "CANCEL_COMPLETED"]


def test_a_policy_changed_after_the_confirmation_decides_nothing_anew() -> None:
    # L6: confirmed exactly 48 hours before, when the fixed policy ruled the reminder out
    farm = replace(FARM, reminder_policy=ReminderPolicy.TIME_SLOTS)
    view = view_kind(booking(confirmed(jst("2025-12-01 19:00")), farm=farm), REMINDER)
    assert view.why is Why.NOT_AFTER_CONFIRMATION


@pytest.mark.parametrize(
    ("kind", "status", "attempts", "is_cancelled", "refusal"),
    [
        (CONFIRMATION, FAILED, 1, False, None),
        (REMINDER, FAILED, 4, False, None),
        (CONFIRMATION, FAILED, 5, False, Why.TOO_MANY_ATTEMPTS),
        (CONFIRMATION, FAILED, 1, True, Why.RESERVATION_CANCELLED),
        (REMINDER, FAILED, 1, True, Why.RESERVATION_CANCELLED),
        (CANCEL, FAILED, 1, True, Why.FINAL),
        (CONFIRMATION, SENT, 1, False, Why.NOT_FAILED),
        (CONFIRMATION, PENDING, 0, False, Why.NOT_FAILED),
    ],
)
def test_what_a_person_may_send_again(
    kind: JobKind, status: JobStatus, attempts: int, is_cancelled: bool, refusal: Why | None
) -> None:
    # L11
    assert why_no_resend(job(kind, status, attempt_count=attempts), is_cancelled=is_cancelled) is refusal


@pytest.mark.parametrize(
    ("error", "is_in_doubt"),
    [
        ("no answer: ReadTimeout", True),
        ("500: ", True),
        ("503: overloaded", True),
        ("outcome unknown: an attempt began at 2025-12-01T10:00:00.000000+00:00, and nobody knows how it ended", True),
        ('429: {"message":"You have reached your monthly limit."}', False),
        ("400: no answer", False),
        ("customer_line_user_id is missing", False),
    ],
)
def test_what_may_have_arrived_says_until_when_it_can_be_sent_again_without_harm(error: str, is_in_doubt: bool) -> None:
    # L10, L11: LINE forgets the key after 24 hours
    view = view_kind(booking(confirmed(), job(CONFIRMATION, FAILED, attempt_count=1, last_error=error)), CONFIRMATION)
    assert view.no_resend is None
    assert view.doubles_after == (jst("2025-12-02 01:53") if is_in_doubt else None)


def test_what_cannot_be_sent_again_warns_of_nothing() -> None:
    failed = job(CONFIRMATION, FAILED, attempt_count=5, last_error="500: ")
    assert view_kind(booking(confirmed(), failed), CONFIRMATION).doubles_after is None


@pytest.mark.parametrize("why", Why)
def test_every_reason_is_a_sentence_in_both_languages(why: Why) -> None:
    # L4
    assert SENTENCES[why].endswith(".")
    assert japanese(why).endswith("。")


def test_no_reason_says_more_than_is_known() -> None:
    # a reminder that cron stood still over was due, and money in another currency came in
    assert SENTENCES[Why.CANCELLED] == "The reservation was cancelled before a reminder was sent."
    assert japanese(Why.CANCELLED) == "リマインダーを送る前に、予約がキャンセルされました。"
    assert "no payment in yen" in SENTENCES[Why.UNCONFIRMED]


@pytest.mark.parametrize(
    ("after_end", "is_expired", "is_hidden"),
    [
        (timedelta(hours=-2), False, False),
        (timedelta(seconds=-1), False, False),
        (timedelta(0), False, False),
        (timedelta(seconds=1), True, False),
        (timedelta(minutes=15), True, False),
        (timedelta(minutes=15, microseconds=1), True, True),
        (timedelta(minutes=15, seconds=1), True, True),
    ],
)
def test_the_booked_page_shows_a_reservation_until_a_quarter_of_an_hour_after_its_end(
    after_end: timedelta, is_expired: bool, is_hidden: bool
) -> None:
    # L14, the table of S3 D
    view = view_booked(booking(confirmed()), plus(PICKUP_END, after_end))
    assert (view.event_start, view.event_end) == (reservation().pickup_start, PICKUP_END)
    assert (view.is_expired, view.is_expired_for_display) == (is_expired, is_hidden)
