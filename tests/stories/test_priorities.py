"""Priorities: what is urgent overtakes what is not, and what is low still arrives (N5.3)."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, TARO, crowd
from tests.stories.world import World

SECOND = timedelta(seconds=1)
GUESTS = crowd(600)


@pytest.fixture(autouse=True)
def many_low_ones_and_a_slow_provider(world: World) -> None:
    world.meet(HANAKO, TARO, *GUESTS)
    world.write("welcome", "email")
    world.misbehave("slow", channel="email", seconds=1)


@pytest.mark.parametrize("priority", ["critical", "high", "normal"])
def test_a_more_urgent_message_does_not_wait_behind_the_low_ones(world: World, priority: str) -> None:  # N5.3
    low = world.tell(*GUESTS, priority="low")
    world.advance(SECOND / 2)
    urgent = world.tell(HANAKO, priority=priority)
    world.advance(SECOND)
    assert world.status(urgent) == "SENT"
    assert world.get(f"/api/v1/notifications/{low}/status")["pending"] > 400


def test_low_ones_arrive_although_more_urgent_ones_keep_coming(world: World) -> None:  # N5.3
    low = world.tell(*GUESTS[:100], priority="low")
    for number in range(30):
        world.tell(TARO, priority="critical", data={"n": number})
        world.advance(SECOND)
    assert world.get(f"/api/v1/notifications/{low}/status")["delivered"] == 100


def test_a_batch_of_low_ones_is_sent_in_bulk(world: World) -> None:  # N5.3
    world.tell(*GUESTS, priority="low")
    world.advance(10 * SECOND)
    assert world.metric("provider_attempts_total", provider="catcher-email") == 600
    assert world.metric("provider_api_latency_count", provider="catcher-email") == 6
