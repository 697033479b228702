"""Limits: how much a person gets in any hour and any day, and what becomes of what is over (N8)."""

from datetime import timedelta
from itertools import count

import pytest

from tests.cast import HANAKO, TARO
from tests.stories.client import Json
from tests.stories.world import World, instant

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
NUMBERS = count()


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO)
    world.write("welcome", "email", "push", "sms", "in_app")


def flood(world: World, times: int, channel: str = "email", **fields: object) -> list[Json]:
    """The same person is told something new that many times; what became of each."""
    batches = [world.tell(HANAKO, channels=[channel], data={"n": next(NUMBERS)}, **fields) for _ in range(times)]
    return [world.notification(batch_id) for batch_id in batches]


@pytest.mark.parametrize(
    ("channel", "priority", "allowed"),
    [
        ("email", "normal", 3),
        ("email", "low", 1),
        ("email", "high", 15),
        ("sms", "normal", 2),
        ("sms", "low", 1),
        ("push", "normal", 10),
        ("push", "low", 5),
        ("in_app", "normal", 20),
    ],
)
def test_an_hour_holds_so_many_and_the_next_one_is_suppressed(
    world: World, channel: str, priority: str, allowed: int
) -> None:  # N8.1, N8.2
    outcomes = flood(world, allowed + 2, channel, priority=priority)
    assert [n["status"] for n in outcomes] == ["SENT"] * allowed + ["SUPPRESSED"] * 2
    assert {n["reason"] for n in outcomes[allowed:]} == {"rate_limited"}
    assert len(world.caught(HANAKO, channel)) == allowed
    assert world.metric("notification_rate_limited_total", channel=channel) == 2


def test_critical_is_neither_limited_nor_counted(world: World) -> None:  # N8.2
    assert {n["status"] for n in flood(world, 12, "sms", priority="critical")} == {"SENT"}
    assert [n["status"] for n in flood(world, 3, "sms")] == ["SENT", "SENT", "SUPPRESSED"]


def test_the_window_slides_and_does_not_jump(world: World) -> None:  # N8.1
    flood(world, 1)
    world.advance(40 * MINUTE)
    flood(world, 2)
    assert flood(world, 1)[0]["status"] == "SUPPRESSED"
    world.advance(20 * MINUTE - timedelta(microseconds=1))
    assert flood(world, 1)[0]["status"] == "SUPPRESSED"
    world.advance(timedelta(microseconds=1))
    assert [n["status"] for n in flood(world, 2)] == ["SENT", "SUPPRESSED"]
    world.advance(40 * MINUTE)
    assert [n["status"] for n in flood(world, 3)] == ["SENT", "SENT", "SUPPRESSED"]


def test_a_day_holds_so_many_whatever_the_hours_allow(world: World) -> None:  # N8.1
    statuses: list[str] = []
    for _ in range(4):
        statuses += [n["status"] for n in flood(world, 3)]
        world.advance(HOUR)
    assert statuses == ["SENT"] * 10 + ["SUPPRESSED"] * 2
    world.advance(20 * HOUR)
    assert flood(world, 1)[0]["status"] == "SENT"


def test_a_persons_own_limits_replace_the_defaults_and_the_multiplier_applies(world: World) -> None:  # N8.2
    world.wish(HANAKO, frequency_limit={"email": {"per_hour": 1, "per_day": 4}})
    assert [n["status"] for n in flood(world, 2)] == ["SENT", "SUPPRESSED"]
    assert [n["status"] for n in flood(world, 5, priority="high")] == ["SENT"] * 4 + ["SUPPRESSED"]


@pytest.mark.parametrize("category", ["transaction", "security"])
def test_over_the_limit_these_categories_wait_until_the_window_frees(world: World, category: str) -> None:  # N8.2
    flood(world, 1)
    world.advance(10 * MINUTE)
    flood(world, 2)
    frees = world.now + 50 * MINUTE
    batch_id = world.tell(HANAKO, channels=["email"], category=category)
    waiting = world.notification(batch_id)
    assert (waiting["status"], waiting["reason"]) == ("SCHEDULED", "rate_limited")
    assert instant(waiting["due_at"]) == instant(frees.isoformat())
    world.advance_to(frees)
    assert world.status(batch_id) == "SENT"
    (message,) = [m for m in world.caught() if m["notification_id"] == waiting["notification_id"]]
    assert instant(message["caught_at"]) == instant(frees.isoformat())


def test_of_many_that_wait_each_comes_when_there_is_room(world: World) -> None:  # N8.2
    flood(world, 3)
    waiting = flood(world, 4, category="transaction")
    assert {n["status"] for n in waiting} == {"SCHEDULED"}
    world.advance(HOUR)
    assert len(world.caught()) == 6
    world.advance(HOUR)
    assert len(world.caught()) == 7


def test_retries_of_one_notification_count_once(world: World) -> None:  # N8.2
    world.misbehave("error", count=2)
    world.tell(HANAKO, channels=["email"])
    world.advance(5 * MINUTE)
    assert len(world.caught()) == 1
    assert world.get("/api/v1/users/hanako/rate-limits")["channels"]["email"]["hour"]["remaining"] == 2


def test_what_is_suppressed_takes_no_quota(world: World) -> None:  # N5.1
    world.wish(HANAKO, categories={"social": False})
    flood(world, 5, category="social")
    world.tell(HANAKO, channels=["email"], data={"same": 1})
    world.tell(HANAKO, channels=["email"], data={"same": 1})
    assert world.get("/api/v1/users/hanako/rate-limits")["channels"]["email"]["hour"]["remaining"] == 2


def test_one_persons_flood_is_not_anothers(world: World) -> None:  # N8.1
    flood(world, 4)
    assert world.status(world.tell(TARO, channels=["email"])) == "SENT"
    assert world.status(world.tell(HANAKO, channels=["push"])) == "SENT"


def test_recipients_of_one_slice_count_for_each_other(world: World) -> None:  # N8.1
    calls = [world.request(HANAKO, channels=["email"], data={"n": n}) for n in range(6)]
    answers = world.together([("POST", "/api/v1/notifications", call) for call in calls])
    assert sum(answer["accepted"] for answer in answers) == 3
    world.until_idle()
    assert len(world.caught()) == 3


def test_the_limits_endpoint_says_what_is_left_and_when_it_frees(world: World) -> None:  # N8.3
    fresh = world.get("/api/v1/users/hanako/rate-limits")["channels"]
    assert fresh["email"] == {
        "hour": {"limit": 3, "remaining": 3, "reset": None},
        "day": {"limit": 10, "remaining": 10, "reset": None},
    }
    assert (fresh["voice"]["hour"]["limit"], fresh["web_push"]["day"]["limit"]) == (10, 40)
    began = world.now
    flood(world, 1)
    world.advance(10 * MINUTE)
    flood(world, 3)
    email = world.get("/api/v1/users/hanako/rate-limits")["channels"]["email"]
    assert (email["hour"]["remaining"], email["day"]["remaining"]) == (0, 7)
    assert instant(email["hour"]["reset"]) == instant((began + HOUR).isoformat())
    assert instant(email["day"]["reset"]) == instant((began + 24 * HOUR).isoformat())


def test_the_limits_endpoint_knows_a_persons_own_limits(world: World) -> None:  # N8.3
    world.wish(HANAKO, frequency_limit={"sms": {"per_hour": 7, "per_day": 8}})
    sms = world.get("/api/v1/users/hanako/rate-limits")["channels"]["sms"]
    assert (sms["hour"]["limit"], sms["day"]["limit"]) == (7, 8)
