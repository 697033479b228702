"""P1: an empty folder in; 100,000 people and a day of their history, as the product would have left it, out."""

import asyncio
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import msgspec
from msgspec import Struct

from bench.cast import TEMPLATE, USERS, has_category_off, has_quiet_hours, is_suppressed, user_id
from noroshi.bootstrap.back import opened_back
from noroshi.domain.ids import DEFAULT_TENANT, BatchId, new_batch_id, notification_id
from noroshi.domain.instants import Instant, at
from noroshi.domain.people import FrequencyLimit, Preferences, QuietHours
from noroshi.domain.records import KeyScope
from noroshi.machine.sealing import AesSealer
from noroshi.machine.secrets import load_secrets
from noroshi.settings import Settings, read_settings
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.sql import SQL

HISTORY = 1_000_000
DATABASE = "noroshi.db"

_BATCH_SIZE = 1_000
_ZONES = ("Asia/Tokyo", "UTC", "Europe/Berlin", "America/New_York")
_SCATTER = 7_919  # a prime: each batch of the history reaches people from everywhere
_DAY = 24 * 3600 * 1_000_000
_TEXTS = {
    "ja": ("ご注文 {{ order }}", "{{ user.name }}さん、ご注文 {{ order }}（{{ total }}円）を承りました。"),
    "en": ("Order {{ order }}", "Hello {{ user.name }}, your order {{ order }} over {{ total }} yen is on its way."),
}


class Population(Struct, frozen=True):
    """A folder that a server can be started on, the key that opens its API, and where its history ends."""

    folder: Path
    key: str
    last_batch: BatchId
    name: str = "P1"

    def copy(self, to: Path) -> "Population":
        """For one measurement; on the disk before it begins, or the writing back would be measured too."""
        shutil.copytree(self.folder, to)
        for path in to.iterdir():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        return msgspec.structs.replace(self, folder=to)

    def open(self, **how: Any) -> apsw.Connection:
        return open_connection(str(self.folder / DATABASE), **how)

    def remove(self) -> None:
        shutil.rmtree(self.folder)


def one_number(connection: apsw.Connection, question: str, *parameters: Any) -> int:
    """The answer to a question that has one number; 0 for none."""
    answer: Any = connection.execute(question, parameters).fetchall()[0][0]
    return int(answer or 0)


def build_population(folder: Path) -> Population:
    """Through the store's own connections, statements and sealer, with the disk's patience left out."""
    settings = read_settings({}, {"data": str(folder)})
    key = asyncio.run(_key_and_template(settings))
    secrets = load_secrets(folder, None)
    now = at(datetime.now(UTC))
    connection = open_connection(str(folder / DATABASE), synchronous="OFF")
    connection.pragma("cache_size", -512_000)
    connection.execute("BEGIN")
    _put_people(connection, AesSealer(secrets.masters, secrets.blind_index), now)
    last_batch = _put_history(connection, now)
    connection.execute("COMMIT")
    connection.pragma("wal_checkpoint(TRUNCATE)")
    connection.close()
    return Population(folder, key, last_batch)


async def _key_and_template(settings: Settings) -> str:
    async with opened_back(settings) as back:
        for locale, (subject, body) in _TEXTS.items():
            await back.store.templates.add(
                DEFAULT_TENANT,
                TEMPLATE,
                channel="email",
                locale=locale,
                variant="",
                subject=subject,
                title=None,
                body=body,
                metadata={},
                created_by="bench",
            )
        return await back.mint_key("bench", list(KeyScope))


