"""Accepting: what a caller may ask, what comes back, and what the sums say afterwards (N4)."""

from datetime import timedelta

import pytest

from tests.cast import HANAKO, JIRO, SAKURA, STRANGER, TARO, crowd
from tests.stories.client import Json
from tests.stories.world import World


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO, JIRO, SAKURA)
    world.write("welcome", "email", "push", "in_app")


def sums(world: World, batch_id: str) -> Json:
    """The status of a batch, whose five figures must add up whenever it is asked for."""
    body = world.get(f"/api/v1/notifications/{batch_id}/status").body
    parts = [body[name] for name in ("delivered", "failed", "pending", "suppressed", "cancelled")]
    assert sum(parts) == body["total"]
    assert sum(body["statuses"].values()) + body["undecided"] == body["total"]
    assert body["delivery_rate"] == body["delivered"] / max(body["total"], 1)
    return body


def test_the_answer_tells_what_was_decided_of_each(world: World) -> None:  # N4.1
    answer = world.ask(HANAKO, SAKURA, STRANGER, TARO, "hanako", channels=["email"])
    assert answer.status == 202
    assert (answer["status"], answer["total_recipients"]) == ("queued", 5)
    assert (answer["accepted"], answer["rejected"], answer["undecided"]) == (2, 3, 0)
    assert answer["reasons"] == {"no_email": 1, "unknown_user": 1, "repeated": 1}
    assert {(r["user_id"], r["code"]) for r in answer["rejections"]} == {
        ("sakura", "no_email"),
        (STRANGER, "unknown_user"),
        ("hanako", "repeated"),
    }
    assert answer["rejections_url"] is None


def test_accepted_means_at_least_one_channel(world: World) -> None:  # N4.1
    answer = world.ask(SAKURA, channels=["email", "in_app"])
    assert (answer["accepted"], answer["rejected"], answer["reasons"]) == (1, 0, {})


def test_more_than_a_hundred_rejections_are_shown_in_part_and_linked(world: World) -> None:  # N4.1
    strangers = [f"stranger-{n}" for n in range(130)]
    answer = world.ask(*strangers)
    assert (answer["rejected"], len(answer["rejections"])) == (130, 100)
    listed = world.listed(answer["rejections_url"], limit=50)
    assert [item["user_id"] for item in listed] == strangers


