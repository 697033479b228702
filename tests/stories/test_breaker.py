"""The breaker: a provider that fails is left alone, tried once, and nothing is burnt meanwhile (N6.4)."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, TARO, crowd
from tests.stories.world import World

SECOND = timedelta(seconds=1)
FIVE = crowd(5)
TEN = crowd(15)[5:]


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO, *FIVE, *TEN)
    world.write("welcome", "email", "in_app")


def break_it(world: World) -> None:
    """Five failures in a row; the provider is well again afterwards."""
    world.misbehave("error", channel="email", count=5)
    world.tell(*FIVE, channels=["email"])


def attempts(world: World) -> float:
    return world.metric("provider_attempts_total", provider="catcher-email")


def test_five_failures_in_a_row_open_it_for_a_minute(world: World) -> None:  # N6.4
    break_it(world)
    assert world.metric("provider_breaker_open", provider="catcher-email") == 1
    world.tell(HANAKO, channels=["email"])
    assert attempts(world) == 5
    world.advance(59 * SECOND)
    assert attempts(world) == 5
    assert world.caught() == []
    world.advance(SECOND)
    assert attempts(world) > 5
    assert world.metric("provider_breaker_open", provider="catcher-email") == 0


def test_four_failures_do_not_open_it(world: World) -> None:  # N6.4
    world.misbehave("error", channel="email", count=4)
    world.tell(*FIVE[:4], channels=["email"])
    assert world.status(world.tell(HANAKO, channels=["email"])) == "SENT"


def test_nothing_is_lost_or_burnt_while_it_is_open(world: World) -> None:  # N6.4
    break_it(world)
    batch_id = world.tell(*TEN, channels=["email"])
    world.advance(10 * 60 * SECOND)
    assert {n["status"] for n in world.notifications(batch_id)} == {"SENT"}
    assert {n["retry_count"] for n in world.notifications(batch_id)} == {0}
    assert len(world.caught()) == len(FIVE) + len(TEN)
    assert world.letters() == []


def test_after_its_minute_one_trial_is_sent_and_a_failure_opens_it_again(world: World) -> None:  # N6.4
    break_it(world)
    world.tell(*TEN, channels=["email"])
    world.misbehave("error", channel="email", count=1)
    world.advance(60 * SECOND)
    assert attempts(world) == 5 + 1
    world.advance(59 * SECOND)
    assert attempts(world) == 5 + 1
    world.advance(60 * SECOND)
    assert len(world.caught()) == len(FIVE) + len(TEN)


def test_while_the_trial_is_on_its_way_nothing_else_goes(world: World) -> None:  # N6.4
    break_it(world)
    world.tell(*TEN, channels=["email"])
    world.misbehave("slow", channel="email", count=1, seconds=5)
    world.advance(64 * SECOND)
    assert attempts(world) == 5  # a call that is under way is counted when it is answered
    assert world.metric("dispatch_sending") <= 1
    world.advance(2 * SECOND)
    assert len(world.caught()) == len(FIVE) + len(TEN)


def test_an_open_breaker_makes_marketing_wait_and_is_no_try(world: World) -> None:  # N6.5
    world.wish(HANAKO, categories={"marketing": True})
    break_it(world)
    batch_id = world.tell(HANAKO, channels=["email"], category="marketing")
    assert world.status(batch_id) == "QUEUED"
    world.advance(120 * SECOND)
    assert world.status(batch_id) == "SENT"


def test_another_account_goes_on(world: World) -> None:  # N5.2, I7
    break_it(world)
    assert world.status(world.tell(HANAKO, channels=["in_app"])) == "SENT"
