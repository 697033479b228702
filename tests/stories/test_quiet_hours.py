"""Quiet hours: the person is left alone, nothing is dropped, and the moment of release decides (N3.4, N5.1)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.cast import ALICE, HANAKO, TARO
from tests.stories.conftest import Build
from tests.stories.world import World, instant, kinds

NIGHT = {"enabled": True, "start": "23:00", "end": "07:00"}
EVENING = datetime(2026, 3, 2, 15, 30, tzinfo=UTC)
"""Half past midnight in Tokyo."""
MORNING = datetime(2026, 3, 2, 22, 0, tzinfo=UTC)
"""07:00 in Tokyo."""


@pytest.fixture
def world(build: Build) -> World:
    world = build(EVENING)
    world.meet(HANAKO, TARO)
    world.write("welcome", "email", "in_app")
    world.wish(HANAKO, quiet_hours=NIGHT)
    return world


def test_a_message_at_night_waits_for_the_morning_across_midnight(world: World) -> None:  # N3.4
    batch_id = world.tell(HANAKO, TARO, channels=["email"])
    waiting = next(n for n in world.notifications(batch_id) if n["user_id"] == "hanako")
    assert (waiting["status"], waiting["reason"]) == ("SCHEDULED", "quiet_hours")
    assert instant(waiting["due_at"]) == instant(MORNING.isoformat())
    assert [m["user_id"] for m in world.caught()] == ["taro"]
    world.advance_to(MORNING - timedelta(microseconds=1))
    assert world.caught(HANAKO) == []
    world.advance_to(MORNING)
    (message,) = world.caught(HANAKO)
    assert instant(message["caught_at"]) == instant(MORNING.isoformat())
    sent = next(n for n in world.notifications(batch_id) if n["user_id"] == "hanako")
    assert kinds(sent) == ["deferred", "released", "queued", "sent"]


def test_a_deferred_message_counts_as_accepted(world: World) -> None:  # N4.1
    answer = world.ask(HANAKO, channels=["email"])
    assert (answer["status"], answer["accepted"], answer["rejected"]) == ("queued", 1, 0)
    sums = world.get(f"/api/v1/notifications/{answer['batch_id']}/status")
    assert (sums["pending"], sums["statuses"]) == (1, {"SCHEDULED": 1})


@pytest.mark.parametrize("priority", ["critical", "high"])
def test_critical_and_high_pass(world: World, priority: str) -> None:  # N3.4
    assert world.status(world.tell(HANAKO, channels=["email"], priority=priority)) == "SENT"


@pytest.mark.parametrize("priority", ["normal", "low"])
def test_normal_and_low_wait(world: World, priority: str) -> None:  # N3.4
    assert world.status(world.tell(HANAKO, channels=["email"], priority=priority)) == "SCHEDULED"


def test_the_wishes_of_the_morning_decide(world: World) -> None:  # N5.1
    off, gone = (world.tell(HANAKO, channels=[channel]) for channel in ("email", "in_app"))
    world.wish(HANAKO, quiet_hours=NIGHT, channels={"email": False})
    world.advance_to(MORNING)
    assert world.reasons(off) == {("hanako", "email"): "channel_off"}
    assert world.status(gone) == "SENT"


def test_quiet_hours_lengthened_meanwhile_hold_it_again(world: World) -> None:  # N5.1
    batch_id = world.tell(HANAKO, channels=["email"])
    world.wish(HANAKO, quiet_hours={**NIGHT, "end": "09:30"})
    world.advance_to(MORNING)
    assert world.status(batch_id) == "SCHEDULED"
    world.advance(timedelta(hours=2, minutes=30))
    assert world.status(batch_id) == "SENT"
    assert kinds(world.notification(batch_id)) == ["deferred", "deferred", "released", "queued", "sent"]


def test_an_address_removed_meanwhile_is_found_missing(world: World) -> None:  # N5.1
    batch_id = world.tell(HANAKO, channels=["email"])
    world.put("/api/v1/users/hanako", {"name": "Hanako"})
    world.advance_to(MORNING)
    assert world.reasons(batch_id) == {("hanako", "email"): "no_email"}


def test_what_expires_before_the_morning_is_suppressed_not_silent(world: World) -> None:  # N5.1, W19
    batch_id = world.tell(HANAKO, channels=["email"], expires_at=world.after(timedelta(hours=1)))
    world.advance_to(MORNING)
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("SUPPRESSED", "expired")
    assert world.caught() == []


def test_what_waits_takes_no_quota_until_it_is_released(world: World) -> None:  # N5.1
    world.tell(HANAKO, channels=["email"])
    assert world.get("/api/v1/users/hanako/rate-limits")["channels"]["email"]["hour"]["remaining"] == 3
    world.advance_to(MORNING)
    assert world.get("/api/v1/users/hanako/rate-limits")["channels"]["email"]["hour"]["remaining"] == 2


def test_released_ones_meet_the_limits_of_the_morning(world: World) -> None:  # N5.1, N8.1
    batches = [world.tell(HANAKO, channels=["email"], data={"n": number}) for number in range(5)]
    world.advance_to(MORNING)
    outcomes = [world.notification(batch_id)["status"] for batch_id in batches]
    assert sorted(outcomes) == ["SENT", "SENT", "SENT", "SUPPRESSED", "SUPPRESSED"]
    reasons = [world.notification(batch_id)["reason"] for batch_id in batches]
    assert reasons.count("rate_limited") == 2


def test_the_same_content_twice_in_the_night_comes_once(world: World) -> None:  # N9.1
    first = world.tell(HANAKO, channels=["email"])
    world.advance(timedelta(minutes=10))
    second = world.tell(HANAKO, channels=["email"])
    world.advance_to(MORNING)
    assert sorted([world.status(first), world.status(second)]) == ["SENT", "SUPPRESSED"]
    assert len(world.caught(HANAKO)) == 1


def test_hours_of_the_day_are_quiet_too(world: World) -> None:  # N3.4
    world.wish(HANAKO, quiet_hours={"enabled": True, "start": "09:00", "end": "17:00"})
    assert world.status(world.tell(HANAKO, channels=["email"])) == "SENT"
    world.advance_to(MORNING + timedelta(hours=2))
    batch_id = world.tell(HANAKO, channels=["in_app"])
    assert world.status(batch_id) == "SCHEDULED"
    world.advance(timedelta(hours=8))
    assert world.status(batch_id) == "SENT"


def test_start_equal_to_end_means_none(world: World) -> None:  # N3.4
    world.wish(HANAKO, quiet_hours={"enabled": True, "start": "00:30", "end": "00:30"})
    assert world.status(world.tell(HANAKO, channels=["email"])) == "SENT"


def test_the_zone_of_the_quiet_hours_goes_before_the_persons_own(world: World) -> None:  # N3.4
    world.wish(HANAKO, quiet_hours={**NIGHT, "timezone": "Europe/London"})
    assert world.status(world.tell(HANAKO, channels=["email"])) == "SENT"
    world.wish(TARO, quiet_hours={"enabled": True, "start": "15:00", "end": "16:00", "timezone": "Europe/London"})
    assert world.status(world.tell(TARO, channels=["email"])) == "SCHEDULED"


def test_who_named_no_zone_sleeps_in_tokyo(world: World) -> None:  # N3.4
    world.put("/api/v1/users/taro", {"name": "Taro", "email": "taro@example.com"})
    world.wish(TARO, quiet_hours=NIGHT)
    assert world.status(world.tell(TARO, channels=["email"])) == "SCHEDULED"


@pytest.mark.parametrize(
    ("night", "wakes"),
    [
        # The clocks go forward at 01:00 UTC on 29 March 2026 and back on 25 October.
        (datetime(2026, 3, 28, 23, 30, tzinfo=UTC), datetime(2026, 3, 29, 6, 0, tzinfo=UTC)),
        (datetime(2026, 10, 24, 22, 30, tzinfo=UTC), datetime(2026, 10, 25, 7, 0, tzinfo=UTC)),
    ],
)
def test_the_morning_comes_when_the_clock_on_the_wall_says_so(
    build: Build, night: datetime, wakes: datetime
) -> None:  # N3.4
    world = build(night)
    world.meet(ALICE)
    world.write()
    world.wish(ALICE, quiet_hours=NIGHT)
    batch_id = world.tell(ALICE)
    assert instant(world.notification(batch_id)["due_at"]) == instant(wakes.isoformat())
    world.advance_to(wakes)
    assert world.status(batch_id) == "SENT"


def test_an_end_that_the_clocks_skip_is_the_moment_of_the_change(build: Build) -> None:  # N3.4, W19
    world = build(datetime(2026, 3, 29, 0, 15, tzinfo=UTC))
    world.meet(ALICE)
    world.write()
    world.wish(ALICE, quiet_hours={"enabled": True, "start": "22:00", "end": "01:30"})
    batch_id = world.tell(ALICE)
    assert instant(world.notification(batch_id)["due_at"]) == instant("2026-03-29T01:00:00+00:00")
