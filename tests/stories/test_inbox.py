"""The inbox: people find what they were told, and their pages show it the moment it comes (N1.6, N5.4, N17.1)."""

from datetime import timedelta

import pytest

from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.records import KeyScope
from tests.cast import HANAKO, MALLORY, SAKURA, TARO
from tests.stories.client import Answer, Client, Json
from tests.stories.conftest import Build
from tests.stories.onlooker import Onlooker
from tests.stories.world import World, kinds

INBOX = "/api/v1/users/hanako/inbox"
DAY = timedelta(days=1)


@pytest.fixture
def world(build: Build) -> World:
    world = build(inbox="on")
    world.meet(HANAKO, TARO, SAKURA)
    world.write(
        "welcome", "in_app", title="Hello", body="Hello {{ user.name }}, {{ n }}", metadata={"url": "/orders/{{ n }}"}
    )
    return world


def tell(world: World, *people: object, times: int = 1) -> list[str]:
    numbers = range(world.get(f"{INBOX}/unread-count")["last_entry_id"], 1000)
    return [world.tell(*(people or (HANAKO,)), channels=["in_app"], data={"n": n}) for n in numbers[:times]]


def bearer(world: World, user_id: str = "hanako", **body: int) -> str:
    token: str = world.post(f"/api/v1/users/{user_id}/tokens", body)["token"]
    return token


def as_person(world: World, method: str, path: str, token: str, body: object = None) -> Answer:
    return world.call(method, path, body, client=Client(world.app, token))


def look(world: World, token: str | None = None, query: str = "", user_id: str = "hanako") -> Onlooker:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return Onlooker(world, f"/api/v1/users/{user_id}/inbox/stream{query}", **headers)


# the inbox


def test_what_is_told_in_app_is_delivered_by_being_in_the_inbox(world: World) -> None:  # N5.4
    (batch_id,) = tell(world)
    notification = world.notification(batch_id)
    assert (notification["status"], kinds(notification)) == ("DELIVERED", ["queued", "delivered"])
    assert notification["trail"][-1]["sentence"] == "It is in the person's inbox."
    (entry,) = world.listed(INBOX)
    assert entry["content"] == {"title": "Hello", "body": "Hello Hanako, 0", "url": "/orders/0", "data": {}}
    assert (entry["entry_id"], entry["notification_id"]) == (1, notification["notification_id"])
    assert world.get(f"/api/v1/notifications/{batch_id}/status")["delivered"] == 1
    assert [message["channel"] for message in world.caught()] == ["in_app"]  # in development the catcher has a copy


def test_reading_an_entry_opens_its_notification(world: World) -> None:  # N5.4
    first, second = tell(world, times=2)
    assert world.post(f"{INBOX}/1/read")["unread"] == 1
    assert [world.status(batch_id) for batch_id in (first, second)] == ["OPENED", "DELIVERED"]
    assert world.get(f"/api/v1/notifications/{first}/status")["delivered"] == 1
    assert [entry["entry_id"] for entry in world.listed(f"{INBOX}?unread=true")] == [2]


def test_what_is_put_away_leaves_the_list_and_the_count(world: World) -> None:
    tell(world, times=3)
    assert world.post(f"{INBOX}/2/archive")["unread"] == 2
    assert [entry["entry_id"] for entry in world.listed(INBOX)] == [3, 1]
    assert [entry["entry_id"] for entry in world.listed(f"{INBOX}?archived=true")] == [2]


def test_everything_is_read_at_once_but_for_what_was_not_seen(world: World) -> None:
    tell(world, times=4)
    answer = world.post(f"{INBOX}/read-all?up_to=3")
    assert (answer["read"], answer["unread"]) == (3, 1)
    assert world.post(f"{INBOX}/read-all")["read"] == 1
    assert world.get(f"{INBOX}/unread-count")["unread"] == 0


def test_a_long_inbox_is_read_page_by_page(world: World) -> None:
    world.wish(HANAKO, frequency_limit={"in_app": {"per_hour": 100, "per_day": 100}})
    tell(world, times=12)
    assert [entry["entry_id"] for entry in world.listed(INBOX, limit=5)] == list(range(12, 0, -1))


@pytest.mark.parametrize(
    "path", [f"{INBOX}/9/read", f"{INBOX}/0/read", f"{INBOX}/x/archive", "/api/v1/users/nobody/inbox/1/read"]
)
def test_an_entry_that_is_not_there_is_not_found(world: World, path: str) -> None:
    tell(world)
    assert world.call("POST", path).status == 404


def test_a_template_that_no_inbox_can_show_is_a_dead_letter(world: World) -> None:
    world.write("bad", "in_app", body="x", metadata={"url": "javascript:alert(1)"})
    batch_id = world.tell(HANAKO, template_id="bad", channels=["in_app"])
    (letter,) = world.letters()
    assert (world.status(batch_id), letter["code"]) == ("DEAD_LETTERED", "BAD_URL")
    assert world.listed(INBOX) == []


def test_an_inbox_is_kept_as_long_as_history(world: World) -> None:  # N11.1
    tell(world)
    world.advance(DAY * 95)
    world.run(world.noroshi._way.tidy())
    assert world.listed(INBOX) == []
    assert world.get(f"{INBOX}/unread-count")["unread"] == 0


