"""Retries: what is tried again, when, how often, and what is not (N6.1, N6.2, N6.5)."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from noroshi.domain.channels import CHANNELS
from tests.cast import HANAKO, JIRO, TARO
from tests.stories.client import Json
from tests.stories.conftest import Build
from tests.stories.world import World, kinds

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def world(build: Build) -> World:
    world = build()
    world.meet(HANAKO, TARO, JIRO)
    world.write("welcome", "email", "push", "sms", "in_app")
    return world


def moments(notification: Json, kind: str) -> list[datetime]:
    return [datetime.fromisoformat(entry["at"]) for entry in notification["trail"] if entry["kind"] == kind]


@pytest.mark.parametrize("channel", ["email", "push", "sms", "in_app"])
def test_retries_follow_the_channels_table_and_then_it_is_dead(world: World, channel: str) -> None:  # N6.1, N6.3
    policy = CHANNELS[channel].retry
    world.misbehave("error", channel=channel)
    batch_id = world.tell(HANAKO, channels=[channel])
    assert world.status(batch_id) == "RETRYING"
    world.advance(timedelta(hours=1))
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("DEAD_LETTERED", "SERVER_ERROR")
    assert kinds(notification) == ["queued"] + ["failed"] * policy.retries + ["dead_lettered"]
    tries = [*moments(notification, "failed"), *moments(notification, "dead_lettered")]
    for attempt, (before, after) in enumerate(pairwise(tries)):
        delay = min(policy.base * policy.factor**attempt, policy.longest)
        rest = MINUTE if attempt == 4 else timedelta(0)  # the fifth failure in a row opens the breaker
        assert max(delay * 0.5, rest) <= after - before <= max(delay * 1.5, rest)
    (letter,) = world.letters()
    assert (letter["code"], letter["tries"]) == ("SERVER_ERROR", policy.retries + 1)


def test_a_retry_that_succeeds_is_sent_and_shows_how_often_it_was_tried(world: World) -> None:  # N6.1
    world.misbehave("error", count=2)
    batch_id = world.tell(HANAKO, channels=["email"])
    world.advance(5 * MINUTE)
    notification = world.notification(batch_id)
    assert (notification["status"], notification["retry_count"], notification["error"]) == ("SENT", 2, None)
    assert kinds(notification) == ["queued", "failed", "failed", "sent"]
    assert len(world.caught()) == 1
    assert world.metric("notification_retry_total", channel="email", attempt="1") == 1
    assert world.metric("notification_retry_total", channel="email", attempt="2") == 1


def test_a_waiting_retry_shows_when_it_is_due_and_comes_then(world: World) -> None:  # N6.2
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    waiting = world.notification(batch_id)
    due = datetime.fromisoformat(waiting["due_at"])
    assert (waiting["status"], waiting["error"]) == ("RETRYING", "503 by order")
    assert 2.5 * SECOND <= due - world.now <= 7.5 * SECOND
    world.advance_to(due - timedelta(microseconds=1))
    assert world.caught() == []
    world.advance_to(due)
    assert len(world.caught()) == 1


def test_a_waiting_retry_holds_up_nobody(world: World) -> None:  # N6.2
    world.misbehave("error", count=1)
    world.tell(HANAKO, channels=["email"])
    assert world.status(world.tell(TARO, channels=["email"])) == "SENT"


def test_a_waiting_retry_survives_a_restart(world: World) -> None:  # N6.2
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    due = datetime.fromisoformat(world.notification(batch_id)["due_at"])
    world.restart()
    assert world.status(batch_id) == "RETRYING"
    world.advance_to(due)
    assert world.status(batch_id) == "SENT"


def test_the_providers_retry_after_wins_over_our_own_delay(world: World) -> None:  # N6.1, I9
    world.misbehave("too_many", count=1, retry_after=300)
    batch_id = world.tell(HANAKO, channels=["email"])
    world.advance(299 * SECOND)
    assert world.caught() == []
    world.advance(SECOND)
    assert world.status(batch_id) == "SENT"


def test_during_a_retry_after_nothing_of_the_account_is_sent_and_no_try_is_used(world: World) -> None:  # N6.1, I9
    world.misbehave("too_many", channel="email", count=1, retry_after=60)
    first = world.tell(HANAKO, channels=["email"])
    second = world.tell(TARO, channels=["email"])
    urgent = world.tell(TARO, channels=["email"], priority="critical", data={"n": 2})
    other = world.tell(HANAKO, channels=["in_app"])
    assert [world.status(b) for b in (first, second, urgent, other)] == ["QUEUED", "QUEUED", "QUEUED", "SENT"]
    world.advance(60 * SECOND)
    for batch_id in (first, second, urgent):
        assert world.notification(batch_id)["retry_count"] == 0
        assert kinds(world.notification(batch_id)) == ["queued", "sent"]


def test_a_retry_after_is_remembered_over_a_restart(world: World) -> None:  # I9
    world.misbehave("too_many", count=1, retry_after=600)
    batch_id = world.tell(HANAKO, channels=["email"])
    world.advance(MINUTE)
    world.restart()
    world.advance(8 * MINUTE)
    assert world.caught() == []
    world.advance(MINUTE)
    assert world.status(batch_id) == "SENT"


@pytest.mark.parametrize(("retry_after", "waits"), [(1e9, 3600), (-5, 30), (0, 30), (None, 30)])
def test_an_absurd_retry_after_is_bounded(world: World, retry_after: float | None, waits: int) -> None:  # F13
    world.misbehave("too_many", count=1, **({} if retry_after is None else {"retry_after": retry_after}))
    batch_id = world.tell(HANAKO, channels=["email"])
    world.advance(timedelta(seconds=waits - 1))
    assert world.caught() == []
    world.advance(SECOND)
    assert world.status(batch_id) == "SENT"


def test_marketing_gets_one_try(world: World) -> None:  # N6.5
    world.wish(HANAKO, categories={"marketing": True})
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO, channels=["email"], category="marketing")
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("DEAD_LETTERED", "SERVER_ERROR")
    (letter,) = world.letters()
    assert (letter["category"], letter["tries"]) == ("marketing", 1)


def test_a_device_that_is_gone_is_deactivated_and_not_tried_again(world: World) -> None:  # N1.11, N6.1
    world.misbehave("gone", count=1)
    batch_id = world.tell(JIRO, channels=["push"])
    assert world.status(batch_id) == "SENT"
    devices = world.listed("/api/v1/users/jiro/devices")
    assert [device["is_active"] for device in devices].count(False) == 1
    world.tell(JIRO, channels=["push"], data={"n": 2})
    assert len(world.caught(JIRO)) == 2 + 2


def test_each_device_is_retried_on_its_own(world: World) -> None:  # N1.10
    world.misbehave("error", channel="push", count=1)
    batch_id = world.tell(JIRO, channels=["push"])
    assert (world.status(batch_id), len(world.caught(JIRO))) == ("SENT", 2)
    world.advance(MINUTE)
    assert len(world.caught(JIRO)) == 3
    assert world.letters() == []


def test_a_push_whose_devices_all_end_is_dead(world: World) -> None:  # N1.10
    world.misbehave("gone", count=3)
    batch_id = world.tell(JIRO, channels=["push"])
    assert (world.status(batch_id), len(world.letters())) == ("DEAD_LETTERED", 3)
    assert world.reasons(world.tell(JIRO, channels=["push"], data={"n": 2})) == {("jiro", "push"): "no_device"}


def test_an_unknown_outcome_is_sent_again(world: World) -> None:  # N3.6, F12
    world.misbehave("drop_answer", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    world.advance(MINUTE)
    notification = world.notification(batch_id)
    assert (notification["status"], kinds(notification)) == ("SENT", ["queued", "failed", "sent"])
    assert len(world.caught()) == 2  # the provider had it the first time, which nobody could know


def test_a_one_time_code_gives_up_on_an_unknown_outcome(world: World) -> None:  # N3.6
    world.misbehave("drop_answer", count=1)
    batch_id = world.tell(HANAKO, channels=["sms"], category="one_time_code", priority="critical")
    world.advance(MINUTE)
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("DEAD_LETTERED", "outcome_unknown")
    assert len(world.caught()) == 1


def test_a_provider_that_never_answers_is_given_up_after_its_time(world: World) -> None:  # N1.9
    world.misbehave("hang", channel="email", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    world.advance(9 * SECOND)
    assert world.status(batch_id) == "SENDING"
    world.advance(2 * SECOND)
    waiting = world.notification(batch_id)
    assert (waiting["status"], waiting["trail"][-1]["detail"]["code"]) == ("RETRYING", "TIMEOUT")
    world.advance(MINUTE)
    assert world.status(batch_id) == "SENT"


def test_a_slow_channel_delays_no_other(world: World) -> None:  # N5.2, I7
    world.misbehave("slow", channel="email", seconds=8)
    slow = world.tell(HANAKO, channels=["email"])
    quick = world.tell(HANAKO, channels=["in_app"])
    assert (world.status(slow), world.status(quick)) == ("SENDING", "SENT")
    world.advance(8 * SECOND)
    assert world.status(slow) == "SENT"


def test_what_expires_while_it_waits_for_a_retry_is_not_sent(world: World) -> None:  # N5.1
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO, channels=["email"], expires_at=world.after(SECOND))
    world.advance(MINUTE)
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("SUPPRESSED", "expired")
    assert world.caught() == []
