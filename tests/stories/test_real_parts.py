"""The product as it is served: a real store, a real child that renders, real time; only the network is left out."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from msgspec import structs
from psycopg import sql

from noroshi.bootstrap.locking import DataLockedError
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import open_noroshi
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.machine.logs import set_up_logs
from noroshi.settings import read_settings
from tests.cast import HANAKO, Person, crowd
from tests.stories.client import Answer, Client, Json
from tests.stories.conftest import OpenStore

CANARY = Person(
    "canary",
    "Canary",
    email="kanaria-7f3a91@example.com",
    phone="+819055512347",
    devices=("device-kanaria-5b1d77",),
)
SECRETS = (b"kanaria-7f3a91", b"819055512347", b"device-kanaria-5b1d77")
"""What must be found nowhere outside of memory and the answers to those who may ask for it."""

PATIENCE = 20


class Served:
    """A running product, as `noroshi serve --dev` runs it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.keys: list[str] = []
        self._settings = read_settings({}, {"data": str(folder), **settings})

    async def start(self) -> None:
        self.noroshi: Noroshi = open_noroshi(self._settings, is_dev=True, on_broken=lambda: None)
        await self.noroshi.start()
        self.keys.append(await self.noroshi.mint_key("operator", list(KeyScope)))
        self._client = Client(build_app(self.noroshi), self.keys[-1])

    async def stop(self) -> None:
        await self.noroshi.stop()

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        return await self._client.call(method, path, body)

    async def ask(self, *people: Person, **fields: Any) -> str:
        user_ids = [person.user_id for person in people]
        answer = await self.call(
            "POST", "/api/v1/notifications", {"user_ids": user_ids, "template_id": "welcome", **fields}
        )
        assert answer.status == 202, answer.text
        return str(answer["batch_id"])

    async def meet(self, *people: Person) -> None:
        for person in people:
            await self.call("PUT", f"/api/v1/users/{person.user_id}", person.body)
            for token in person.devices:
                device = {"platform": "ios", "device_token": token}
                await self.call("POST", f"/api/v1/users/{person.user_id}/devices", device)

    async def write(self, *channels: str) -> None:
        for channel in channels:
            version = {"channel": channel, "locale": "en", "body": "Hello {{ user.name }}"}
            assert (await self.call("POST", "/api/v1/templates/welcome", version)).status == 201

    def kept(self) -> dict[str, bytes]:
        """Whatever is on the disk, by file or by table."""
        kept = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        if self._settings.is_on_postgres:
            with psycopg.connect(self._settings.store) as connection:
                tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'noroshi'").fetchall()
                for (name,) in tables:
                    copying = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT binary)").format(
                        sql.Identifier("noroshi", name)
                    )
                    with connection.cursor().copy(copying) as copy:
                        kept[name] = b"".join(bytes(block) for block in copy)
        return kept

    async def until(self, batch_id: str, is_so: Callable[[Json], bool]) -> Json:
        """The sums of a batch, once they are as awaited."""
        async with asyncio.timeout(PATIENCE):
            while not is_so(sums := (await self.call("GET", f"/api/v1/notifications/{batch_id}/status")).body):
                await asyncio.sleep(0.005)
        return sums


def is_finished(sums: Json) -> bool:
    return bool(sums["pending"] == 0)


