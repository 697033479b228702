"""Old code on the new schema: what the version before asks of PostgreSQL still works after the migrations of this one.

Processes are replaced one after another, so for a while both versions run on the new schema. The statements of each
schema's code lie in tests/payloads (tests/conformance/recording.py), those of the present one too, so that whoever adds
a migration finds its predecessor there; each is run once, with a row of its own making."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

import asyncpg
import pytest

from noroshi.storage.postgres.connection import migrate
from noroshi.storage.postgres.days import make_days_ahead
from noroshi.storage.postgres.sql import SQL, migrations
from tests.conformance.recording import FOLDER, place_of
from tests.conformance.stores import MONDAY
from tests.services.databases import Databases

RECORDED = sorted(FOLDER.glob("postgres-statements-*.json"))
STATEMENTS = [
    (int(path.stem[-4:]), name, text) for path in RECORDED for name, text in json.loads(path.read_text()).items()
]
COPY = re.compile(r"COPY (\w+) \(([^)]+)\) FROM STDIN")
AN_ID = (MONDAY // 1000).to_bytes(6, "big") + bytes(10)

VALUES: dict[str, Any] = {
    **dict.fromkeys(("int2", "int4", "int8"), 1),
    **dict.fromkeys(("text", "varchar"), "[]"),
    "bool": False,
    "bytea": AN_ID,
    "jsonb": "[]",
    "utc_text": "2026-03-02T09:00:00.000000+00:00",
}
"""A value of each type that the statements use; `[]` is text and JSON alike."""

FIRST_OF_ALL = 7
"""From this schema on none is without its recording. Earlier ones came within one version that nobody had yet."""

Old = Callable[[int], Any]
"""Awaited, a connection to a database that has stayed at an earlier schema."""


@cache
def prepare(schema: int | None) -> Callable[[str], None]:
    """Migrates as far as that, or as far as there are migrations."""

    async def work(url: str) -> None:
        connection = await asyncpg.connect(url, server_settings={"search_path": "noroshi"})
        await migrate(connection, schema)
        await make_days_ahead(connection, MONDAY)
        await connection.close()

    return lambda url: asyncio.run(work(url))


@pytest.fixture
async def old(postgres_databases: Databases) -> AsyncIterator[Callable[[int | None], Any]]:
    """Whatever a test does is undone at its end."""
    async with AsyncExitStack() as ends:
        connections: dict[int | None, asyncpg.Connection] = {}

        async def opened(schema: int | None) -> asyncpg.Connection:
            if schema not in connections:
                url = ends.enter_context(postgres_databases.fresh(prepare(schema)))
                connection = connections[schema] = await asyncpg.connect(
                    url, server_settings={"search_path": "noroshi"}
                )
                ends.push_async_callback(connection.close)
                whole = connection.transaction()
                await whole.start()
                ends.push_async_callback(whole.rollback)
            return connections[schema]

        yield opened


@pytest.fixture
async def connection(old: Callable[[int | None], Any]) -> asyncpg.Connection:
    """To a database at the schema of this version."""
    return await old(None)


def value_of(type_name: str) -> Any:
    return [VALUES[type_name.removesuffix("[]")]] if type_name.endswith("[]") else VALUES[type_name]


async def run_copy(connection: asyncpg.Connection, table: str, columns: list[str]) -> None:
    types = dict(
        await connection.fetch(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = $1::text::regclass",
            f"noroshi.{table}",
        )
    )
    known = {"smallint": "int2", "integer": "int4", "bigint": "int8", "boolean": "bool"}
    row = tuple(value_of(known.get(types[column], types[column])) for column in columns)
    await connection.copy_records_to_table(table, records=[row], columns=columns, schema_name="noroshi")


async def run(connection: asyncpg.Connection, text: str) -> None:
    if (copy := COPY.fullmatch(text)) is not None:
        await run_copy(connection, copy[1], [column.strip() for column in copy[2].split(",")])
        return
    statement = await connection.prepare(text)
    await statement.fetch(*(value_of(parameter.name) for parameter in statement.get_parameters()))


async def refusal(connection: asyncpg.Connection, text: str) -> asyncpg.PostgresError | None:
    attempt = connection.transaction()
    await attempt.start()
    try:
        await run(connection, text)
    except asyncpg.PostgresError as error:
        return error
    finally:
        await attempt.rollback()
    return None


def test_the_code_of_every_schema_is_recorded_and_that_of_this_one_as_it_is() -> None:
    newest = migrations()[-1][0]
    assert [number for number in range(FIRST_OF_ALL, newest + 1) if not place_of(number).exists()] == []
    recorded = json.loads(place_of(newest).read_text())
    assert recorded == SQL, (
        "run python -m tests.conformance.recording: the next version must find this one's statements"
    )


async def test_every_statement_of_earlier_versions_runs_on_this_schema(
    connection: asyncpg.Connection, old: Old
) -> None:  # W32
    for version, name, text in STATEMENTS:
        error = await refusal(connection, text)
        if isinstance(error, asyncpg.CheckViolationError):  # what its own schema refuses as well says nothing
            error = None if await refusal(await old(version), text) is not None else error
        assert error is None, f"{name} of schema {version}: {error}"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("ALTER TABLE deliveries ADD COLUMN colour text NOT NULL", "a column that old code does not fill"),
        ("ALTER TABLE batches RENAME COLUMN reasons TO causes", "a column under another name"),
        ("DROP TABLE caught", "a table that is gone"),
        ("ALTER TABLE reachability ADD COLUMN word text NOT NULL", "the same in the newest table"),
        ("ALTER TABLE pauses ADD CHECK (name = 'all')", "a rule that old code does not know"),
    ],
)
async def test_a_change_that_old_code_cannot_bear_is_found(
    connection: asyncpg.Connection, old: Old, change: str, kind: str
) -> None:
    await connection.execute(change)
    with pytest.raises(AssertionError, match="of schema"):
        await test_every_statement_of_earlier_versions_runs_on_this_schema(connection, old)
