"""Attachments the whole way to the catcher: who gets them, who is refused, and that none is lost on the way (N1.4)."""

from base64 import b64encode

import pytest

from noroshi.domain.ids import TenantId
from noroshi.domain.records import KeyScope
from tests.cast import HANAKO, TARO
from tests.stories.client import Json
from tests.stories.world import World

INVOICE = {"filename": "請求書.pdf", "content": b64encode(b"%PDF-\xff").decode()}
TOLD = {"filename": "請求書.pdf", "content_type": "application/pdf", "size": 6, "content_id": None}


@pytest.fixture(autouse=True)
def people_and_a_template(world: World) -> None:
    world.meet(HANAKO, TARO)
    world.write("welcome", "email", "in_app")


def content_of(world: World, message: Json, position: int = 0) -> bytes:
    return world.get(f"/api/v1/caught/{message['caught_id']}/attachments/{position}").text


def test_only_the_mail_carries_them(world: World) -> None:
    batch_id = world.tell(HANAKO, TARO, attachments=[INVOICE])
    assert [message["attachments"] for message in world.caught(channel="email")] == [[TOLD], [TOLD]]
    assert [message["attachments"] for message in world.caught(channel="in_app")] == [[], []]
    assert {content_of(world, message) for message in world.caught(channel="email")} == {b"%PDF-\xff"}
    assert world.get(f"/api/v1/notifications/{batch_id}")["attachments"] == [TOLD]


def test_without_mail_among_the_channels_they_are_refused_and_nothing_is_kept(world: World) -> None:
    refused = world.ask(HANAKO, channels=["in_app"], attachments=[INVOICE])
    assert (refused.status, refused["code"], refused["field"]) == (422, "bad_field", "attachments")
    assert world.get("/api/v1/notifications")["items"] == []


def test_the_same_text_with_another_file_is_no_duplicate(world: World) -> None:
    for content in ("YQ==", "Yg==", "Yg=="):
        world.tell(HANAKO, channels=["email"], attachments=[INVOICE | {"content": content}])
    assert [content_of(world, message) for message in world.caught(HANAKO)] == [b"a", b"b"]


def test_a_dead_letter_that_is_replayed_brings_its_files(world: World) -> None:
    world.misbehave("gone", channel="email", count=1)
    world.tell(HANAKO, channels=["email"], attachments=[INVOICE])
    world.meet(HANAKO)
    [letter] = world.letters()
    world.post(f"/api/v1/dead-letters/{letter['dead_letter_id']}/replay")
    world.until_idle()
    [message] = world.caught(HANAKO)
    assert content_of(world, message) == b"%PDF-\xff"


def test_as_much_as_may_be_attached_arrives_also_after_a_restart(world: World) -> None:
    large = bytes(range(250)) * 20_000
    world.post("/api/v1/pauses", {"kind": "channel", "name": "email"})
    world.tell(HANAKO, channels=["email"], attachments=[INVOICE | {"content": b64encode(large).decode()}])
    world.restart()
    for pause in world.get("/api/v1/pauses")["items"]:
        world.delete(f"/api/v1/pauses/{pause['pause_id']}")
    world.until_idle()
    [message] = world.caught(HANAKO)
    assert content_of(world, message) == large


def test_another_tenant_downloads_nothing(world: World) -> None:
    world.tell(HANAKO, channels=["email"], attachments=[INVOICE])
    [message] = world.caught(HANAKO)
    path = f"/api/v1/caught/{message['caught_id']}/attachments/0"
    stranger = world.client(KeyScope.READ, tenant=TenantId(2))
    assert world.call("GET", path, None, {}, stranger).status == 404