def _put_people(connection: apsw.Connection, sealer: AesSealer, now: Instant) -> None:
    wishes = {zone: _wishes(zone, now) for zone in _ZONES}
    users: list[tuple[Any, ...]] = []
    endpoints: list[tuple[Any, ...]] = []
    suppressed: list[tuple[Any, ...]] = []
    for number in range(USERS):
        name, address = user_id(number), f"person-{number}@example.com"
        zone = _ZONES[number % len(_ZONES)]
        data_key = sealer.new_user_key(DEFAULT_TENANT, name)
        blind = sealer.blind_index(DEFAULT_TENANT, "email", address)
        sealed = sealer.seal(data_key, DEFAULT_TENANT, name, "email", address)
        wish = wishes[zone][has_quiet_hours(number), has_category_off(number)]
        locale = "ja" if number % 2 else "en"
        users.append(
            (DEFAULT_TENANT, name, data_key, f"Person {number}", locale, zone, 1, '{"plan":"gold"}', wish, now)
        )
        endpoints.append((DEFAULT_TENANT, name, 1, "email", blind, sealed, now))
        if is_suppressed(number):
            suppressed.append((DEFAULT_TENANT, "email", blind, "bounced", now))
    connection.executemany(
        "INSERT INTO users (tenant, user_id, data_key, name, locale, timezone, is_zone_confirmed, attributes,"
        " preferences, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)",
        users,
    )
    connection.executemany(
        "INSERT INTO endpoints (tenant, user_id, endpoint_id, kind, blind, sealed, created_at, last_used_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        endpoints,
    )
    connection.executemany(
        "INSERT INTO suppressions (tenant, kind, blind, reason, at) VALUES (?, ?, ?, ?, ?)", suppressed
    )


def _wishes(zone: str, now: Instant) -> dict[tuple[bool, bool], str]:
    """Preferences by (has quiet hours, has the category off). The quiet hours begin eight hours from now."""
    here = datetime.fromtimestamp(now / 1_000_000, ZoneInfo(zone))
    start, end = (f"{here + timedelta(hours=ahead):%H}:00" for ahead in (8, 14))
    limit = {"email": FrequencyLimit(per_hour=1_000, per_day=10_000)}
    return {
        (is_quiet, is_off): msgspec.json.encode(
            Preferences(
                categories={"general": False} if is_off else {},
                quiet_hours=QuietHours(enabled=is_quiet, start=start, end=end),
                frequency_limit=limit,
            )
        ).decode()
        for is_quiet in (False, True)
        for is_off in (False, True)
    }


def _put_history(connection: apsw.Connection, now: Instant) -> BatchId:
    """One million sent notifications of the last 24 h, with their batches, ledger and message ids; the last batch.
    The indexes grow with the rows: one built afterwards has pages without room, each of which the next row splits."""
    count = HISTORY // _BATCH_SIZE
    last_batch = BatchId(b"")
    for number in range(count):
        sent_at = Instant(now - _DAY + (number + 1) * (_DAY // (count + 1)))
        last_batch = new_batch_id(sent_at // 1000, number * 7)
        people = [(number * _BATCH_SIZE + place) * _SCATTER % USERS for place in range(_BATCH_SIZE)]
        put_batch(connection, last_batch, [user_id(person) for person in people], sent_at, number, is_open=False)
        ids = [notification_id(last_batch, place, 0) for place in range(_BATCH_SIZE)]
        connection.executemany(
            "INSERT INTO notifications (tenant, notification_id, user_id, channel, status, at, content_hash, standing,"
            " template_row, sent_at, tries) VALUES (1, ?, ?, 'email', 60, ?, ?, 2, ?, ?, 1)",
            [
                (this, user_id(person), sent_at, number, 1 + (person % 2 == 0), sent_at)
                for this, person in zip(ids, people, strict=True)
            ],
        )
        connection.executemany(
            SQL["put_ledger"],
            [(1, this, sent_at, "sent", _SENT_DETAIL % this.hex(), sent_at + place) for place, this in enumerate(ids)],
        )
        connection.executemany(SQL["put_message_id"], [(1, "noop", f"noop-{this.hex()}", this, 1) for this in ids])
    return last_batch


_SENT_DETAIL = '{"started_at":1767225600000000,"message_id":"noop-%s","endpoint":1}'


def put_batch(
    connection: apsw.Connection,
    batch_id: BatchId,
    user_ids: list[str],
    due_at: Instant,
    content_hash: int,
    *,
    is_open: bool,
) -> None:
    """A batch as accept leaves it: open ones wait for `due_at`."""
    count = len(user_ids)
    decided = 0 if is_open else count
    connection.execute(
        SQL["insert_batch"],
        (
            *(1, batch_id, TEMPLATE, "email", "normal", "general", content_hash, due_at, due_at, None, None, "bench"),
            *(is_open, count, count, decided, decided, 0, "{}", 0 if is_open else 1),
        ),
    )
    data = msgspec.json.encode({"order": f"h-{content_hash}", "total": 4200, "items": ["tea", "cake"]})
    connection.execute(SQL["insert_batch_body"], (1, batch_id, data, msgspec.json.encode(user_ids), None))
