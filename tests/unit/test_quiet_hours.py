"""Quiet hours over zones, midnight and clock changes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noroshi.domain.instants import Instant, at, moment_of
from noroshi.domain.people import QuietHours
from noroshi.domain.quiet_hours import quiet_until

NIGHT = QuietHours(enabled=True, start="23:00", end="07:00")
ZONES = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Tokyo", "Pacific/Apia"]


def local(zone: str, text: str, fold: int = 0) -> Instant:
    return at(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold))


def until(hours: QuietHours, zone: str | None, now: Instant) -> datetime | None:
    found = quiet_until(hours, zone, now)
    return None if found is None else moment_of(found)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-05-01T22:59:59", None),
        ("2026-05-01T23:00", "2026-05-02T07:00"),
        ("2026-05-02T00:00", "2026-05-02T07:00"),
        ("2026-05-02T06:59:59", "2026-05-02T07:00"),
        ("2026-05-02T07:00", None),
    ],
)
def test_the_night_is_quiet_from_its_start_to_just_before_its_end(now: str, expected: str | None) -> None:
    # N3.4: [start, end), across midnight
    found = quiet_until(NIGHT, "Europe/Berlin", local("Europe/Berlin", now))
    assert found == (None if expected is None else local("Europe/Berlin", expected))


def test_hours_of_one_day_do_not_cross_midnight() -> None:
    # N3.4
    hours = QuietHours(enabled=True, start="12:00", end="13:30")
    assert quiet_until(hours, "UTC", local("UTC", "2026-05-01T12:15")) == local("UTC", "2026-05-01T13:30")
    assert quiet_until(hours, "UTC", local("UTC", "2026-05-01T23:30")) is None


def test_hours_own_zone_wins_over_the_users_and_tokyo_is_the_last_resort() -> None:
    # N3.4
    now = at(datetime(2026, 5, 1, 15, 0, tzinfo=UTC))  # midnight in Tokyo, 11:00 in New York
    own = QuietHours(enabled=True, start="23:00", end="07:00", timezone="America/New_York")
    assert quiet_until(own, "Asia/Tokyo", now) is None
    assert quiet_until(NIGHT, "America/New_York", now) is None
    assert until(NIGHT, None, now) == datetime(2026, 5, 1, 22, 0, tzinfo=UTC)


def test_a_zone_that_does_not_exist_is_read_as_tokyo() -> None:
    now = at(datetime(2026, 5, 1, 15, 0, tzinfo=UTC))
    for name in ("Mars/Olympus", "../etc", "Europe"):
        assert quiet_until(NIGHT, name, now) == quiet_until(NIGHT, "Asia/Tokyo", now)


def test_no_hours_when_disabled_or_when_start_is_end() -> None:
    # N3.4: start = end means none
    now = local("Asia/Tokyo", "2026-05-01T23:30")
    assert quiet_until(QuietHours(enabled=False, start="23:00", end="07:00"), None, now) is None
    assert quiet_until(QuietHours(enabled=True, start="23:00", end="23:00"), None, now) is None


def test_an_end_that_the_clocks_skip_is_the_instant_of_the_change() -> None:
    # N3.4: New York goes from 02:00 to 03:00 on 2026-03-08
    hours = QuietHours(enabled=True, start="22:00", end="02:30")
    found = until(hours, "America/New_York", local("America/New_York", "2026-03-08T01:00"))
    assert found == datetime(2026, 3, 8, 7, 0, tzinfo=UTC)


def test_a_start_that_the_clocks_skip_is_the_instant_of_the_change() -> None:
    hours = QuietHours(enabled=True, start="02:30", end="04:00")
    change = at(datetime(2026, 3, 8, 7, 0, tzinfo=UTC))
    assert quiet_until(hours, "America/New_York", Instant(change - 1)) is None
    assert until(hours, "America/New_York", change) == datetime(2026, 3, 8, 8, 0, tzinfo=UTC)


def test_a_time_that_the_clocks_repeat_counts_the_first_time_only() -> None:
    # N3.4: New York shows 01:00 to 02:00 twice on 2026-11-01
    hours = QuietHours(enabled=True, start="01:00", end="01:30")
    first, again = (local("America/New_York", "2026-11-01T01:15", fold) for fold in (0, 1))
    assert until(hours, "America/New_York", first) == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert quiet_until(hours, "America/New_York", again) is None


def test_the_day_that_apia_skipped_joins_its_two_nights() -> None:
    # There was no 2011-12-30 in Apia: the night of the 29th runs into that of the 31st
    found = quiet_until(NIGHT, "Pacific/Apia", local("Pacific/Apia", "2011-12-29T23:30"))
    assert found == local("Pacific/Apia", "2011-12-31T07:00")


def first_showing(zone: ZoneInfo, wall: datetime) -> datetime:
    """By walking: from well before, in half-hours and then in minutes, until the clock shows `wall` or later."""
    moment = (wall - timedelta(hours=40)).replace(tzinfo=UTC)
    for step in (timedelta(minutes=30), timedelta(minutes=1)):
        while (moment + step).astimezone(zone).replace(tzinfo=None) < wall:
            moment += step
    return moment + timedelta(minutes=1)


def slow_quiet_until(zone_name: str, start: str, end: str, now: datetime) -> datetime | None:
    zone, ends = ZoneInfo(zone_name), now
    today = now.astimezone(zone).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    for days in range(-2, 3):
        begin, finish = (
            today + timedelta(days=days, hours=int(text[:2]), minutes=int(text[3:])) for text in (start, end)
        )
        finish += timedelta(days=1 if start > end else 0)
        if first_showing(zone, begin) <= ends < first_showing(zone, finish):
            ends = first_showing(zone, finish)
    return None if ends == now else ends


times = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.sampled_from([0, 15, 30, 59]))
changes = st.sampled_from(
    [
        *(datetime(2026, 3, 8, 7), datetime(2026, 11, 1, 6), datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1)),
        *(datetime(2026, 4, 4, 15), datetime(2026, 10, 3, 15, 30)),
        *(datetime(2011, 12, 30, 10), datetime(2011, 9, 24, 14)),
    ]
)
near_a_change = st.builds(
    lambda change, minutes: change + timedelta(minutes=minutes), changes, st.integers(-2000, 2000)
)
any_time = st.datetimes(datetime(2009, 1, 1), datetime(2037, 1, 1))


@given(st.sampled_from(ZONES), times, times, near_a_change | any_time)
@example("Pacific/Apia", "23:00", "07:00", datetime(2011, 12, 30, 9, 59))
@example("Australia/Lord_Howe", "01:45", "02:15", datetime(2026, 10, 3, 15, 30))
def test_the_fast_answer_is_the_slow_one(zone: str, start: str, end: str, naive: datetime) -> None:
    # N3.4
    now = naive.replace(tzinfo=UTC)
    expected = None if start == end else slow_quiet_until(zone, start, end, now)
    hours = QuietHours(enabled=True, start=start, end=end, timezone=zone)
    for _ in range(2):  # the second answer comes from memory
        assert until(hours, None, at(now)) == expected


def test_a_remembered_span_does_not_answer_for_another_time() -> None:
    day, night = local("Asia/Tokyo", "2026-05-01T12:00"), local("Asia/Tokyo", "2026-05-01T23:30")
    answers = [quiet_until(NIGHT, "Asia/Tokyo", now) for now in (day, night, day, night)]
    assert answers == [None, local("Asia/Tokyo", "2026-05-02T07:00")] * 2
