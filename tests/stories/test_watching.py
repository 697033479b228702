"""Watching: what an operator sees of the traffic (N16.1)."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, SAKURA, TARO
from tests.stories.conftest import with_rounds
from tests.stories.world import World

WANTED = (
    "notification_sent_total",
    "notification_delivery_latency_bucket",
    "notification_retry_total",
    "notification_dead_lettered_total",
    "notification_queue_depth",
    "notification_batches_created_total",
    "notification_batch_size_bucket",
    "notification_rate_limited_total",
    "accept_refused_total",
    "accept_waiting_calls",
    "notification_template_not_found_total",
    "notification_render_errors_total",
    "notification_alerts_total",
    "notification_oldest_unfinished_seconds",
    "provider_api_latency_bucket",
    "provider_errors_total",
    "provider_attempts_total",
    "sweeper_last_run_timestamp",
    "accept_group_size_bucket",
    "provider_error_rate",
    "worker_processing_rate",
    "store_commit_group_size_bucket",
    "store_commit_seconds_bucket",
)


@with_rounds
def test_after_some_traffic_every_metric_that_applies_is_there(world: World) -> None:  # N16.1
    world.meet(HANAKO, TARO)
    world.write("welcome", "email")
    world.write("picky", "email", body="{{ missing }}")
    world.misbehave("error", count=1)
    for number in range(6):
        world.tell(HANAKO, channels=["email"], data={"n": number})
    world.tell(TARO, template_id="picky")
    world.tell(TARO, channels=["in_app"], priority="critical")
    world.ask(TARO, template_id="never-written")
    pause = world.post("/api/v1/pauses", {"kind": "everything"})
    world.tell(TARO, channels=["email"], data={"n": 7})
    world.advance(timedelta(seconds=30))
    assert world.metric("notification_oldest_unfinished_seconds") >= 29
    assert world.metric("notification_queue_depth") == 2  # and the one that waits for its retry
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.advance(timedelta(seconds=30))
    text = world.get("/metrics").text.decode()
    assert [name for name in WANTED if f"\n{name}" not in text] == []
    assert world.metric("notification_sent_total", channel="email", priority="normal", status="sent") == 4
    assert world.metric("notification_delivery_latency_count", channel="email") == 4
    assert world.metric("notification_queue_depth") == 0
    assert world.metric("accept_refused_total", code="unknown_template") == 1
    assert world.metric("notification_batches_created_total") == 9
    assert world.metric("accept_group_size_sum") == 9
    assert 1 <= world.metric("accept_group_size_count") <= 9


@with_rounds
def test_the_rates_are_those_of_the_last_minute(world: World) -> None:  # N16.1
    world.meet(HANAKO, TARO)
    world.write("welcome", "email")
    world.misbehave("error", count=1)
    world.tell(HANAKO, TARO, channels=["email"])
    world.advance(timedelta(seconds=20))
    assert world.metric("provider_attempts_total") == 3  # one of them failed, and its retry did not
    assert world.metric("provider_error_rate", provider="catcher-email") == pytest.approx(1 / 3)
    assert world.metric("worker_processing_rate", channel="email") == pytest.approx(3 / 20, rel=0.2)
    world.advance(timedelta(seconds=70))
    assert world.metric("provider_error_rate", provider="catcher-email") == 0
    assert world.metric("worker_processing_rate", channel="email") == 0


@with_rounds
def test_what_is_claimed_and_never_ends_is_not_young(world: World) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    world.misbehave("hang", count=1)
    world.ask(HANAKO, channels=["email"])
    world.advance(timedelta(seconds=8))
    age = world.metric("notification_oldest_unfinished_seconds", lane="email.catcher-email.normal")
    assert age == pytest.approx(8, abs=2)


@with_rounds
def test_the_sweepers_heart_beats(world: World) -> None:
    world.advance(timedelta(seconds=3))
    first = world.metric("sweeper_last_run_timestamp")
    world.advance(timedelta(seconds=10))
    assert world.metric("sweeper_last_run_timestamp") == pytest.approx(first + 10, abs=1)


def test_the_latency_is_counted_from_the_due_time(world: World) -> None:  # N16.1
    world.meet(HANAKO)
    world.write()
    world.tell(HANAKO, scheduled_at=world.after(timedelta(hours=1)))
    world.advance(timedelta(hours=2))
    assert world.metric("notification_delivery_latency_count", channel="email") == 1
    assert world.metric("notification_delivery_latency_sum", channel="email") < 1


def test_readiness_says_that_the_catcher_stands_in(world: World) -> None:
    ready = world.get("/readyz")
    assert ready["status"] == "ready"
    assert "catcher" in ready["notes"][0]


def test_the_trail_explains_why_sakura_did_not_hear(world: World) -> None:
    world.meet(SAKURA)
    world.write("welcome", "email", "sms", "in_app")
    world.wish(SAKURA, channels={"in_app": False})
    batch_id = world.tell(SAKURA)
    sentences = {n["channel"]: n["trail"][-1]["sentence"] for n in world.notifications(batch_id)}
    assert sentences == {
        "email": "The person has no e-mail address.",
        "sms": "The person has no phone number.",
        "in_app": "The person has turned this channel off.",
    }
