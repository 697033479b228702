"""The doors of the API: whose key opens what, whose things are whose, and how much may come in (N4.5, N17.1)."""

from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.calls import Row
from noroshi.entrypoints.api.routes import ROUTES
from noroshi.entrypoints.api.streams import SOCKET
from tests.cast import HANAKO, MALLORY, TARO, crowd
from tests.stories.client import Client, Json
from tests.stories.conftest import Build, with_rounds
from tests.stories.world import World

ELSEWHERE = TenantId(2)
GUARDED = [row for row in ROUTES if row.scope is not None]
OPEN = [row for row in ROUTES if row.scope is None and row.body is None]
"""A webhook is open too, but whoever calls it has to sign: test_line.py."""

BODIES: dict[str, Json] = {
    "accept_notifications": {"user_ids": ["hanako"], "template_id": "welcome"},
    "put_user": {"name": "Somebody else"},
    "register_device": {"platform": "ios", "device_token": "another-token"},
    "put_preferences": {"channels": {"email": False}},
    "add_template": {"channel": "email", "locale": "en", "body": "Mine"},
    "roll_back_template": {"channel": "email", "locale": "en", "version": 1},
    "preview_template": {"channel": "email"},
    "replay_dead_letters": {"all": True},
    "discard_dead_letters": {"all": True},
    "add_pause": {"kind": "category", "name": "nobodys"},
    "put_misbehaviour": {"fault": "slow", "count": 1, "seconds": 0},
    "add_farm": {"name": "Mine"},
    "replace_farm": {"name": "Mine"},
    "put_customer": {"name": "Somebody else"},
    "add_reservation": {
        "farm_id": 1,
        "customer_id": "hanako",
        "pickup_start": "2026-03-05T10:00:00+09:00",
        "pickup_end": "2026-03-05T11:00:00+09:00",
    },
    "add_token": {},
}
"""A body that each route would take; a new route with a body needs a line here."""

QUERIES = {"preview_notifications": "?reservation_id={reservation_id}"}

NAMED_BY_THE_CALLER = {"put_user", "put_customer", "add_template"}
"""These make what they name: with a name that another tenant uses, the caller gets one of their own."""


def name_of(row: Row) -> str:
    return f"{row.method}-{row.name}"


