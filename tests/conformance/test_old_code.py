"""Old code on the new schema: what the version before asks of PostgreSQL still works after the migrations of this one.

Processes are replaced one after another, so for a while both versions run on the new schema. The statements of each
release lie in tests/payloads (tests/conformance/recording.py); each is run once, with a row of its own making."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from noroshi.storage.postgres.connection import migrate
from noroshi.storage.postgres.days import make_days_ahead
from tests.conformance.recording import FOLDER
from tests.conformance.stores import MONDAY
from tests.services.databases import Databases

RECORDED = sorted(FOLDER.glob("postgres-statements-*.json"))
STATEMENTS = [(path.stem[-4:], name, text) for path in RECORDED for name, text in json.loads(path.read_text()).items()]
COPY = re.compile(r"COPY (\w+) \(([^)]+)\) FROM STDIN")
AN_ID = (MONDAY // 1000).to_bytes(6, "big") + bytes(10)

VALUES: dict[str, Any] = {
    **dict.fromkeys(("int2", "int4", "int8"), 1),
    **dict.fromkeys(("text", "varchar"), "[]"),
    "bool": False,
    "bytea": AN_ID,
}
"""A value of each type that the statements use; `[]` is text and JSON alike."""


def prepare(url: str) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(url, server_settings={"search_path": "noroshi"})
        await migrate(connection)
        await make_days_ahead(connection, MONDAY)
        await connection.close()

    asyncio.run(work())


@pytest.fixture
async def connection(postgres_databases: Databases) -> AsyncIterator[asyncpg.Connection]:
    """Whatever a test does is undone at its end."""
    with postgres_databases.fresh(prepare) as url:
        connection = await asyncpg.connect(url, server_settings={"search_path": "noroshi"})
        whole = connection.transaction()
        await whole.start()
        yield connection
        await whole.rollback()
        await connection.close()


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


def test_a_release_was_recorded() -> None:
    assert STATEMENTS


async def test_every_statement_of_earlier_versions_runs_on_this_schema(connection: asyncpg.Connection) -> None:  # W32
    for version, name, text in STATEMENTS:
        attempt = connection.transaction()
        await attempt.start()
        try:
            await run(connection, text)
        except asyncpg.PostgresError as error:
            pytest.fail(f"{name} of schema {version}: {error}")
        finally:
            await attempt.rollback()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("ALTER TABLE deliveries ADD COLUMN colour text NOT NULL", "a column that old code does not fill"),
        ("ALTER TABLE batches RENAME COLUMN reasons TO causes", "a column under another name"),
        ("DROP TABLE caught", "a table that is gone"),
    ],
)
async def test_a_change_that_old_code_cannot_bear_is_found(
    connection: asyncpg.Connection, change: str, kind: str
) -> None:
    await connection.execute(change)
    with pytest.raises(pytest.fail.Exception):
        await test_every_statement_of_earlier_versions_runs_on_this_schema(connection)
