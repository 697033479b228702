"""A business change and its notification in one transaction: told if and only if it happened (DESIGN 7.1)."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import open_noroshi
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.settings import read_settings
from tests.cast import HANAKO, TARO
from tests.stories.client import Answer, Client, Json
from tests.stories.conftest import Build, with_rounds
from tests.stories.world import World

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 30

# through the whole product, in virtual time


@pytest.fixture
def shop(world: World) -> World:
    world.meet(HANAKO, TARO)
    world.write("welcome", "email")
    return world


def test_an_enqueued_request_is_sent_once(shop: World) -> None:
    request_id = shop.enqueue(HANAKO, created_by="shop")
    request = shop.get(f"/api/v1/requests/{request_id}")
    assert (request["state"], request["code"]) == ("taken", None)
    batch = shop.get(f"/api/v1/notifications/{request['batch_id']}")
    assert (batch["created_by"], batch["accepted"]) == ("shop", 1)
    assert [message["body"] for message in shop.caught()] == ["Hello Hanako"]
    assert shop.metric("notification_requests_taken_total") == 1
    assert shop.metric("notification_batches_created_total") == 1


def test_what_is_enqueued_brings_its_attachments(shop: World) -> None:  # N1.4
    shop.enqueue(HANAKO, attachments=[{"filename": "請求書.pdf", "content": b"%PDF-\xff"}])
    [message] = shop.caught()
    assert message["attachments"] == [
        {"filename": "請求書.pdf", "content_type": "application/pdf", "size": 6, "content_id": None}
    ]
    attached = shop.get(f"/api/v1/caught/{message['caught_id']}/attachments/0")
    assert (attached.status, attached.text) == (200, b"%PDF-\xff")


def test_after_a_rollback_nothing_is_sent(shop: World) -> None:
    shop.enqueue(HANAKO, is_committed=False)
    assert shop.caught() == []
    assert shop.get("/api/v1/requests")["items"] == []


@with_rounds
def test_nobody_has_to_announce_it(shop: World) -> None:  # W6
    shop.enqueue(HANAKO, is_announced=False)
    assert shop.caught() == []
    shop.advance_seconds(0.3)
    assert len(shop.caught()) == 1


def test_what_was_enqueued_while_nobody_served_is_taken_at_the_start(shop: World) -> None:  # W4
    shop.enqueue(HANAKO, is_announced=False)
    shop.crash()
    shop.until_idle()
    assert len(shop.caught()) == 1
    shop.crash()
    shop.until_idle()
    assert len(shop.caught()) == 1


def test_a_request_that_cannot_be_accepted_is_dead_and_somebody_is_told(shop: World) -> None:
    request_id = shop.enqueue(HANAKO, template_id="no-such")
    request = shop.get(f"/api/v1/requests/{request_id}")
    assert (request["state"], request["code"]) == ("dead", "unknown_template")
    assert "no-such" in request["error"]
    assert [item["request_id"] for item in shop.get("/api/v1/requests?state=dead")["items"]] == [request_id]
    assert shop.metric("notification_requests_dead_total", code="unknown_template") == 1
    assert shop.metric("notification_alerts_total", kind="request_dead") == 1


def test_a_dead_request_is_sent_after_its_cause_was_mended(shop: World) -> None:
    request_id = shop.enqueue(HANAKO, template_id="late")
    shop.write("late", "email")
    shop.post(f"/api/v1/requests/{request_id}/retry")
    shop.until_idle()
    assert shop.get(f"/api/v1/requests/{request_id}")["state"] == "taken"
    assert len(shop.caught()) == 1
    again = shop.call("POST", f"/api/v1/requests/{request_id}/retry")
    assert (again.status, again["code"]) == (409, "conflict")


def test_the_api_and_enqueue_share_their_keys(shop: World) -> None:  # N4.2
    batch_id = shop.tell(HANAKO, idempotency_key="order-17", data={"n": 1})
    same = shop.enqueue(HANAKO, idempotency_key="order-17", data={"n": 1})
    assert shop.get(f"/api/v1/requests/{same}")["batch_id"] == batch_id
    shop.enqueue(TARO, idempotency_key="order-18")
    answer = shop.ask(TARO, idempotency_key="order-18")
    assert (answer.status, answer["code"]) == (409, "idempotency_replay")
    assert len(shop.caught()) == 2


def test_a_key_is_kept_for_a_day_and_a_request_for_ninety(build: Build) -> None:  # N4.2, N11.1
    shop = build(datetime.now(UTC))  # a caller's own clock is the real one
    shop.meet(HANAKO)
    shop.write("welcome", "email")
    first = shop.enqueue(HANAKO, idempotency_key="order-17")
    shop.advance(timedelta(hours=23))
    shop.run(shop.noroshi._way.tidy())
    assert shop.enqueue(HANAKO, idempotency_key="order-17") == first
    shop.advance(timedelta(hours=2))
    shop.run(shop.noroshi._way.tidy())
    assert shop.enqueue(HANAKO, idempotency_key="order-17") != first
    assert shop.get(f"/api/v1/requests/{first}")["state"] == "taken"
    shop.advance(timedelta(days=91))
    assert shop.call("GET", f"/api/v1/requests/{first}").status == 404


@pytest.mark.parametrize("state", ["lost", ""])
def test_a_state_that_there_is_not_is_refused(shop: World, state: str) -> None:
    refused = shop.call("GET", f"/api/v1/requests?state={state}")
    assert (refused.status, refused["field"]) == (422, "state")


# the examples, as they stand, against the product as it is served


class Shop:
    """A running product with one template and two customers."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder = folder
        self.url = url

    async def open(self) -> None:
        chosen = {"data": str(self.folder)} | ({} if self.url is None else {"store": self.url})
        self.noroshi: Noroshi = open_noroshi(read_settings({}, chosen), is_dev=True, on_broken=lambda: None)
        await self.noroshi.start()
        self._client = Client(build_app(self.noroshi), await self.noroshi.mint_key("shop", list(KeyScope)))
        for person in (HANAKO, TARO):
            await self.call("PUT", f"/api/v1/users/{person.user_id}", person.body)
        version = {"channel": "email", "locale": "en", "body": "Thank you, {{ user.name }}: {{ order }}"}
        await self.call("POST", "/api/v1/templates/order-placed", version)

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        answer = await self._client.call(method, path, body)
        assert answer.status < 300, answer.text
        return answer

    async def run(self, example: str, place: str, *words: str) -> tuple[int, str]:
        """The example's exit code and what it complained of."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLES / f"enqueue_{example}.py"), place, *words), stderr=asyncio.subprocess.PIPE
        )
        _, complaint = await process.communicate()
        assert process.returncode is not None
        return process.returncode, complaint.decode()

    async def caught(self, count: int) -> list[Json]:
        """Everything that was caught, once so many messages were."""
        async with asyncio.timeout(PATIENCE):
            while len(items := (await self.call("GET", "/api/v1/caught"))["items"]) < count:
                await asyncio.sleep(0.02)
        return list(items)


KINDS = [
    ("sqlite3", "sqlite"),
    ("sqlalchemy", "sqlite"),
    ("django", "sqlite"),
    ("psycopg", "postgres"),
    ("asyncpg", "postgres"),
    ("sqlalchemy", "postgres"),
    ("django", "postgres"),
]


@pytest.fixture
async def open_shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """On the store that the test names."""
    is_on_postgres = request.node.callspec.params["store"] == "postgres"
    opened = Shop(tmp_path / "data", request.getfixturevalue("postgres_url") if is_on_postgres else None)
    await opened.open()
    yield opened
    await opened.noroshi.stop()


def place_for(example: str, shop: Shop) -> str:
    """What the example takes for the way to the database."""
    file = shop.folder / "noroshi.db"
    if shop.url is None:
        return str(file) if example == "sqlite3" else f"sqlite:///{file}"
    return shop.url.replace("postgresql://", "postgresql+psycopg://") if example == "sqlalchemy" else shop.url


@pytest.mark.parametrize(("example", "store"), KINDS, ids=[f"{store}-{example}" for example, store in KINDS])
async def test_an_example_tells_the_customer_if_and_only_if_the_order_is_placed(
    open_shop: Shop, example: str, store: str
) -> None:
    shop = open_shop
    place = place_for(example, shop)
    code, complaint = await shop.run(example, place, "order-16", "taro", "--refused")
    assert (code, "PaymentRefusedError: order-16" in complaint) == (1, True), complaint
    code, complaint = await shop.run(example, place, "order-17", "hanako")
    assert code == 0, complaint
    (message,) = await shop.caught(1)
    assert (message["user_id"], message["body"]) == ("hanako", "Thank you, Hanako: order-17")
    (request,) = (await shop.call("GET", "/api/v1/requests"))["items"]
    assert (request["state"], request["idempotency_key"]) == ("taken", "order-17")
