"""Pauses: an operator stops an account, a channel, a category or everything, and loses nothing (N4.7)."""

from datetime import timedelta

import pytest

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.records import PauseKind
from noroshi.flow.way import Way
from tests.cast import HANAKO, TARO, crowd
from tests.stories.conftest import with_rounds
from tests.stories.world import World

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
GUESTS = crowd(20)


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO, *GUESTS)
    world.write("welcome", "email", "in_app")


def pause(world: World, kind: str, name: str | None = None) -> str:
    """Stopped; answers the path that resumes."""
    body = {"kind": kind} | ({} if name is None else {"name": name})
    answer = world.post("/api/v1/pauses", body)
    assert answer.status == 201
    return f"/api/v1/pauses/{answer['pause_id']}"


PAUSES = [
    ("account", "catcher-email"),
    ("channel", "email"),
    ("category", "general"),
    ("everything", None),
]


@pytest.mark.parametrize(("kind", "name"), PAUSES)
def test_what_is_paused_waits_and_nothing_is_lost(world: World, kind: str, name: str | None) -> None:  # N4.7
    resume = pause(world, kind, name)
    batch_id = world.tell(*GUESTS, channels=["email"])
    world.advance(10 * MINUTE)
    assert world.caught() == []
    assert {n["status"] for n in world.notifications(batch_id)} == {"QUEUED"}
    world.delete(resume)
    world.advance(5 * SECOND)
    assert len(world.caught()) == len(GUESTS)
    assert {n["retry_count"] for n in world.notifications(batch_id)} == {0}


@pytest.mark.parametrize(
    ("kind", "name", "passes"),
    [("account", "catcher-email", "in_app"), ("channel", "email", "in_app"), ("category", "social", "email")],
)
def test_what_is_not_paused_goes_on(world: World, kind: str, name: str, passes: str) -> None:  # N4.7
    pause(world, kind, name)
    assert world.status(world.tell(HANAKO, channels=[passes])) == "SENT"


def test_a_paused_category_stops_those_below_it(world: World) -> None:  # N3.6, N4.7
    resume = pause(world, "category", "social")
    like = world.tell(HANAKO, channels=["email"], category="like")
    general = world.tell(HANAKO, channels=["email"], data={"n": 2})
    assert (world.status(like), world.status(general)) == ("QUEUED", "SENT")
    world.delete(resume)
    world.until_idle()
    assert world.status(like) == "SENT"


def test_a_pause_holds_over_a_restart(world: World) -> None:  # N4.7
    resume = pause(world, "everything")
    batch_id = world.tell(HANAKO, channels=["email"])
    world.restart()
    world.advance(MINUTE)
    assert world.status(batch_id) == "QUEUED"
    world.delete(resume)
    world.until_idle()
    assert world.status(batch_id) == "SENT"


def test_a_retry_that_falls_due_in_a_pause_waits_and_burns_nothing(world: World) -> None:  # N4.7
    world.misbehave("error", count=1)
    batch_id = world.tell(HANAKO, channels=["email"])
    resume = pause(world, "channel", "email")
    world.advance(10 * MINUTE)
    assert world.status(batch_id) == "RETRYING"
    world.delete(resume)
    world.until_idle()
    assert (world.status(batch_id), world.notification(batch_id)["retry_count"]) == ("SENT", 1)


def test_two_pauses_of_one_thing_are_one(world: World) -> None:  # N4.7
    first, second = pause(world, "channel", "email"), pause(world, "channel", "email")
    assert first == second
    assert len(world.listed("/api/v1/pauses")) == 1
    world.delete(first)
    assert world.call("DELETE", first).status == 404
    assert world.status(world.tell(HANAKO, channels=["email"])) == "SENT"


def test_two_pauses_that_overlap_must_both_end(world: World) -> None:  # N4.7
    everything, channel = pause(world, "everything"), pause(world, "channel", "email")
    batch_id = world.tell(HANAKO, channels=["email"])
    world.delete(everything)
    world.until_idle()
    assert world.status(batch_id) == "QUEUED"
    world.delete(channel)
    world.until_idle()
    assert world.status(batch_id) == "SENT"


@with_rounds
@pytest.mark.parametrize(("kind", "name"), PAUSES)
def test_a_pause_written_by_another_process_takes_effect_within_five_seconds(
    world: World, kind: str, name: str | None
) -> None:  # N4.7
    pauses = world.store.pauses
    paused = world.run(pauses.add(DEFAULT_TENANT, PauseKind(kind), name, "the command line"))
    world.advance(5 * SECOND)
    batch_id = world.tell(*GUESTS, channels=["email"])
    world.advance(10 * SECOND)
    assert world.caught() == []
    assert world.run(pauses.remove(DEFAULT_TENANT, paused.pause_id))
    world.advance(5 * SECOND)
    assert {n["status"] for n in world.notifications(batch_id)} == {"SENT"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "everything", "name": "x"}, "name"),
        ({"kind": "channel"}, "name"),
        ({"kind": "channel", "name": "pigeon"}, "name"),
        ({"kind": "planet", "name": "x"}, "kind"),
        ({}, "kind"),
    ],
)
def test_a_pause_that_makes_no_sense_is_refused(world: World, body: dict[str, str], field: str) -> None:
    refused = world.call("POST", "/api/v1/pauses", body)
    assert (refused.status, refused["field"]) == (422, field)


def test_from_the_answer_on_nothing_is_sent_though_the_word_of_it_comes_late(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:  # N4.7
    monkeypatch.setattr(Way, "look_again", lambda _: None)  # the word to every process; ours does not wait for it
    pause(world, "everything")
    world.ask(HANAKO, channels=["email"], priority="critical")
    world.until_idle()
    assert world.caught() == []
