"""A data folder made once, with people, a template and a key, and copied for every trial that starts from it."""

import asyncio
import shutil
from pathlib import Path

from msgspec import Struct

from noroshi.bootstrap import opened_back
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.people import User
from noroshi.domain.records import KeyScope
from noroshi.domain.templates import Content
from noroshi.settings import read_settings
from noroshi.storage.store import Store
from tests.stand_ins.ledger_provider.wire import content_hash

TEMPLATE = "note"

_LOCALE = "en"
_CHANNELS = ("email", "sms", "voice")
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

    def copy_to(self, folder: Path) -> Path:
        shutil.copytree(self.data, folder)
        return folder


def expected_hash(channel: str, number: str, user_id: str) -> str:
    """The content that a message with `data.n = number` must have when it reaches the provider (I4)."""
    subject = _SUBJECT.format(number) if channel == "email" else None
    return content_hash(Content(_BODY.format(number, _name(user_id)), subject))


def seed(data: Path, people: int) -> Seeded:
    return asyncio.run(_seed(data, [f"person-{number}" for number in range(people)]))


async def _seed(data: Path, people: list[str]) -> Seeded:
    async with opened_back(read_settings({}, {"data": str(data)})) as back:
        await fill(back.store, people)
        return Seeded(data, await back.mint_key("sweep", list(KeyScope)), people)


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
        name=_name(user_id),
        locale=_LOCALE,
        timezone="Asia/Tokyo",
    )


def _name(user_id: str) -> str:
    return user_id.replace("-", " ").title()
