"""Restarts: a clean shutdown finishes what is being sent, and the next start goes on where it was (W26)."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, TARO, crowd
from tests.stories.conftest import Build, with_rounds
from tests.stories.world import World, kinds

SECOND = timedelta(seconds=1)
GUESTS = crowd(1200)


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO)
    world.write("welcome", "email", "in_app")


def test_everything_is_there_after_a_restart(world: World) -> None:  # N4.6
    sent = world.tell(HANAKO, channels=["email"])
    world.restart()
    assert world.status(sent) == "SENT"
    assert len(world.caught()) == 1
    assert world.get("/api/v1/users/hanako")["email"] == HANAKO.email
    assert world.status(world.tell(TARO, channels=["email"])) == "SENT"


NOTHING_KEPT = -1


def undecided(world: World) -> int:
    """Recipients left to decide, as a stopped product has left them in the store."""
    ((left,),) = world.rows("SELECT coalesce(sum(recipients - next_recipient), -1) FROM batches")
    return int(left)


def test_a_batch_stopped_between_two_slices_is_finished_by_the_next_start(build: Build) -> None:  # N4.1, N4.6
    seen: set[bool] = set()
    for steps in range(1, 7):
        world = build()
        world.meet(*GUESTS[:5])
        world.write()
        world.begin("POST", "/api/v1/notifications", world.request(*GUESTS, channels=["email"]))
        world.take_steps(steps)
        world.stop()
        left = undecided(world)
        seen.add(left > 0)
        world.start()
        world.until_idle()
        if left == NOTHING_KEPT:  # the stop was quicker than the call, which was not answered
            assert not world.listed("/api/v1/users/guest-0000/notifications")
            continue
        (batch_id,) = {n["batch_id"] for n in world.listed("/api/v1/users/guest-0000/notifications")}
        batch = world.get(f"/api/v1/notifications/{batch_id}")
        assert (batch["accepted"], batch["rejected"], batch["undecided"]) == (5, 1195, 0)
        assert len(world.caught()) == 5
    assert True in seen  # else the story was not told


def test_what_is_being_sent_at_the_stop_is_finished_and_not_sent_twice(world: World) -> None:  # W26
    world.misbehave("slow", channel="email", seconds=5)
    batch_id = world.tell(HANAKO, TARO, channels=["email"])
    assert {n["status"] for n in world.notifications(batch_id)} == {"SENDING"}
    world.restart()
    world.advance(60 * SECOND)
    assert {tuple(kinds(n)) for n in world.notifications(batch_id)} == {("queued", "sent")}
    assert len(world.caught()) == 2


def test_while_it_stops_nothing_more_is_accepted(world: World) -> None:  # W26
    world.misbehave("slow", channel="email", seconds=5)
    world.tell(HANAKO, channels=["email"])
    stopping = world.loop.create_task(world.noroshi.stop())
    world.until_idle()
    refused = world.ask(TARO)
    assert (refused.status, refused["code"], refused.headers["retry-after"]) == (503, "overloaded", "5")
    assert world.call("GET", "/readyz").status == 503
    assert world.call("GET", "/healthz").status == 200
    world.advance(10 * SECOND)
    assert stopping.done()
    world.loop.close()


@with_rounds
def test_what_a_dead_process_held_is_sent_by_the_next_one(world: World) -> None:  # W10, I8
    world.misbehave("hang", channel="email", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    assert world.status(batch_id) == "SENDING"
    world.crash()
    world.until_idle()
    notification = world.notification(batch_id)
    assert (notification["status"], kinds(notification)) == ("SENT", ["queued", "outcome_unknown", "sent"])


@with_rounds
def test_a_one_time_code_that_a_dead_process_held_is_given_up(world: World) -> None:  # N3.6
    world.misbehave("hang", channel="email", count=1)
    batch_id = world.tell(HANAKO, channels=["email"], category="one_time_code", priority="critical")
    world.crash()
    world.until_idle()
    notification = world.notification(batch_id)
    assert (notification["status"], notification["reason"]) == ("DEAD_LETTERED", "outcome_unknown")
    assert world.caught() == []