@pytest.fixture
async def served(tmp_path: Path, store: OpenStore) -> AsyncIterator[Served]:
    product = Served(tmp_path / "data", **store())
    await product.start()
    yield product
    await product.stop()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, at the most talkative level."""
    written = io.StringIO()
    set_up_logs("debug", "json", written)
    yield written
    structlog.reset_defaults()


async def test_a_message_goes_through_the_real_parts(served: Served) -> None:  # N4.1
    await served.meet(HANAKO)
    await served.write("email", "push", "in_app")
    sums = await served.until(await served.ask(HANAKO), is_finished)
    assert (sums["delivered"], sums["total"]) == (3, 3)
    caught = (await served.call("GET", "/api/v1/caught"))["items"]
    assert {message["body"] for message in caught} == {"Hello Hanako"}


async def test_a_clean_stop_and_a_start_on_the_same_file_go_on_where_it_was(served: Served) -> None:  # N4.6, W26
    guests = crowd(300)
    await served.meet(*guests)
    await served.write("email", "in_app")
    pause = await served.call("POST", "/api/v1/pauses", {"kind": "channel", "name": "email"})
    batch_id = await served.ask(*guests)
    await served.stop()
    await served.start()
    await served.until(batch_id, lambda sums: sums["delivered"] == 300)
    await served.call("DELETE", f"/api/v1/pauses/{pause['pause_id']}")
    sums = await served.until(batch_id, is_finished)
    assert (sums["delivered"], sums["total"]) == (600, 600)
    pages = [await served.call("GET", "/api/v1/caught?limit=100")]
    while pages[-1]["next_cursor"]:
        pages.append(await served.call("GET", f"/api/v1/caught?limit=100&cursor={pages[-1]['next_cursor']}"))
    ids = [message["notification_id"] for page in pages for message in page["items"]]
    assert len(ids) == len(set(ids)) == 600  # the catcher has a copy of what is in inboxes
    inboxes = [await served.call("GET", f"/api/v1/users/{guest.user_id}/inbox/unread-count") for guest in guests]
    assert {inbox["last_entry_id"] for inbox in inboxes} == {1}


async def test_a_bomb_amid_500_recipients_fails_alone_and_no_lease_is_lost(served: Served) -> None:  # N2.6, F21
    widths = [500_000_000 if number == 377 else 0 for number in range(500)]
    guests = [structs.replace(guest, attributes={"width": w}) for guest, w in zip(crowd(500), widths, strict=True)]
    await asyncio.gather(*(served.meet(guest) for guest in guests))
    await served.write("email")
    bomb = "{% if user.attributes.width %}{{ 'a'|indent(user.attributes.width) }}{% endif %}Hello {{ user.name }}"
    version = {"channel": "email", "locale": "en", "body": bomb}
    assert (await served.call("POST", "/api/v1/templates/bomb", version)).status == 201
    batches = [await served.ask(*guests, template_id="bomb"), await served.ask(*guests)]
    bombed, others = [await served.until(batch_id, is_finished) for batch_id in batches]
    assert (bombed["delivered"], bombed["failed"], others["delivered"]) == (499, 1, 500)
    (letter,) = (await served.call("GET", "/api/v1/dead-letters"))["items"]
    assert (letter["user_id"], letter["code"]) == (guests[377].user_id, "render_error")
    metrics = (await served.call("GET", "/metrics")).text.decode().splitlines()
    assert "notification_late_results_total 0.0" in metrics
    assert 'notification_sent_total{channel="email",priority="normal",status="sent"} 999.0' in metrics


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_folder_is_served_by_one_process_only(served: Served) -> None:  # DESIGN 5.2
    with pytest.raises(DataLockedError, match="is served by process"):
        await Served(served.folder).start()


async def test_no_address_token_or_key_is_written_anywhere(log: io.StringIO, served: Served) -> None:  # N17.2, I12
    await served.meet(CANARY)
    await served.write("email", "sms", "push")
    await served.call("PUT", "/api/v1/caught/misbehaviour", {"fault": "gone", "channel": "push", "count": 1})
    await served.call("PUT", "/api/v1/caught/misbehaviour", {"fault": "error", "channel": "sms", "count": 1})
    batch_id = await served.ask(CANARY, priority="critical")
    await served.until(batch_id, lambda sums: sums["delivered"] > 0 and sums["failed"] > 0)
    assert '"alert"' in log.getvalue()
    told = [
        await served.call("PUT", "/api/v1/users/other", {"email": "kanaria-7f3a91@@example"}),
        await served.call("PUT", "/api/v1/users/other", {"phone": "+819055512347000000"}),
        await served.call("PUT", "/api/v1/users/other", {"email": ["kanaria-7f3a91@example.com"]}),
        await served.call("POST", "/api/v1/users/other/devices", {"device_token": "device-kanaria-5b1d77"}),
        await served.call("GET", "/api/v1/dead-letters"),
        await served.call("GET", "/api/v1/caught"),
        await served.call("GET", "/api/v1/users/canary/notifications"),
        await served.call("GET", "/metrics"),
    ]
    assert [answer.status for answer in told] == [422, 422, 422, 422, 200, 200, 200, 200]
    on_disk = served.kept()
    assert {"noroshi.db", "noroshi.db-wal"} <= on_disk.keys() or {"users", "endpoints", "ledger"} <= on_disk.keys()
    seen = [*on_disk.values(), log.getvalue().encode(), *(answer.text for answer in told)]
    for secret in (*SECRETS, *(key.encode() for key in served.keys)):
        assert not [place for place in seen if secret in place], secret
    assert b"canary" in b"".join(on_disk.values())  # or the search would find nothing at all
    shown = await served.call("GET", "/api/v1/users/canary")
    assert (shown["email"], shown["phone"]) == (CANARY.email, CANARY.phone)


async def test_of_an_erased_person_only_the_history_is_left(served: Served) -> None:  # N17.3
    await served.meet(CANARY)
    await served.write("email")
    await served.until(await served.ask(CANARY), is_finished)
    assert (await served.call("DELETE", "/api/v1/users/canary")).status == 204
    assert (await served.call("GET", "/api/v1/users/canary")).status == 404
    assert (await served.call("GET", "/api/v1/users/canary/notifications")).status == 200
