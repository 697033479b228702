"""An e-mail the whole way: asked for over the API, rendered, sent to a relay that somebody else wrote, and recorded."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from smtp_cast import Mailroom, mailroom

from noroshi.bootstrap.opening import open_noroshi
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.settings import read_settings
from tests.cast import HANAKO, crowd
from tests.stories.client import Client, Json
from tests.stories.conftest import OpenStore

TEMPLATE = {
    "channel": "email",
    "locale": "en",
    "subject": "{{ user.name }}, your order {{ order }}",
    "body": "Order {{ order }} is on its way.",
    "metadata": {"html_body": "<p>Order <b>{{ order }}</b> is on its way.</p>"},
}


@asynccontextmanager
async def serving(room: Mailroom, folder: Path, store: OpenStore) -> AsyncIterator[Client]:
    """A whole Noroshi whose relay is this mailroom."""
    async with mailroom(room) as (_, port):
        relay = {"NOROSHI_SMTP_URL": f"smtp://127.0.0.1:{port}", "NOROSHI_SMTP_FROM": "Shop <shop@noroshi.example>"}
        noroshi = open_noroshi(
            read_settings(relay, {"data": str(folder), **store()}), is_dev=False, on_broken=lambda: None
        )
        await noroshi.start()
        yield Client(build_app(noroshi), await noroshi.mint_key("operator", list(KeyScope)))
        await noroshi.stop()


async def ended(client: Client, asked: Json) -> Json:
    """The sums of a batch once nothing of it is pending."""
    answer = await client.call("POST", "/api/v1/notifications", asked)
    status = f"/api/v1/notifications/{answer['batch_id']}/status"
    async with asyncio.timeout(20):
        while (sums := (await client.call("GET", status)).body)["pending"]:
            await asyncio.sleep(0.01)
    return sums


async def test_everybody_gets_their_mail_and_the_dead_address_is_given_up(
    tmp_path: Path, store: OpenStore
) -> None:  # N1.4, F17
    others = crowd(30)
    room = Mailroom()
    room.refuse[str(others[7].email)] = "550 5.1.1 no such user"
    async with serving(room, tmp_path, store) as client:
        for person in (HANAKO, *others):
            await client.call("PUT", f"/api/v1/users/{person.user_id}", person.body)
        assert (await client.call("POST", "/api/v1/templates/shipped", TEMPLATE)).status == 201
        asked = {
            "user_ids": [person.user_id for person in (HANAKO, *others)],
            "template_id": "shipped",
            "channels": ["email"],
            "data": {"order": "<A-1>"},
        }
        sums = await ended(client, asked)
        dead = (await client.call("GET", "/api/v1/dead-letters")).body["items"]
    assert sums["statuses"] == {"SENT": 30, "DEAD_LETTERED": 1}
    assert [(letter["user_id"], letter["code"]) for letter in dead] == [(others[7].user_id, "SMTP_550_5.1.1")]
    assert len(room.taken) == len({taken.recipients[0] for taken in room.taken}) == 30
    [hers] = [taken.message for taken in room.taken if taken.recipients == [HANAKO.email]]
    plain, rich = hers.iter_parts()
    assert hers["Subject"] == f"{HANAKO.name}, your order <A-1>"
    assert plain.get_content().strip() == "Order <A-1> is on its way."
    assert rich.get_content().strip() == "<p>Order <b>&lt;A-1&gt;</b> is on its way.</p>"


async def test_everybody_gets_the_attachments_byte_for_byte(tmp_path: Path, store: OpenStore) -> None:  # N1.4
    people = crowd(30)
    invoice, logo = bytes(range(256)) * 4_000, b"\x89PNG\r\n\x1a\n"
    room = Mailroom()
    async with serving(room, tmp_path, store) as client:
        for person in people:
            await client.call("PUT", f"/api/v1/users/{person.user_id}", person.body)
        template = TEMPLATE | {"metadata": {"html_body": '<img src="cid:logo">'}}
        assert (await client.call("POST", "/api/v1/templates/shipped", template)).status == 201
        asked = {
            "user_ids": [person.user_id for person in people],
            "template_id": "shipped",
            "data": {"order": "A-1"},
            "attachments": [
                {"filename": "請求書 2026年11月.pdf", "content": b64encode(invoice).decode()},
                {"filename": "logo.png", "content": b64encode(logo).decode(), "content_id": "logo"},
            ],
        }
        sums = await ended(client, asked)
    assert sums["statuses"] == {"SENT": 30}
    assert len({taken.recipients[0] for taken in room.taken}) == 30
    for taken in room.taken:
        files = {part.get_filename(): part for part in taken.message.walk() if part.get_filename()}
        assert {name: part.get_content() for name, part in files.items()} == {
            "請求書 2026年11月.pdf": invoice,
            "logo.png": logo,
        }
        assert files["logo.png"]["Content-ID"] == "<logo>"