def test_ten_thousand_recipients_are_accepted_in_one_request(world: World) -> None:  # N4.1
    world.meet(*crowd(3))
    answer = world.ask(*(f"guest-{n:04}" for n in range(10_000)), channels=["email"])
    assert answer.status == 202
    assert answer["accepted"] + answer["rejected"] + answer["undecided"] == answer["total_recipients"] == 10_000
    world.until_idle()
    assert len(world.caught()) == 3


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"user_ids": []}, "bad_field", "user_ids"),
        ({"user_ids": ["x"] * 10_001}, "bad_field", "user_ids"),
        ({"user_ids": [""]}, "bad_field", "user_ids[0]"),
        ({"template_id": "no-such"}, "unknown_template", "template_id"),
        ({"channels": ["pigeon"]}, "bad_field", "channels[0]"),
        ({"priority": "urgent"}, "bad_field", "priority"),
        ({"scheduled_at": "2026-03-02T09:00:00"}, "bad_field", "scheduled_at"),
        ({"scheduled_at": "tomorrow"}, "bad_field", "scheduled_at"),
        (
            {"scheduled_at": "2027-03-02T08:00:00+00:00", "expires_at": "2027-03-02T07:00:00+00:00"},
            "bad_field",
            "expires_at",
        ),
        ({"strategy": "best_one"}, "strategy_not_supported", "strategy"),
        ({"to": "x@example.com"}, "unknown_field", "to"),
        ({"data": {"a": "\u0000"}}, "bad_field", "data.a"),
        ({"category": "a\u0007b"}, "bad_field", "category"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_stored(
    world: World, fields: Json, code: str, field: str
) -> None:  # N4.4
    refused = world.call("POST", "/api/v1/notifications", world.request(HANAKO, **fields))
    assert (refused.status, refused["code"], refused["field"]) == (422, code, field)
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused["todo"]
    assert world.listed("/api/v1/users/hanako/notifications") == []
    assert world.metric("notification_batches_created_total") == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"user_ids": ["hanako"', b"\xff\xfe", b'{"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}"],
)
def test_what_cannot_be_read_is_a_4xx(world: World, body: bytes) -> None:  # N4.4
    refused = world.call("POST", "/api/v1/notifications", body)
    assert refused.status in (400, 422)
    assert refused["code"] in ("bad_json", "bad_field")


def test_a_body_over_what_its_route_takes_is_413(world: World) -> None:
    for method, path, body in (
        ("POST", "/api/v1/notifications", world.request(HANAKO, data={"x": "y" * 12_100_000})),
        ("PUT", "/api/v1/users/hanako", {"attributes": {"x": "y" * 5_100_000}}),
    ):
        refused = world.call(method, path, body)
        assert (refused.status, refused["code"]) == (413, "too_large"), path


def test_data_over_five_megabytes_is_422(world: World) -> None:
    """The route takes more than that for the sake of attachments alone."""
    refused = world.ask(HANAKO, data={"x": "y" * 5_100_000})
    assert (refused.status, refused["code"], refused["field"]) == (422, "bad_field", "data")


def test_the_sums_of_a_batch_add_up_at_every_step(world: World) -> None:  # N4.3
    world.wish(TARO, channels={"email": False})
    world.misbehave("error", channel="email", count=1)
    world.misbehave("gone", channel="push", count=4)
    answer = world.ask(HANAKO, TARO, JIRO, SAKURA, STRANGER, "hanako", channels=["email", "push", "in_app"])
    batch_id = answer["batch_id"]
    assert sums(world, batch_id)["total"] == 4 * 3
    world.until_idle()
    middle = sums(world, batch_id)
    assert middle["statuses"] == {"RETRYING": 1, "SUPPRESSED": 5, "SENT": 4, "DEAD_LETTERED": 2}
    assert (middle["pending"], middle["delivered"], middle["failed"], middle["suppressed"]) == (1, 4, 2, 5)
    world.advance(timedelta(minutes=1))
    end = sums(world, batch_id)
    assert (end["pending"], end["delivered"], end["delivery_rate"]) == (0, 5, 5 / 12)


def test_the_sums_of_an_unknown_batch_are_404(world: World) -> None:  # N4.3
    for batch_id in ("00000000-0000-7000-8000-000000000000", "not-an-id"):
        for tail in ("", "/status", "/rejections"):
            assert world.call("GET", f"/api/v1/notifications/{batch_id}{tail}").status == 404


def test_the_same_content_within_five_minutes_comes_once(world: World) -> None:  # N9.1
    first = world.tell(HANAKO, channels=["email"], data={"order": 1})
    world.advance(timedelta(minutes=4, seconds=59))
    again = world.tell(HANAKO, TARO, channels=["email"], data={"order": 1})
    other = world.tell(HANAKO, channels=["email"], data={"order": 2})
    assert world.status(first) == world.status(other) == "SENT"
    assert world.reasons(again) == {("hanako", "email"): "duplicate", ("taro", "email"): None}
    world.advance(timedelta(seconds=1))
    assert world.status(world.tell(HANAKO, channels=["email"], data={"order": 1})) == "SENT"


def test_the_order_of_keys_in_the_data_makes_no_other_content(world: World) -> None:  # N9.1
    world.tell(HANAKO, channels=["email"], data={"a": 1, "b": {"x": 1, "y": 2}})
    again = world.tell(HANAKO, channels=["email"], data={"b": {"y": 2, "x": 1}, "a": 1})
    assert world.reasons(again) == {("hanako", "email"): "duplicate"}


def test_what_was_cancelled_is_no_duplicate_of_what_comes_after(world: World) -> None:  # N9.1, W13
    pause = world.post("/api/v1/pauses", {"kind": "everything"})
    first = world.tell(HANAKO, channels=["email"])
    world.post(f"/api/v1/notifications/{first}/cancel")
    second = world.tell(HANAKO, channels=["email"])
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.until_idle()
    assert (world.status(first), world.status(second)) == ("CANCELLED", "SENT")


def test_a_batch_shows_what_was_asked(world: World) -> None:
    answer = world.ask(HANAKO, channels=["email"], category="social", priority="high", digest_key="k")
    batch = world.get(f"/api/v1/notifications/{answer['batch_id']}")
    assert (batch["template_id"], batch["channels"], batch["category"]) == ("welcome", ["email"], "social")
    assert (batch["priority"], batch["digest_key"], batch["status"]) == ("high", "k", "queued")
    assert (batch["accepted"], batch["total_recipients"], batch["scheduled_at"]) == (1, 1, None)


def test_a_persons_history_is_newest_first_and_paged(world: World) -> None:  # N11.1
    batches = []
    for number in range(7):
        batches.append(world.tell(HANAKO, channels=["in_app"], data={"n": number}))
        world.advance(timedelta(seconds=1))
    history = world.listed("/api/v1/users/hanako/notifications", limit=3)
    assert [item["batch_id"] for item in history] == batches[::-1]
    assert world.call("GET", f"/api/v1/users/{STRANGER}/notifications").status == 404


def test_history_is_kept_ninety_days_and_then_removed(world: World) -> None:  # N11.1
    old = world.tell(HANAKO, channels=["in_app"])
    world.advance(timedelta(days=89, hours=12))
    assert len(world.listed("/api/v1/users/hanako/notifications")) == 1
    young = world.tell(HANAKO, channels=["in_app"])
    world.advance(timedelta(days=2))
    assert [n["batch_id"] for n in world.listed("/api/v1/users/hanako/notifications")] == [young]
    assert world.call("GET", f"/api/v1/notifications/{old}").status == 404
