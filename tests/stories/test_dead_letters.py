"""Dead letters and alerts: what ended without success can be found, mended and sent again (N6.3)."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, TARO, crowd
from tests.stories.world import World, kinds

MINUTE = timedelta(minutes=1)
GUESTS = crowd(12)


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO, *GUESTS)
    world.write("welcome", "email", "in_app", "sms")


def kill(world: World, *people: object, channel: str = "email", **fields: object) -> str:
    """Told, and refused for good."""
    world.misbehave("gone", channel=channel, count=len(people))
    return world.tell(*people, channels=[channel], **fields)  # type: ignore[arg-type]


def test_a_dead_letter_is_listed_and_inspected_with_its_trail(world: World) -> None:  # N6.3
    batch_id = kill(world, HANAKO, channel="in_app")
    (letter,) = world.letters()
    notification = world.notification(batch_id)
    assert letter["notification_id"] == notification["notification_id"]
    assert (letter["code"], letter["error"], letter["channel"]) == ("UNREGISTERED", "gone by order", "in_app")
    inspected = world.get(f"/api/v1/dead-letters/{letter['dead_letter_id']}")
    assert [entry["kind"] for entry in inspected["trail"]] == ["dead_lettered"]


def test_a_letter_is_replayed_and_arrives(world: World) -> None:  # N6.3
    batch_id = kill(world, HANAKO, channel="in_app")
    (letter,) = world.letters()
    assert world.post(f"/api/v1/dead-letters/{letter['dead_letter_id']}/replay").body == {
        "replayed": 1,
        "untouched": 0,
        "is_complete": True,
    }
    world.until_idle()
    notification = world.notification(batch_id)
    assert (notification["status"], world.letters()) == ("SENT", [])
    assert kinds(notification) == ["queued", "dead_lettered", "replayed", "sent"]
    assert notification["trail"][2]["detail"] == {"by": "operator"}
    assert world.call("POST", f"/api/v1/dead-letters/{letter['dead_letter_id']}/replay").status == 404


def test_a_letter_without_a_template_cannot_be_replayed(world: World) -> None:  # N6.3
    world.tell(HANAKO, channels=["voice"])
    (letter,) = world.letters("code=template_missing")
    refused = world.call("POST", f"/api/v1/dead-letters/{letter['dead_letter_id']}/replay")
    assert (refused.status, refused["code"]) == (409, "conflict")
    assert len(world.letters()) == 1


def test_a_letter_is_discarded_and_its_notification_stays_dead(world: World) -> None:  # N6.3
    batch_id = kill(world, HANAKO, channel="in_app")
    (letter,) = world.letters()
    path = f"/api/v1/dead-letters/{letter['dead_letter_id']}"
    assert world.delete(path).status == 204
    assert world.call("DELETE", path).status == 404
    assert world.call("GET", path).status == 404
    assert world.status(batch_id) == "DEAD_LETTERED"


def test_letters_are_filtered_and_paged_newest_first(world: World) -> None:  # N6.3
    batch_id = kill(world, *GUESTS, channel="in_app")
    kill(world, TARO, channel="in_app", category="social")
    assert len(world.letters()) == 13
    everything = world.listed("/api/v1/dead-letters", limit=5)
    ids = [letter["dead_letter_id"] for letter in everything]
    assert ids == sorted(set(ids), reverse=True)
    assert len(ids) == 13
    assert len(world.letters("user_id=taro")) == 1
    assert len(world.letters("category=social&code=UNREGISTERED")) == 1
    assert len(world.letters(f"batch_id={batch_id}")) == 12
    assert world.letters("channel=email") == []


def test_all_that_match_are_replayed_and_no_others(world: World) -> None:  # N6.3
    first = kill(world, *GUESTS, channel="in_app")
    kill(world, TARO, channel="in_app", category="social")
    answer = world.post("/api/v1/dead-letters/replay", {"batch_id": first})
    world.until_idle()
    assert (answer["replayed"], answer["is_complete"]) == (12, True)
    assert [letter["user_id"] for letter in world.letters()] == ["taro"]
    assert {n["status"] for n in world.notifications(first)} == {"SENT"}


def test_all_that_match_are_discarded_and_no_others(world: World) -> None:  # N6.3
    kill(world, *GUESTS, channel="in_app")
    kill(world, TARO, channel="in_app", category="social")
    assert world.post("/api/v1/dead-letters/discard", {"category": "general"})["discarded"] == 12
    assert [letter["user_id"] for letter in world.letters()] == ["taro"]
    assert world.post("/api/v1/dead-letters/discard", {"all": True})["discarded"] == 1


@pytest.mark.parametrize("what", ["replay", "discard"])
def test_without_a_filter_all_must_be_said(world: World, what: str) -> None:
    refused = world.call("POST", f"/api/v1/dead-letters/{what}", {})
    assert (refused.status, refused["field"]) == (422, "all")


@pytest.mark.parametrize(("priority", "alerts"), [("critical", 1), ("high", 1), ("normal", 0), ("low", 0)])
def test_an_urgent_dead_letter_raises_an_alert(world: World, priority: str, alerts: int) -> None:  # N6.3
    kill(world, HANAKO, channel="in_app", priority=priority)
    assert world.metric("notification_alerts_total", kind="dead_letter_urgent", severity="warning") == alerts


def test_an_urgent_letter_without_a_template_raises_an_alert_too(world: World) -> None:  # N2.5, N6.3
    world.tell(HANAKO, channels=["voice"], priority="critical")
    assert len(world.letters("code=template_missing")) == 1
    assert world.metric("notification_alerts_total", kind="dead_letter_urgent", severity="warning") == 1
    assert world.metric("notification_dead_lettered_total", channel="voice", error_code="template_missing") == 1


def test_ten_of_one_channel_and_code_in_five_minutes_raise_one_alert(world: World) -> None:  # N6.3
    def alerts() -> float:
        return world.metric("notification_alerts_total", kind="dead_letter_recurring", severity="warning")

    for number, guest in enumerate(GUESTS[:9]):
        kill(world, guest, channel="in_app", data={"n": number})
        world.advance(timedelta(seconds=20))
    assert alerts() == 0
    kill(world, GUESTS[9], channel="in_app")
    assert alerts() == 1
    kill(world, GUESTS[10], GUESTS[11], channel="in_app")
    assert alerts() == 1


def test_ten_spread_over_more_than_five_minutes_raise_none(world: World) -> None:  # N6.3
    for number in range(10):
        kill(world, GUESTS[number], channel="in_app")
        world.advance(MINUTE)
    assert world.metric("notification_alerts_total", kind="dead_letter_recurring") == 0


def test_dead_letters_are_counted_by_channel_and_code(world: World) -> None:  # N16.1
    kill(world, HANAKO, TARO, channel="in_app")
    assert world.metric("notification_dead_lettered_total", channel="in_app", error_code="UNREGISTERED") == 2


def test_what_has_lost_its_address_meanwhile_is_dead_lettered_and_not_sent(world: World) -> None:  # N1.9, N17.3
    pause = world.post("/api/v1/pauses", {"kind": "channel", "name": "email"})
    removed, erased = world.tell(HANAKO, channels=["email"]), world.tell(TARO, channels=["email"])
    world.put("/api/v1/users/hanako", {"name": "Hanako"})
    world.delete("/api/v1/users/taro")
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.until_idle()
    assert world.caught() == []
    for batch_id in (removed, erased):
        notification = world.notification(batch_id)
        assert (notification["status"], notification["reason"]) == ("DEAD_LETTERED", "NO_EMAIL")