class Here:
    """A world in which the first tenant has one of everything, and the way to each."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.meet(HANAKO, TARO)
        world.write("welcome", "email", "in_app")
        # a file that reads as everything else that is shown
        file = {"filename": "order.json", "content": b64encode(b"{}").decode()}
        batch_id = world.tell(HANAKO, channels=["email"], attachments=[file])
        world.misbehave("gone", count=1)
        world.tell(TARO, channels=["in_app"])
        world.behave()
        pause = world.post("/api/v1/pauses", {"kind": "category", "name": "social"})
        request_id = world.enqueue(HANAKO, template_id="no-such")
        self._ids: dict[str, Any] = {
            "batch_id": batch_id,
            "notification_id": world.get(f"/api/v1/notifications/{batch_id}")["items"][0]["notification_id"],
            "request_id": request_id,
            "user_id": "hanako",
            "template_id": "welcome",
            "token_id": world.listed("/api/v1/users/hanako/devices")[0]["token_id"],
            "dead_letter_id": world.letters()[0]["dead_letter_id"],
            "pause_id": pause["pause_id"],
            "caught_id": world.caught(HANAKO)[0]["caught_id"],
            "farm_id": world.post("/api/v1/farms", {"name": "Farm"})["farm_id"],
            "customer_id": "hanako",
            "entry_id": 1,
            "position": 0,
        }
        world.put("/api/v1/customers/hanako", {"name": "Hanako", "line_user_id": "U" + "0" * 32})
        self._ids["reservation_id"] = world.post("/api/v1/reservations", BODIES["add_reservation"])["reservation_id"]
        world.post(f"/reservations/{self._ids['reservation_id']}/cancel")
        self._ids["job_id"] = 1

    def path(self, row: Row) -> str:
        return (row.path + QUERIES.get(row.name, "")).format(**self._ids)

    def picture(self) -> list[Any]:
        """Everything the first tenant can see."""
        shown = [row for row in GUARDED if row.method == "GET" and row.media != SOCKET]
        return [self.world.get(self.path(row)).body for row in shown]


@pytest.fixture
def here(world: World) -> Here:
    return Here(world)


def send(world: World, here: Here, row: Row, client: Client) -> Any:
    return world.call(row.method, here.path(row), BODIES[row.name] if row.body is not None else None, client=client)


# tenants


def test_another_tenants_id_is_404_on_every_route(world: World, here: Here) -> None:  # DESIGN 5.10
    picture, there = here.picture(), world.client(tenant=ELSEWHERE)
    named = [row for row in GUARDED if "{" in row.path]
    for row in sorted(named, key=lambda row: row.name in NAMED_BY_THE_CALLER):  # what they make is found from then on
        answer = send(world, here, row, there)
        if row.name in NAMED_BY_THE_CALLER:
            assert answer.status in (200, 201), row.name
        else:
            assert (answer.status, answer["code"]) == (404, "not_found"), row.name
        world.until_idle()
        assert here.picture() == picture, row.name


LISTS: dict[str, Callable[[Any], bool]] = {
    "accept_notifications": lambda answer: bool((answer.status, answer["code"]) == (422, "unknown_template")),
    "list_batches": lambda answer: answer["items"] == [],
    "list_users": lambda answer: answer["items"] == [],
    "list_templates": lambda answer: answer["items"] == [],
    "list_alerts": lambda answer: answer["items"] == [],
    "list_dead_letters": lambda answer: answer["items"] == [],
    "list_requests": lambda answer: answer["items"] == [],
    "list_pauses": lambda answer: answer["items"] == [],
    "list_caught": lambda answer: answer["items"] == [],
    "replay_dead_letters": lambda answer: answer.body == {"replayed": 0, "untouched": 0, "is_complete": True},
    "discard_dead_letters": lambda answer: answer.body == {"discarded": 0, "is_complete": True},
    "add_pause": lambda answer: answer.status == 201,
    "put_misbehaviour": lambda answer: answer.status == 200,
    "remove_misbehaviour": lambda answer: answer.status == 204,
    "show_workload": lambda answer: answer.status == 403,
    "add_farm": lambda answer: answer.status == 201,
    "list_farms": lambda answer: answer["items"] == [],
    "add_reservation": lambda answer: bool((answer.status, answer["field"]) == (422, "farm_id")),
    "list_reservations": lambda answer: answer["items"] == [],
    "preview_notifications": lambda answer: answer.status == 404,
    "send_pending": lambda answer: answer["summary"]["total_candidates"] == 0,
}
"""Routes without an id: what another tenant is told. (Misbehaviour is the server's, in development only; the
workload is that of all tenants together.)"""


@pytest.mark.parametrize("row", [row for row in GUARDED if "{" not in row.path], ids=name_of)
def test_another_tenant_finds_nothing_on_the_routes_without_an_id(world: World, here: Here, row: Row) -> None:
    picture = here.picture()
    assert LISTS[row.name](send(world, here, row, world.client(tenant=ELSEWHERE)))
    world.until_idle()
    assert here.picture() == picture


def test_two_tenants_may_use_the_same_names(world: World, here: Here) -> None:  # DESIGN 5.10
    there = world.client(tenant=ELSEWHERE)
    world.call("PUT", "/api/v1/users/hanako", MALLORY.body, client=there)
    world.call("POST", "/api/v1/templates/welcome", BODIES["add_template"], client=there)
    answer = world.call("POST", "/api/v1/notifications", world.request("hanako", idempotency_key="k"), client=there)
    assert (answer.status, answer["accepted"]) == (202, 1)
    assert world.ask("hanako", idempotency_key="k", channels=["in_app"]).status == 202
    world.until_idle()
    (message,) = world.call("GET", "/api/v1/caught", client=there)["items"]
    assert (message["body"], message["address"]) == ("Mine", "m***@example.net")
    assert world.get("/api/v1/users/hanako")["email"] == HANAKO.email


# keys and scopes


@pytest.mark.parametrize("scope", list(KeyScope))
def test_each_scope_opens_its_own_routes_and_no_others(world: World, here: Here, scope: KeyScope) -> None:  # N17.1
    client = world.client(scope)
    for row in GUARDED:
        answer = send(world, here, row, client)
        if scope in (row.scope, KeyScope.ADMIN):
            assert answer.status not in (401, 403), (row.name, answer.text)
        else:
            assert (answer.status, answer["code"]) == (403, "forbidden"), row.name
            assert f"`{row.scope}`" in answer["detail"]


def test_without_a_key_every_route_is_closed(world: World, here: Here) -> None:  # N4.5
    for row in GUARDED:
        answer = send(world, here, row, Client(world.app, None))
        assert (answer.status, answer["code"]) == (401, "unauthorized"), row.name
        assert answer.headers["www-authenticate"] == "Bearer", row.name


@pytest.mark.parametrize("row", OPEN, ids=name_of)
def test_open_routes_need_no_key(world: World, row: Row) -> None:
    assert world.call(row.method, row.path, client=Client(world.app, None)).status == 200


@pytest.mark.parametrize("letter", range(0, 40, 3))
def test_a_key_mistyped_opens_nothing(world: World, letter: int) -> None:  # N4.5
    key = world.mint()
    mistyped = key[:letter] + ("a" if key[letter] != "a" else "b") + key[letter + 1 :]
    assert world.call("GET", "/api/v1/caught", client=Client(world.app, mistyped)).status == 401


def test_a_revoked_key_opens_nothing_after_five_seconds(world: World) -> None:  # N17.1
    clear = world.mint()
    client = Client(world.app, clear)
    assert world.call("GET", "/api/v1/caught", client=client).status == 200
    assert world.run(world.store.keys.revoke(DEFAULT_TENANT, clear[4:12]))
    world.advance(timedelta(seconds=5))
    assert world.call("GET", "/api/v1/caught", client=client).status == 401


def test_a_key_has_its_own_pace(world: World) -> None:  # N4.5
    world.meet(HANAKO)
    hasty, other = world.client(per_minute=6), world.client(per_minute=6)
    statuses = [world.call("GET", "/api/v1/users/hanako", client=hasty).status for _ in range(8)]
    assert statuses == [200] * 6 + [429] * 2
    refused = world.call("GET", "/api/v1/users/hanako", client=hasty)
    assert (refused["code"], refused.headers["retry-after"]) == ("too_many_requests", "10")
    assert (refused.headers["ratelimit-limit"], refused.headers["ratelimit-remaining"]) == ("6", "0")
    assert world.call("GET", "/api/v1/users/hanako", client=other).status == 200
    world.advance(timedelta(seconds=10))
    assert [world.call("GET", "/api/v1/users/hanako", client=hasty).status for _ in range(2)] == [200, 429]


def test_without_a_pace_a_key_is_not_limited(world: World) -> None:
    world.meet(HANAKO)
    assert {world.get("/api/v1/users/hanako").status for _ in range(200)} == {200}


# the safety valves


def test_too_many_waiting_calls_are_503_and_say_when_to_come_back(build: Build) -> None:  # N4.5
    world = build(max_waiting_calls="3")
    world.meet(HANAKO)
    world.write("welcome", "in_app")
    calls = [("POST", "/api/v1/notifications", world.request(HANAKO, data={"n": n})) for n in range(40)]
    answers = world.together(calls)
    refused = [answer for answer in answers if answer.status == 503]
    assert refused
    assert {(answer["code"], answer.headers["retry-after"]) for answer in refused} == {("overloaded", "1")}
    accepted = [answer for answer in answers if answer.status == 202]
    assert len(accepted) == 40 - len(refused)
    assert world.metric("notification_batches_created_total") == len(accepted)


@with_rounds
def test_too_many_unfinished_deliveries_are_503_until_they_are_fewer(build: Build) -> None:  # N4.5
    world = build(max_unfinished="5")
    people = crowd(5)
    world.meet(*people)
    world.write("welcome", "email")
    pause = world.post("/api/v1/pauses", {"kind": "everything"})
    world.tell(*people)
    refused = world.ask(people[0], data={"n": 2})
    assert (refused.status, refused["code"], refused.headers["retry-after"]) == (503, "overloaded", "30")
    world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.advance(timedelta(minutes=1))
    assert world.ask(people[0], data={"n": 3}).status == 202


def test_a_refused_call_leaves_its_idempotency_key_free(build: Build) -> None:  # N4.2
    world = build(max_unfinished="1")
    world.meet(HANAKO, TARO)
    world.write("welcome", "email")
    world.post("/api/v1/pauses", {"kind": "everything"})
    world.tell(HANAKO)
    assert world.ask(TARO, idempotency_key="k").status == 503
    world.restart()
    world.delete(f"/api/v1/pauses/{world.listed('/api/v1/pauses')[0]['pause_id']}")
    world.until_idle()
    world.restart()
    assert world.ask(TARO, idempotency_key="k").status == 202
