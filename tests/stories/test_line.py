"""A message on LINE the whole way: asked for over the API, pushed, recorded; and what LINE says later."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import open_noroshi
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.settings import read_settings
from tests.stand_ins.line import conduct as like
from tests.stand_ins.line.conduct import Asked, Conduct, Pushed
from tests.stand_ins.line.process import LineStandIn, user_id
from tests.stand_ins.line.webhooks import following, signature, unfollowing
from tests.stories.client import Answer, Client
from tests.stories.conftest import OpenStore

TEMPLATE = {
    "channel": "line",
    "locale": "ja",
    "title": "{{ user.name }}様",
    "body": "ご予約 {{ order }} を承りました。",
}
PATIENCE = 20


class Shop:
    """A product on LINE, and its callers."""

    def __init__(self, noroshi: Noroshi, line: LineStandIn, key: str) -> None:
        self.noroshi = noroshi
        self.line = line
        self.app = build_app(noroshi)
        self.client = Client(self.app, key)
        line.behave(like.GOOD)
        self._pushed, self._asked = len(line.pushed()), len(line.asked())

    def pushed(self) -> list[Pushed]:
        """What LINE took in this story."""
        return self.line.pushed()[self._pushed :]

    def asked(self) -> list[Asked]:
        return self.line.asked()[self._asked :]

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        return await self.client.call(method, path, body)

    async def befriend(self, *numbers: int) -> list[str]:
        ids = [f"friend-{number}" for number in numbers]
        for number, one in zip(numbers, ids, strict=True):
            body = {"name": f"花子{number}", "line_user_id": user_id(number)}
            assert (await self.call("PUT", f"/api/v1/users/{one}", body)).status == 200
        return ids

    async def ask(self, *user_ids: str, **more: Any) -> Answer:
        body = {"user_ids": user_ids, "template_id": "booked", "channels": ["line"], "data": {"order": "A-1"}, **more}
        return await self.call("POST", "/api/v1/notifications", body)

    async def sums(self, asked: Answer, pending: int = 0) -> Any:
        path = f"/api/v1/notifications/{asked['batch_id']}/status"
        async with asyncio.timeout(PATIENCE):
            while (sums := (await self.call("GET", path)).body)["pending"] > pending:
                await asyncio.sleep(0.01)
        return sums["statuses"]

    async def tell(self, webhook: dict[str, Any] | bytes, signed: str | None = None, account: str = "line") -> Answer:
        """A webhook; whoever calls has no key."""
        raw = webhook if isinstance(webhook, bytes) else msgspec.json.encode(webhook)
        headers = {"X-Line-Signature": signature(raw) if signed is None else signed}
        return await Client(self.app, None).call("POST", f"/webhooks/{account}", raw, headers)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineStandIn]:
    with LineStandIn(tmp_path_factory.mktemp("line") / "ledger") as started:
        yield started


@pytest.fixture
async def shop(tmp_path: Path, line: LineStandIn, store: OpenStore) -> AsyncIterator[Shop]:
    environment = line.environment | {"NOROSHI_LINE_TIMEOUT": "2"}
    settings = read_settings(environment, {"data": str(tmp_path / "data"), **store()})
    noroshi = open_noroshi(settings, is_dev=False, on_broken=lambda: None)
    await noroshi.start()
    opened = Shop(noroshi, line, await noroshi.mint_key("operator", list(KeyScope)))
    assert (await opened.call("POST", "/api/v1/templates/booked", TEMPLATE)).status == 201
    yield opened
    await noroshi.stop()


async def test_everybody_gets_their_message_and_who_is_unknown_to_line_is_given_up(shop: Shop) -> None:  # N1.8
    friends = await shop.befriend(*range(60))
    shop.line.behave(replace(like.UNKNOWN_USER, users=frozenset({user_id(7)})))
    assert await shop.sums(await shop.ask(*friends)) == {"SENT": 59, "DEAD_LETTERED": 1}
    pushed = shop.pushed()
    assert sorted(one.to for one in pushed) == sorted(user_id(number) for number in range(60) if number != 7)
    assert {one.texts for one in pushed if one.to == user_id(3)} == {("花子3様\n\nご予約 A-1 を承りました。",)}
    again = await shop.ask("friend-7", data={"order": "A-2"})
    assert (again["rejected"], again["reasons"]) == (1, {"no_device": 1})


async def test_a_code_whose_answer_was_lost_is_sent_again_and_arrives_once(shop: Shop) -> None:  # W11, N3.6
    shop.line.behave(replace(like.DROPPING, requests=1))
    asked = await shop.ask(*await shop.befriend(1), category="one_time_code", priority="critical")
    assert await shop.sums(asked) == {"SENT": 1}
    assert len(shop.pushed()) == 1
    assert [asked.status for asked in shop.asked()] == [None, 409]


async def test_when_the_months_messages_are_used_up_everything_waits_and_somebody_is_told(shop: Shop) -> None:
    friends = await shop.befriend(*range(30))
    shop.line.behave(Conduct(monthly=len(shop.line.pushed()) + 10))
    asked = await shop.ask(*friends)
    statuses = await shop.sums(asked, pending=20)
    async with asyncio.timeout(PATIENCE):
        while b'kind="account_misconfigured"' not in (await shop.call("GET", "/metrics")).text:
            await asyncio.sleep(0.01)
    assert statuses["SENT"] == len(shop.pushed()) == 10
    assert "DEAD_LETTERED" not in statuses
    calls = len(shop.asked())
    await shop.ask(*friends, data={"order": "A-2"})
    assert len(shop.asked()) == calls


async def test_who_leaves_is_written_to_no_longer_until_they_come_back(shop: Shop) -> None:  # N12.3
    (friend,) = await shop.befriend(1)
    assert (await shop.tell(unfollowing(user_id(1), 1_000))).status == 200
    refused = await shop.ask(friend)
    assert (refused["rejected"], refused["reasons"]) == (1, {"suppressed": 1})
    assert (await shop.tell(following(user_id(1), 2_000))).status == 200
    assert (await shop.tell(unfollowing(user_id(1), 1_000))).status == 200  # delivered again, late
    assert await shop.sums(await shop.ask(friend)) == {"SENT": 1}


async def test_nobody_but_line_can_say_that_somebody_left(shop: Shop) -> None:  # F20
    (friend,) = await shop.befriend(1)
    webhook = unfollowing(user_id(1), 1_000)
    raw = msgspec.json.encode(webhook)
    for signed in ("", "x", signature(raw, "another secret"), signature(raw + b" ")):
        forged = await shop.tell(webhook, signed)
        assert (forged.status, forged["code"]) == (401, "bad_signature")
    assert (await shop.tell(raw + b" ", signature(raw))).status == 401
    assert await shop.sums(await shop.ask(friend)) == {"SENT": 1}


async def test_a_webhook_may_say_nothing_and_may_not_be_nonsense(shop: Shop) -> None:
    assert (await shop.tell({"destination": "U", "events": []})).status == 200
    assert (await shop.tell({"destination": "U", "events": [{"type": "message", "timestamp": 1}]})).status == 200
    assert (await shop.tell(b"nonsense")).status == 400
    assert (await shop.tell({"events": []}, account="smtp")).status == 404
