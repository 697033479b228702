"""The fast route: a request that comes whole is answered as it would be over ASGI, word for word (N4.1)."""

import re

import pytest

from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.answers import wire_of
from tests.cast import HANAKO
from tests.stories.client import Client
from tests.stories.world import World

PATH = "/api/v1/notifications"

_ONCE_ONLY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{10,}-[0-9]+\b")
"""Ids of batches and of requests."""

GOOD = b'{"user_ids":["hanako","nobody"],"template_id":"welcome","channels":["email"],"data":{"n":%d}}'
KEY = {"Idempotency-Key": "order-17"}


def over_asgi(world: World, key: str | None, body: bytes, headers: dict[str, str]) -> str:
    answer = world.run(Client(world.app, key).call("POST", PATH, body, headers))
    lines = "".join(f"{name}: {value}\n" for name, value in sorted(answer.headers.items()))
    return f"{answer.status}\n{lines}\n{answer.text.decode()}"


def whole(world: World, key: str | None, body: bytes, headers: dict[str, str]) -> str:
    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    if key is not None:
        sent.append((b"authorization", f"Bearer {key}".encode()))
    answer, request_id = world.run(world.app.whole[PATH.encode()](sent, body))
    wire = wire_of(answer, request_id, (), stays_open=True).decode()
    head, _, text = wire.partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    return "\n".join([status.split()[1], *sorted(lines), "", text])


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (GOOD, {}),
        (GOOD, KEY),
        (GOOD, {"Idempotency-Key": "\x7f"}),
        (b"", {}),
        (b"{", {}),
        (b'{"user_ids":[]}', {}),
        (GOOD.replace(b"welcome", b"farewell"), {}),
        (GOOD.replace(b"email", b"sms"), {}),
        (GOOD[:-1] + b',"idempotency_key":"other"}', KEY),
        (GOOD[:-1] + b',"stranger":1}', {}),
        (GOOD[:-1] + b',"data":{}}', {}),
    ],
)
def test_the_answer_is_the_same_word_for_word(world: World, body: bytes, headers: dict[str, str]) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    body = body.replace(b"%d", b"%d" % 1)
    told = []
    for number, way in enumerate((over_asgi, whole)):
        asked = body.replace(b'"n":1', b'"n":%d' % number)  # else the second would be a duplicate
        own = {name: f"{value}-{number}" if value == "order-17" else value for name, value in headers.items()}
        told.append(_ONCE_ONLY.sub("an id", way(world, world.mint(KeyScope.SEND), asked, own)))
    assert told[0] == told[1]


@pytest.mark.parametrize("key", [None, "nrs_nonsense", KeyScope.READ, "paced"])
def test_who_may_not_is_refused_the_same(world: World, key: str | None) -> None:
    if key == "paced":
        key = world.mint(KeyScope.SEND, per_minute=1)
        assert over_asgi(world, key, b"{}", {}).startswith("4")
    elif key == KeyScope.READ:
        key = world.mint(KeyScope.READ)
    told = [_ONCE_ONLY.sub("an id", way(world, key, GOOD % 1, {})) for way in (over_asgi, whole)]
    assert told[0] == told[1]


def test_a_key_is_held_by_whoever_came_first_on_either_way(world: World) -> None:  # N4.2
    world.meet(HANAKO)
    world.write("welcome", "email")
    key = world.mint(KeyScope.SEND)
    first = whole(world, key, GOOD % 1, KEY)
    assert first.startswith("202")
    for way in (whole, over_asgi):
        again = way(world, key, GOOD % 1, KEY)
        assert again.startswith("409") and "idempotency_replay" in again
    world.until_idle()
    assert len(world.caught()) == 1
