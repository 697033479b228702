"""Preferences: who wants what, on which channel, and what nobody can turn off (N3)."""

import pytest

from tests.cast import ALICE, HANAKO, SAKURA, STRANGER, TARO
from tests.stories.world import World


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO, SAKURA)
    world.write("welcome", "email", "push", "sms", "in_app")


def test_who_said_nothing_has_the_defaults(world: World) -> None:  # N3.1, N3.2
    found = world.get("/api/v1/users/hanako/notification-preferences")
    assert set(found["channels"].values()) == {True}
    on = {name for name, is_on in found["categories"].items() if is_on}
    assert on == set(found["categories"]) - {"marketing"}
    assert {"general", "transaction", "security", "one_time_code", "social", "like"} <= on
    assert found["quiet_hours"] == {"enabled": False, "start": "23:00", "end": "07:00", "timezone": None}
    assert (found["category_channels"], found["frequency_limit"]) == ({}, {})
    assert (found["locale"], found["timezone"]) == ("ja", "Asia/Tokyo")


def test_a_put_replaces_and_what_is_left_out_takes_its_default(world: World) -> None:  # N3.2
    world.wish(HANAKO, channels={"sms": False}, categories={"marketing": True}, locale="en", timezone="Europe/Paris")
    world.wish(HANAKO, quiet_hours={"enabled": True})
    found = world.get("/api/v1/users/hanako/notification-preferences")
    assert found["channels"]["sms"] is True
    assert found["categories"]["marketing"] is False
    assert found["quiet_hours"] == {"enabled": True, "start": "23:00", "end": "07:00", "timezone": None}
    assert (found["locale"], found["timezone"]) == ("en", "Europe/Paris")


def test_a_stranger_is_404_here_and_rejected_when_told_something(world: World) -> None:  # N3.2
    assert world.call("GET", f"/api/v1/users/{STRANGER}/notification-preferences").status == 404
    assert world.call("PUT", f"/api/v1/users/{STRANGER}/notification-preferences", {}).status == 404
    answer = world.ask(STRANGER)
    assert (answer.status, answer["reasons"]) == (202, {"unknown_user": 1})


def test_a_category_turned_off_is_not_sent(world: World) -> None:  # N3.1
    world.wish(HANAKO, categories={"social": False})
    batch_id = world.tell(HANAKO, TARO, channels=["email"], category="social")
    assert world.reasons(batch_id) == {("hanako", "email"): "category_off", ("taro", "email"): None}
    assert [message["user_id"] for message in world.caught()] == ["taro"]


def test_a_parent_that_is_off_turns_its_children_off(world: World) -> None:  # N3.6
    world.wish(HANAKO, categories={"social": False, "like": True})
    assert world.reasons(world.tell(HANAKO, channels=["email"], category="like")) == {
        ("hanako", "email"): "category_off"
    }
    assert world.get("/api/v1/users/hanako/notification-preferences")["categories"]["like"] is False


def test_a_child_may_be_off_while_its_parent_is_on(world: World) -> None:  # N3.6
    world.wish(HANAKO, categories={"like": False})
    assert world.status(world.tell(HANAKO, channels=["email"], category="follow")) == "SENT"
    assert world.reasons(world.tell(HANAKO, channels=["email"], category="like")) == {
        ("hanako", "email"): "category_off"
    }


def test_marketing_is_off_until_wished_for(world: World) -> None:  # N3.1
    assert world.reasons(world.tell(HANAKO, channels=["email"], category="marketing", data={"n": 1})) == {
        ("hanako", "email"): "category_off"
    }
    world.wish(HANAKO, categories={"marketing": True})
    assert world.status(world.tell(HANAKO, channels=["email"], category="marketing", data={"n": 2})) == "SENT"


def test_an_unregistered_category_is_generals_child(world: World) -> None:  # N3.6
    world.wish(HANAKO, categories={"general": False})
    batch_id = world.tell(HANAKO, TARO, channels=["email"], category="our-newsletter")
    assert world.reasons(batch_id) == {("hanako", "email"): "category_off", ("taro", "email"): None}


@pytest.mark.parametrize("category", ["security", "one_time_code"])
def test_security_cannot_be_turned_off(world: World, category: str) -> None:  # N3.1
    refused = world.call("PUT", "/api/v1/users/hanako/notification-preferences", {"categories": {category: False}})
    assert (refused.status, refused["code"], refused["field"]) == (422, "required_category", f"categories.{category}")
    assert world.status(world.tell(HANAKO, channels=["email"], category=category)) == "SENT"


def test_a_channel_turned_off_gets_nothing_and_the_others_do(world: World) -> None:  # N3.1
    world.wish(HANAKO, channels={"email": False})
    batch_id = world.tell(HANAKO, channels=["email", "in_app"])
    assert world.reasons(batch_id) == {("hanako", "email"): "channel_off", ("hanako", "in_app"): None}
    answer = world.ask(HANAKO, channels=["email"], data={"n": 2})
    assert (answer["accepted"], answer["rejected"], answer["reasons"]) == (0, 1, {"channel_off": 1})


def test_a_category_can_be_off_on_one_channel_only(world: World) -> None:  # N3.2
    world.wish(HANAKO, category_channels={"social": {"email": False}})
    social = world.tell(HANAKO, channels=["email", "in_app"], category="like")
    general = world.tell(HANAKO, channels=["email"], data={"n": 2})
    assert world.reasons(social) == {("hanako", "email"): "channel_off", ("hanako", "in_app"): None}
    assert world.reasons(general) == {("hanako", "email"): None}


def test_a_change_holds_from_the_next_request_on(world: World) -> None:  # N3.3
    for number, is_on in enumerate((True, False, True, False)):
        world.wish(HANAKO, channels={"in_app": is_on})
        batch_id = world.tell(HANAKO, channels=["in_app"], data={"n": number})
        assert world.status(batch_id) == ("SENT" if is_on else "SUPPRESSED")


def test_who_cannot_be_reached_is_told_apart_by_what_is_missing(world: World) -> None:  # N4.1
    batch_id = world.tell(SAKURA, channels=["email", "push", "sms", "in_app"])
    assert world.reasons(batch_id) == {
        ("sakura", "email"): "no_email",
        ("sakura", "push"): "no_device",
        ("sakura", "sms"): "no_phone",
        ("sakura", "in_app"): None,
    }


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ({"channels": {"pigeon": False}}, "channels.pigeon"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"quiet_hours": {"enabled": True, "start": "25:00"}}, "quiet_hours.start"),
        ({"quiet_hours": {"timezone": "Nowhere"}}, "quiet_hours.timezone"),
        ({"frequency_limit": {"email": {"per_hour": 0, "per_day": 1}}}, "frequency_limit.*.per_hour"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused_by_name(world: World, wishes: dict[str, object], field: str) -> None:
    refused = world.call("PUT", "/api/v1/users/hanako/notification-preferences", wishes)
    assert (refused.status, refused["field"]) == (422, field)


def test_the_locale_of_the_wishes_is_that_of_the_person(world: World) -> None:  # N3.1
    world.meet(ALICE)
    world.wish(ALICE, locale="ja", timezone="Asia/Tokyo")
    found = world.get("/api/v1/users/alice")
    assert (found["locale"], found["timezone"]) == ("ja", "Asia/Tokyo")
