"""PostgresTables: a database's URL in, its whole tables out, and rows back in."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from noroshi.domain.instants import Instant
from noroshi.ports.clock import Clock
from noroshi.storage.postgres.connection import LOST, SCHEMA, Connection, connect, migrate
from noroshi.storage.postgres.days import TABLES as CUT_BY_DAY
from noroshi.storage.postgres.days import day_of_id, make_days, make_days_ahead
from noroshi.storage.postgres.signs import read_signs
from noroshi.storage.postgres.sql import SQL
from noroshi.storage.signs import PostgresSigns
from noroshi.storage.tables import OF_THE_STORE, Table
from noroshi.storage.turns import Row

_FETCHED_AT_ONCE = 50
"""Few, for a batch's recipients can be megabytes."""

_LARGE_AT_ONCE = {"attachments": 4}
"""Of tables whose rows often are."""

_TABLES = """
    SELECT c.relname,
        array_agg(a.attname::text ORDER BY a.attnum),
        (SELECT array_agg(k.attname::text ORDER BY place)
            FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS u(number, place)
            JOIN pg_attribute k ON k.attnum = u.number
            WHERE i.indrelid = c.oid AND i.indisprimary AND k.attrelid = c.oid),
        array_agg(a.attname::text) FILTER (WHERE a.atttypid = 'boolean'::regtype)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    GROUP BY c.oid, c.relname ORDER BY c.relname"""

_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'noroshi%' AND pid <> pg_backend_pid()"""

_COUNTED_ON = (
    # Above every number given before: those of another store were in the order of time, too.
    "SELECT setval('numbers', greatest(noroshi_now(), (SELECT max(dead_letter_id) FROM dead_letters),"
    " (SELECT max(caught_id) FROM caught)))"
)

_LATE_DAYS = """
    INSERT INTO late_days (day, last_at)
    SELECT noroshi_day(notification_id), max(at) FROM notifications
    WHERE at > noroshi_now() - 90000000000
        AND notification_id < noroshi_first_id((noroshi_now() / 86400000000)::integer - 1)
    GROUP BY 1
    ON CONFLICT (day) DO UPDATE SET last_at = greatest(late_days.last_at, excluded.last_at)"""


class PostgresTables:
    """Implements storage/tables.py StoreTables. As a reader it sees one moment, whatever is written meanwhile."""

    kind = "postgres"
    failures: tuple[type[Exception], ...] = (*LOST, asyncpg.PostgresError)

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._switches: dict[str, frozenset[str]] = {}

    async def close(self) -> None:
        await self._connection.close()

    async def moment(self) -> Instant:
        return Instant(await self._connection.fetchval("SELECT (extract(epoch FROM now()) * 1000000)::bigint"))

    async def schema(self) -> int:
        if await self._connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.migrations") is None:
            return 0
        return int(await self._connection.fetchval("SELECT coalesce(max(number), 0) FROM migrations"))

    async def migrate(self, up_to: int | None = None) -> int:
        return await migrate(self._connection, up_to)

    async def others(self) -> int:
        return int(await self._connection.fetchval(_OTHERS))

    async def signs(self) -> PostgresSigns:
        return await read_signs(self._connection, self._clock)

    async def list_tables(self) -> list[Table]:
        tables: list[Table] = []
        for name, columns, key, switches in await self._connection.fetch(_TABLES, SCHEMA):
            self._switches[name] = frozenset(switches or ())
            if name not in OF_THE_STORE:
                tables.append(Table(name, tuple(columns), tuple(key)))
        return tables

    async def count(self, table: Table) -> int:
        return int(await self._connection.fetchval(f"SELECT count(*) FROM {table.name}"))  # noqa: S608

    async def rows(self, table: Table, skip: int) -> AsyncIterator[Row]:
        columns, key = ", ".join(table.columns), ", ".join(table.key)
        query = f"SELECT {columns} FROM {table.name} ORDER BY {key} OFFSET {skip}"  # noqa: S608
        at_once = _LARGE_AT_ONCE.get(table.name, _FETCHED_AT_ONCE)
        async for row in self._connection.cursor(query, prefetch=at_once):
            yield tuple(row)

    async def ask(self, name: str, *parameters: Any) -> list[Row]:
        found: list[Row] = await self._connection.fetch(SQL[name], *parameters)
        return found

    async def commit(self, *statements: tuple[Any, ...]) -> None:
        async with self._connection.transaction():
            for name, *parameters in statements:
                await self._connection.execute(SQL[name], *parameters)

    async def clear(self, table: Table) -> None:
        await self._connection.execute(f"DELETE FROM {table.name}")  # noqa: S608

    async def put(self, table: Table, rows: list[Row]) -> None:
        if table.name in CUT_BY_DAY:
            place = table.columns.index("notification_id")
            await make_days(self._connection, {day_of_id(row[place]) for row in rows})
        switches = await self._switches_of(table)
        if switches:
            rows = [_with_booleans(row, switches) for row in rows]
        async with self._connection.transaction():
            await self._connection.copy_records_to_table(
                table.name, schema_name=SCHEMA, columns=table.columns, records=rows
            )

    async def _switches_of(self, table: Table) -> list[int]:
        """The places, among the columns given, of those that are true or false here."""
        if not self._switches:
            await self.list_tables()
        return [place for place, column in enumerate(table.columns) if column in self._switches[table.name]]

    async def finish(self) -> None:
        async with self._connection.transaction():
            await self._connection.execute(_COUNTED_ON)
            await self._connection.execute(_LATE_DAYS)
            await make_days_ahead(self._connection, await self.moment())
        for table in await self.list_tables():
            await self._connection.execute(f"ANALYZE {table.name}")


def _with_booleans(row: Row, places: list[int]) -> Row:
    values = list(row)
    for place in places:
        if values[place] is not None:
            values[place] = bool(values[place])
    return tuple(values)


async def open_postgres_tables(url: str, clock: Clock, *, is_reader: bool) -> PostgresTables:
    connection = await connect(url)
    if is_reader:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await connection.fetchval("SELECT 1")  # the view begins with the first read
    return PostgresTables(connection, clock)
