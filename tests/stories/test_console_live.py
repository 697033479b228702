"""The console live: what happens appears by itself, and a stream ends when it should."""

from datetime import timedelta

import pytest

from noroshi.entrypoints.console import catcher
from tests.cast import HANAKO, TARO
from tests.stories.client import Client
from tests.stories.visitor import Visitor
from tests.stories.world import World


@pytest.fixture
def visitor(world: World) -> Visitor:
    world.meet(HANAKO, TARO)
    world.write("welcome", "email", "in_app", subject="<b>Hello</b>", title="Hello")
    visitor = Visitor(world)
    visitor.enter_by_key(world.mint())
    return visitor


def test_a_message_appears_within_a_second_of_the_post(world: World, visitor: Visitor) -> None:  # issue 4
    stream = visitor.listen("/console/catcher/live?after=0")
    world.advance_seconds(3.2)
    assert (stream.status, stream.names()) == (200, [])
    world.tell(HANAKO, channels=["email"])
    world.advance_seconds(1)
    assert stream.names() == ["row"]
    assert "&lt;b&gt;Hello&lt;" in stream.text
    assert "<b>Hello</b>" not in stream.text
    stream.hang_up()
    world.advance_seconds(1)
    assert stream.is_over


def test_a_stream_shows_what_its_page_asked_for(world: World, visitor: Visitor) -> None:
    by_channel = visitor.listen("/console/catcher/live?after=0&channel=in_app")
    by_person = visitor.listen(f"/console/catcher/live?after=0&user_id={TARO.user_id}")
    world.tell(HANAKO, TARO)
    world.advance_seconds(1)
    assert len(by_channel.names()) == 2
    assert len(by_person.names()) == 2
    for stream in (by_channel, by_person):
        stream.hang_up()
    world.advance_seconds(1)


def test_who_comes_back_misses_nothing_and_sees_nothing_twice(world: World, visitor: Visitor) -> None:
    first = visitor.listen("/console/catcher/live?after=0")
    world.tell(HANAKO, channels=["email"])
    world.advance_seconds(1)
    first.hang_up()
    world.advance_seconds(1)
    world.tell(TARO, channels=["email"])
    last = world.caught(HANAKO)[0]["caught_id"]
    again = visitor.listen("/console/catcher/live?after=0", **{"last-event-id": str(last)})
    world.advance_seconds(1)
    assert again.names() == ["row"]
    assert TARO.user_id in again.text
    again.hang_up()
    world.advance_seconds(1)


def test_many_messages_between_two_looks_all_appear(
    world: World, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catcher, "_MOST_AT_ONCE", 2)
    world.wish(HANAKO, frequency_limit={"email": {"per_hour": 100, "per_day": 100}})
    stream = visitor.listen("/console/catcher/live?after=0")
    for number in range(5):
        world.tell(HANAKO, channels=["email"], data={"number": number})
    numbers = sorted(message["caught_id"] for message in world.caught(HANAKO))
    assert len(numbers) == 5
    world.advance_seconds(1)
    assert stream.numbers() == numbers
    monkeypatch.setattr(catcher, "ROWS_OF_A_LIST", 3)
    again = visitor.listen("/console/catcher/live?after=0")
    world.advance_seconds(1)
    assert again.numbers() == numbers[-3:]  # those that the list would keep
    for one in (stream, again):
        one.hang_up()
    world.advance_seconds(1)


def test_a_batch_is_drawn_anew_when_its_fate_changes_and_only_then(world: World, visitor: Visitor) -> None:
    stream = visitor.listen("/console/live")
    visitor.post("/console/pauses", {"what": "channel:email"})
    world.tell(HANAKO, channels=["email"])
    world.advance_seconds(2)
    assert stream.names().count("row") == 1
    assert "1 under way" in stream.text
    (pause,) = world.get("/api/v1/pauses")["items"]
    visitor.post(f"/console/pauses/{pause['pause_id']}/resume")
    world.advance_seconds(2)
    assert "1 delivered" in stream.text
    stream.hang_up()
    world.advance_seconds(1)


def test_streams_end_when_the_server_does(world: World, visitor: Visitor) -> None:  # W26
    streams = [visitor.listen("/console/live"), visitor.listen("/console/catcher/live?after=0")]
    world.advance_seconds(1)
    assert not any(stream.is_over for stream in streams)
    visitor.is_closing = True
    world.advance_seconds(0.6)
    assert all(stream.is_over for stream in streams)


def test_a_key_with_a_limit_is_not_used_up_by_looking(world: World, visitor: Visitor) -> None:  # N4.5
    slow = Visitor(world)
    slow.enter_by_key(world.mint(per_minute=20))
    stream = slow.listen("/console/catcher/live?after=0")
    world.advance(timedelta(minutes=1))
    assert not stream.is_over
    world.tell(HANAKO, channels=["email"])
    world.advance(timedelta(seconds=10))
    assert stream.names() == ["row"]
    stream.hang_up()
    world.advance_seconds(10)


def test_a_place_that_is_none_is_the_beginning(world: World, visitor: Visitor) -> None:  # N16.3
    world.tell(HANAKO, channels=["email"])
    streams = [visitor.listen(f"/console/catcher/live?after={after}") for after in ("", "x", "-1", "9" * 30, "1e9")]
    world.advance_seconds(1)
    for stream in streams:
        assert stream.names() == ["row"]
        stream.hang_up()
    world.advance_seconds(1)


def test_head_of_a_stream_ends_at_once(world: World, visitor: Visitor) -> None:
    headers = {"cookie": f"noroshi_console={visitor.cookie}"}
    answer = world.call("HEAD", "/console/live", None, headers, Client(visitor.app, None))
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
