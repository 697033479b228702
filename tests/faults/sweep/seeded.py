"""A data folder and its store made once, with people, a template and a key, and copied for every trial that starts
from them."""

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from noroshi.bootstrap.back import opened_back
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.people import User
from noroshi.domain.records import KeyScope
from noroshi.domain.templates import Content
from noroshi.settings import read_settings
from noroshi.storage.store import Store
from tests.faults.machinery.kept_store import KeptStore, Stores
from tests.services.databases import Prepare
from tests.stand_ins.ledger_provider.wire import content_hash
from tests.stand_ins.line.process import user_id as line_user_id
from tests.stores import make_schema

TEMPLATE = "note"

_LOCALE = "en"
_CHANNELS = ("email", "sms", "voice", "in_app", "line")
_SUBJECT = "Note {}"
_BODY = "{} for {}"
_AT_ONCE = 500

SUBJECT = _SUBJECT.format("{{ n }}")
BODY = _BODY.format("{{ n }}", "{{ user.name }}")
"""Of the template, in its own words."""


class Seeded(Struct, frozen=True):
    """`people` are the ids of those who can be reached on every channel of the template."""

    data: Path
    api_key: str
    people: list[str]
    stores: Stores
    prepare: Prepare

    @contextlib.contextmanager
    def copied_to(self, folder: Path) -> Iterator[KeptStore]:
        shutil.copytree(self.data, folder)
        with self.stores.opened(folder, self.prepare) as store:
            yield store


def expected_hash(channel: str, number: str, user_id: str) -> str:
    """The content that a message with `data.n = number` must have when it reaches the provider (I4)."""
    subject = _SUBJECT.format(number) if channel == "email" else None
    return content_hash(Content(expected_body(number, user_id), subject))


def expected_body(number: str, user_id: str) -> str:
    return _BODY.format(number, _name(user_id))


def seed(data: Path, people: int, stores: Stores) -> Seeded:
    ids = [f"person-{number}" for number in range(people)]
    if stores.kind == "sqlite":
        return Seeded(data, asyncio.run(_seed(data, ids)), ids, stores, make_schema)
    keys: list[str] = []

    def prepare(url: str) -> None:
        make_schema(url)
        keys.append(asyncio.run(_seed(data, ids, store=url)))

    with stores.opened(data, prepare):
        return Seeded(data, keys[0], ids, stores, prepare)


async def _seed(data: Path, people: list[str], **settings: str) -> str:
    async with opened_back(read_settings({}, {"data": str(data), **settings})) as back:
        await fill(back.store, people)
        return await back.mint_key("sweep", list(KeyScope))


async def fill(store: Store, people: list[str]) -> None:
    """The people, and a template on every channel."""
    for first in range(0, len(people), _AT_ONCE):
        await asyncio.gather(
            *(
                store.people.put_user(DEFAULT_TENANT, _person(user_id, number))
                for number, user_id in enumerate(people[first : first + _AT_ONCE], first)
            )
        )
    for channel in _CHANNELS:
        await store.templates.add(
            DEFAULT_TENANT,
            TEMPLATE,
            channel=channel,
            locale=_LOCALE,
            variant="",
            subject=SUBJECT if channel == "email" else None,
            title=None,
            body=BODY,
            metadata={},
            created_by="seed",
        )


def _person(user_id: str, number: int) -> User:
    return User(
        user_id,
        email=f"{user_id}@example.com",
        phone=f"+8190{number:08d}",
        line_user_id=line_user_id(number),
        name=_name(user_id),
        locale=_LOCALE,
        timezone="Asia/Tokyo",
    )


def _name(user_id: str) -> str:
    return user_id.replace("-", " ").title()
