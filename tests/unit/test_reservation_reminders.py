"""When a customer is reminded (L6): both policies, on either side of every boundary."""

from datetime import timedelta

import pytest
from tests.reservation_cast import EARLY, PICKUP_START, jst

from noroshi.domain.instants import Instant, plus
from noroshi.domain.reservations import ReminderPolicy
from noroshi.domain.shop import Why
from noroshi.reservations.reminders import plan_reminder

FIXED, SLOTS = ReminderPolicy.FIXED_48H, ReminderPolicy.TIME_SLOTS
TWO_DAYS = timedelta(hours=48)
MICROSECOND = timedelta(microseconds=1)


def planned(policy: ReminderPolicy, start: Instant, confirmed_at: Instant) -> Instant | Why | None:
    plan = plan_reminder(policy, start, confirmed_at)
    assert plan.should_send == (plan.scheduled_at is not None) == (plan.why is None)
    return plan.why or plan.scheduled_at


def test_the_example_of_the_specification() -> None:
    # L6: confirmed 1 Dec 01:54, pickup 3 Dec 19:00
    assert planned(SLOTS, PICKUP_START, EARLY) == jst("2025-12-03 12:00")


def test_the_default_reminds_48_hours_before_the_pickup() -> None:
    # L6, S1 6.1
    assert planned(FIXED, PICKUP_START, EARLY) == jst("2025-12-01 19:00")


@pytest.mark.parametrize("policy", ReminderPolicy)
def test_less_than_48_hours_before_the_pickup_nobody_is_reminded(policy: ReminderPolicy) -> None:
    # L6
    assert planned(policy, PICKUP_START, plus(PICKUP_START, -TWO_DAYS + MICROSECOND)) is Why.TOO_SOON


def test_exactly_48_hours_suffice_for_a_time_slot() -> None:
    # L6: only less than 48 hours is too soon
    assert planned(SLOTS, PICKUP_START, plus(PICKUP_START, -TWO_DAYS)) == jst("2025-12-03 12:00")


def test_exactly_48_hours_before_the_fixed_reminder_would_be_no_later_than_the_confirmation() -> None:
    # L6
    assert planned(FIXED, PICKUP_START, plus(PICKUP_START, -TWO_DAYS)) is Why.NOT_AFTER_CONFIRMATION
    assert planned(FIXED, PICKUP_START, plus(PICKUP_START, -TWO_DAYS - MICROSECOND)) == plus(PICKUP_START, -TWO_DAYS)


@pytest.mark.parametrize(
    ("pickup", "reminder"),
    [
        ("2026-03-10 00:00", Why.NOT_BEFORE_PICKUP),
        ("2026-03-10 05:00", Why.NOT_BEFORE_PICKUP),
        ("2026-03-10 05:59:59.999999", Why.NOT_BEFORE_PICKUP),
        ("2026-03-10 06:00", "2026-03-09 20:00"),
        ("2026-03-10 11:59:59.999999", "2026-03-09 20:00"),
        ("2026-03-10 12:00", "2026-03-10 08:00"),
        ("2026-03-10 15:59:59.999999", "2026-03-10 08:00"),
        ("2026-03-10 16:00", "2026-03-10 12:00"),
        ("2026-03-10 21:59:59.999999", "2026-03-10 12:00"),
        ("2026-03-10 22:00", "2026-03-10 08:00"),
        ("2026-03-10 23:59:59.999999", "2026-03-10 08:00"),
        ("2026-03-01 09:00", "2026-02-28 20:00"),
        ("2028-03-01 09:00", "2028-02-29 20:00"),
        ("2026-01-01 09:00", "2025-12-31 20:00"),
        ("2026-01-01 13:00", "2026-01-01 08:00"),
    ],
)
def test_a_time_slot_is_the_one_of_the_pickups_hour_in_japan(pickup: str, reminder: str | Why) -> None:
    # L6: 06/12/16/22, lower bound inclusive; midnight, the end of a month and of a year
    expected = reminder if isinstance(reminder, Why) else jst(reminder)
    assert planned(SLOTS, jst(pickup), jst("2025-12-01 00:00")) == expected


@pytest.mark.parametrize(
    ("pickup", "reminder"), [("2026-01-01 09:00", "2025-12-30 09:00"), ("2026-03-01 00:00", "2026-02-27 00:00")]
)
def test_48_hours_cross_the_end_of_a_month_and_of_a_year(pickup: str, reminder: str) -> None:
    # L6
    assert planned(FIXED, jst(pickup), jst("2025-12-01 00:00")) == jst(reminder)
