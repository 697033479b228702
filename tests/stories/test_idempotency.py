"""Idempotency: a request made twice is one batch, whoever races and whatever restarts (N4.2)."""

from collections import Counter
from datetime import timedelta

import pytest

from tests.cast import HANAKO, STRANGER, TARO, crowd
from tests.stories.client import Json
from tests.stories.world import World

KEYED = {"Idempotency-Key": "order-17"}


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO)
    world.write("welcome", "email", "in_app")


def test_the_same_request_again_is_told_of_the_first(world: World) -> None:  # N4.2
    first = world.ask(HANAKO, STRANGER, idempotency_key="order-17", channels=["email"])
    world.until_idle()
    again = world.ask(HANAKO, STRANGER, idempotency_key="order-17", channels=["email"])
    assert (again.status, again["code"]) == (409, "idempotency_replay")
    assert again["batch_id"] == first["batch_id"]
    assert again["first"] == first.body
    world.until_idle()
    assert len(world.caught()) == 1


def test_the_first_answer_is_told_to_the_letter(world: World) -> None:  # N4.2
    people = ["hanako", STRANGER, *(f"stranger-{n}" for n in range(60)), *["hanako"] * 55, "taro"]
    first = world.ask(*people, idempotency_key="order-17", channels=["email"])
    assert (first["accepted"], first["rejected"], len(first["rejections"])) == (2, 116, 100)
    assert world.ask(*people, idempotency_key="order-17", channels=["email"])["first"] == first.body


def test_another_request_with_the_same_key_is_refused(world: World) -> None:  # N4.2
    world.tell(HANAKO, idempotency_key="order-17")
    for other in ({"data": {"n": 1}}, {"priority": "high"}, {"user_ids": ["taro"]}, {"category": "social"}):
        refused = world.ask(HANAKO, **{"idempotency_key": "order-17", **other})
        assert (refused.status, refused["code"]) == (422, "idempotency_key_reused")


def test_another_attachment_is_another_request(world: World) -> None:  # N1.4, N4.2
    files = [{"filename": "a.txt", "content": "aGVsbG8="}, {"filename": "a.txt", "content": "aGVsbG9v"}]
    asked = [{"idempotency_key": "order-17", "attachments": [file]} for file in files]
    assert world.ask(HANAKO, **asked[0]).status == 202
    assert world.ask(HANAKO, **asked[0])["code"] == "idempotency_replay"
    assert world.ask(HANAKO, **asked[1])["code"] == "idempotency_key_reused"


def test_the_order_of_fields_makes_no_other_request(world: World) -> None:  # N4.2
    world.tell(HANAKO, idempotency_key="order-17", data={"a": 1, "b": 2})
    again = world.call(
        "POST",
        "/api/v1/notifications",
        b'{"data":{"b":2,"a":1},"template_id":"welcome","idempotency_key":"order-17","user_ids":["hanako"]}',
    )
    assert again.status == 409


def test_header_and_field_are_the_same_key(world: World) -> None:  # N4.2
    request = world.request(HANAKO)
    first = world.call("POST", "/api/v1/notifications", request, KEYED)
    again = world.call("POST", "/api/v1/notifications", {**request, "idempotency_key": "order-17"})
    both = world.call("POST", "/api/v1/notifications", {**request, "idempotency_key": "order-17"}, KEYED)
    assert (first.status, again.status, both.status) == (202, 409, 409)
    assert again["batch_id"] == both["batch_id"] == first["batch_id"]


def test_a_header_that_differs_from_the_field_is_refused(world: World) -> None:  # N4.2
    refused = world.call("POST", "/api/v1/notifications", world.request(HANAKO, idempotency_key="other"), KEYED)
    assert (refused.status, refused["field"]) == (422, "idempotency_key")


def test_of_fifty_racing_calls_exactly_one_is_accepted(world: World) -> None:  # N4.2, I5
    request = world.request(HANAKO, TARO, idempotency_key="order-17", channels=["email"])
    answers = world.together([("POST", "/api/v1/notifications", request)] * 50)
    assert Counter(answer.status for answer in answers) == {202: 1, 409: 49}
    (winner,) = [answer for answer in answers if answer.status == 202]
    assert {answer["batch_id"] for answer in answers} == {winner["batch_id"]}
    assert {str(answer["first"]) for answer in answers if answer.status == 409} == {str(winner.body)}
    world.until_idle()
    assert len(world.caught()) == 2


def test_of_racing_calls_that_differ_one_wins_and_the_others_are_refused(world: World) -> None:  # N4.2
    calls = [world.request(HANAKO, idempotency_key="order-17", data={"n": n}) for n in range(10)]
    answers = world.together([("POST", "/api/v1/notifications", call) for call in calls])
    assert Counter(answer.status for answer in answers) == {202: 1, 422: 9}


def test_racing_calls_of_a_large_request_wait_for_the_winner(world: World) -> None:  # N4.2
    people = crowd(1200)
    request = world.request(*(p.user_id for p in people), idempotency_key="order-17", channels=["email"])
    answers = world.together([("POST", "/api/v1/notifications", request)] * 5)
    assert Counter(answer.status for answer in answers) == {202: 1, 409: 4}
    (winner,) = [answer for answer in answers if answer.status == 202]
    assert winner["status"] == "queued"
    assert {str(answer["first"]) for answer in answers if answer.status == 409} == {str(winner.body)}


def test_a_key_holds_over_a_restart(world: World) -> None:  # N4.2, W2
    first = world.ask(HANAKO, idempotency_key="order-17")
    world.restart()
    again = world.ask(HANAKO, idempotency_key="order-17")
    assert (again.status, again["batch_id"], again["first"]) == (409, first["batch_id"], first.body)


def test_a_refused_call_leaves_the_key_free(world: World) -> None:  # N4.2
    mistakes: list[Json] = [{"template_id": "no-such"}, {"channels": ["pigeon"]}, {"user_ids": []}]
    for wrong in mistakes:
        assert world.ask(HANAKO, **{"idempotency_key": "order-17", **wrong}).status == 422
    assert world.ask(HANAKO, idempotency_key="order-17").status == 202


def test_a_key_is_kept_for_a_day(world: World) -> None:  # N4.2
    world.tell(HANAKO, idempotency_key="order-17")
    world.advance(timedelta(hours=23, minutes=59))
    assert world.ask(HANAKO, idempotency_key="order-17").status == 409
    world.advance(timedelta(minutes=1))
    assert world.ask(HANAKO, idempotency_key="order-17").status == 202


def test_the_first_answer_of_a_scheduled_request_stays_what_it_was(world: World) -> None:  # N4.2
    fields: Json = {"idempotency_key": "order-17", "scheduled_at": world.after(timedelta(hours=1))}
    first = world.ask(STRANGER, HANAKO, "hanako", channels=["email"], **fields)
    assert (first["status"], first["rejected"], first["undecided"]) == ("scheduled", 1, 2)
    world.advance(timedelta(hours=2))
    again = world.ask(STRANGER, HANAKO, "hanako", channels=["email"], **fields)
    assert (again.status, again["first"]) == (409, first.body)


def test_without_a_key_nothing_is_remembered(world: World) -> None:
    assert [world.ask(HANAKO, data={"n": n}).status for n in (1, 1)] == [202, 202]


@pytest.mark.parametrize("key", ["x" * 256, "täg", "a\tb"])
def test_a_key_has_a_shape(world: World, key: str) -> None:
    refused = world.call("POST", "/api/v1/notifications", world.request(HANAKO), {"Idempotency-Key": key})
    assert (refused.status, refused["field"]) == (422, "Idempotency-Key")
