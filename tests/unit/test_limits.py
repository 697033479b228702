"""Limits: which one holds, and when a full window frees."""

import pytest

from noroshi.domain.addressing import Usage
from noroshi.domain.channels import Limit
from noroshi.domain.instants import Instant
from noroshi.domain.limits import DAY, HOUR, limit_for, over_until
from noroshi.domain.people import FrequencyLimit
from noroshi.domain.priorities import Priority

NOW = Instant(1_800_000_000_000_000)
MINUTE = HOUR // 60


def usage(hour: int, day: int, minutes_ago: int = 0, day_minutes_ago: int = 0) -> Usage:
    return Usage(hour, day, Instant(NOW - minutes_ago * MINUTE), Instant(NOW - day_minutes_ago * MINUTE))


@pytest.mark.parametrize(
    ("channel", "per_hour", "per_day"),
    [("push", 10, 50), ("email", 3, 10), ("sms", 2, 5), ("in_app", 20, 100), ("web_push", 8, 40), ("pager", 10, 50)],
)
def test_each_channel_has_its_default_limit(channel: str, per_hour: int, per_day: int) -> None:
    # N8.1
    assert limit_for(channel, Priority.NORMAL, None) == Limit(per_hour, per_day)


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (Priority.CRITICAL, None),
        (Priority.HIGH, Limit(15, 50)),
        (Priority.NORMAL, Limit(3, 10)),
        (Priority.LOW, Limit(1, 5)),
    ],
)
def test_the_priority_scales_the_limit(priority: Priority, expected: Limit | None) -> None:
    # N8.2
    assert limit_for("email", priority, None) == expected


def test_a_persons_own_limit_replaces_the_default_and_is_scaled_too() -> None:
    # N8.2
    own = FrequencyLimit(per_hour=1, per_day=4)
    assert limit_for("push", Priority.NORMAL, own) == Limit(1, 4)
    assert limit_for("push", Priority.LOW, own) == Limit(1, 2)
    assert limit_for("push", Priority.HIGH, own) == Limit(5, 20)


def test_below_both_limits_one_more_is_allowed() -> None:
    # N8.1
    assert over_until(usage(2, 9), Limit(3, 10), NOW) is None
    assert over_until(usage(999, 999), None, NOW) is None


def test_a_full_hour_frees_when_its_oldest_entry_is_an_hour_old() -> None:
    # N8.1: a sliding window
    assert over_until(usage(3, 3, minutes_ago=40, day_minutes_ago=40), Limit(3, 10), NOW) == NOW + 20 * MINUTE


def test_a_full_day_frees_when_its_oldest_entry_is_a_day_old() -> None:
    assert over_until(usage(0, 10, 0, day_minutes_ago=60), Limit(3, 10), NOW) == NOW - 60 * MINUTE + DAY


def test_when_both_are_full_the_later_one_counts() -> None:
    # N8.2
    assert over_until(usage(3, 10, 10, 1439), Limit(3, 10), NOW) == NOW + 50 * MINUTE
    assert over_until(usage(3, 10, 59, 600), Limit(3, 10), NOW) == NOW - 600 * MINUTE + DAY


def test_a_limit_of_nothing_is_asked_again_a_window_later_and_not_at_once() -> None:
    assert over_until(usage(0, 0, 10**6, 10**6), Limit(0, 5), NOW) == NOW + HOUR
    assert over_until(usage(0, 0, 10**6, 10**6), Limit(5, 0), NOW) == NOW + DAY