def test_who_is_erased_leaves_nothing_to_read(world: World) -> None:
    tell(world)
    world.delete("/api/v1/users/hanako")
    assert world.call("GET", INBOX).status == 404
    assert world.rows("SELECT count(*) FROM inbox") == [(0,)]


def test_no_text_of_an_entry_can_be_read_from_the_store(world: World) -> None:  # RELIABILITY 5.6
    tell(world)
    ((sealed,),) = world.rows("SELECT sealed FROM inbox")
    assert b"Hanako" not in bytes(sealed) and b"orders" not in bytes(sealed)


# live


def test_a_page_shows_what_comes_the_moment_it_comes(world: World) -> None:
    onlooker = look(world, bearer(world))
    assert (onlooker.status, onlooker.unread) == (200, 0)
    tell(world, times=2)
    assert (onlooker.numbers, onlooker.unread) == ([1, 2], 2)
    assert onlooker.events[1].data["content"]["body"] == "Hello Hanako, 0"
    onlooker.leave()


def test_what_is_read_on_one_page_no_longer_counts_on_the_other(world: World) -> None:
    tell(world, times=2)
    onlooker = look(world, bearer(world))
    world.post(f"{INBOX}/1/read")
    assert onlooker.unread == 1
    world.post(f"{INBOX}/read-all")
    assert (onlooker.unread, onlooker.numbers) == (0, [])
    onlooker.leave()


def test_a_page_that_comes_again_misses_nothing_and_gets_nothing_twice(world: World) -> None:
    onlooker = look(world, bearer(world), "?after=0")
    for _ in range(3):
        tell(world)
        onlooker.leave()
        tell(world, times=2)
        onlooker.come()
    onlooker.leave()
    assert onlooker.numbers == list(range(1, 10))


def test_a_stream_lives_through_a_restart_by_coming_again(world: World) -> None:
    onlooker = look(world, bearer(world), "?after=0")
    tell(world)
    world.noroshi.end_streams()
    world.until_idle()
    assert onlooker.is_over
    world.restart()
    tell(world)
    onlooker.come()
    assert onlooker.numbers == [1, 2]
    onlooker.leave()


def test_a_stream_ends_with_the_token_that_opened_it(world: World) -> None:
    onlooker = look(world, bearer(world, expires_in=60))
    world.advance_seconds(59)
    assert not onlooker.is_over
    world.advance_seconds(3)
    assert onlooker.is_over
    onlooker.leave()


def test_the_streams_of_a_revoked_key_end_within_seconds(world: World) -> None:  # RELIABILITY 5.2
    key = world.mint(KeyScope.SEND, KeyScope.READ)
    token = as_person(world, "POST", "/api/v1/users/hanako/tokens", key, {})["token"]
    onlooker, other = look(world, token), look(world, bearer(world))
    world.run(world.store.keys.revoke(DEFAULT_TENANT, key[4:12]))
    world.advance_seconds(8)
    assert (onlooker.is_over, other.is_over) == (True, False)
    assert as_person(world, "GET", INBOX, token).status == 401
    onlooker.leave()
    other.leave()


# passes


def test_a_browser_opens_a_stream_with_a_ticket_that_is_good_once(world: World) -> None:
    token = bearer(world)
    ticket = as_person(world, "POST", f"{INBOX}/tickets", token)["ticket"]
    onlooker = look(world, None, f"?ticket={ticket}")
    assert onlooker.status == 200
    onlooker.leave()
    assert look(world, None, f"?ticket={ticket}").status == 401


def test_a_token_works_after_a_restart_too(world: World) -> None:
    token = bearer(world)
    world.restart()
    assert as_person(world, "GET", INBOX, token).status == 200


def test_a_person_sees_and_changes_their_own_things_only(world: World) -> None:  # N17.1
    token = bearer(world)
    tell(world, HANAKO, TARO)
    assert as_person(world, "POST", f"{INBOX}/1/read", token)["unread"] == 0
    wishes: Json = {"channels": {"email": False}}
    assert as_person(world, "PUT", "/api/v1/users/hanako/notification-preferences", token, wishes).status == 200
    for method, path in (
        ("GET", "/api/v1/users/taro/inbox"),
        ("POST", "/api/v1/users/taro/inbox/1/read"),
        ("POST", "/api/v1/users/taro/inbox/tickets"),
        ("GET", "/api/v1/users/taro/notification-preferences"),
    ):
        assert as_person(world, method, path, token).status == 404
    assert look(world, token, user_id="taro").status == 404
    assert as_person(world, "POST", "/api/v1/users/hanako/tokens", token, {}).status == 403


def test_another_tenants_token_finds_nobody_here(world: World) -> None:
    there = TenantId(2)
    key = world.mint(tenant=there)
    as_person(world, "PUT", "/api/v1/users/mallory", key, MALLORY.body)
    tell(world)
    token = as_person(world, "POST", "/api/v1/users/mallory/tokens", key, {})["token"]
    assert as_person(world, "GET", INBOX, token).status == 404
    assert as_person(world, "GET", INBOX, key).status == 404
