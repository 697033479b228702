"""Days: `notifications` and `ledger` are cut by the day a batch was accepted; a day goes when nothing of it is needed.

The first 48 bits of an id are its milliseconds, so a day is a range of ids, and an id alone leads to its day.
"""

from datetime import UTC, date, datetime, timedelta

from noroshi.domain.instants import Instant, moment_of
from noroshi.storage.postgres.connection import SCHEMA, Connection

TABLES = ("notifications", "ledger")
AHEAD = 7
"""Days made before they come."""

_FILLED = {"notifications": 45, "ledger": 100}
"""Per cent of a page. A notification is written again, a little longer, when it is sent: if that has no room beside the
first, every index gets a second entry, and limits read both. The ledger is only added to."""

_EPOCH = date(1970, 1, 1)
_DAY_MS = 86_400_000


def day_of(instant: Instant) -> int:
    """Days since 1970, UTC."""
    return (moment_of(instant).date() - _EPOCH).days


def day_of_id(raw: bytes) -> int:
    return int.from_bytes(raw[:6], "big") // _DAY_MS


def first_id(day: int) -> bytes:
    """Every id of that day is greater."""
    return (day * _DAY_MS).to_bytes(6, "big")


def shown(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).strftime("%Y%m%d")


def day_of_table(name: str) -> int:
    """The day of a partition, by its name."""
    return (datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC).date() - _EPOCH).days


async def present_days(connection: Connection) -> set[int]:
    rows = await connection.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1)",
        f"{SCHEMA}.ledger",
    )
    return {day_of_table(row[0]) for row in rows}


async def make_days(connection: Connection, days: set[int]) -> None:
    """Makes the days that are missing. A table is made apart and then joined on, which stops nobody who reads or
    writes another day; two processes that make the same day wait for each other."""
    missing = days - await present_days(connection)
    if not missing:
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(7317, 2)")
        for day in sorted(missing - await present_days(connection)):
            for table in TABLES:
                await connection.execute(_joining(table, day))


def _joining(table: str, day: int) -> str:
    name = f"{SCHEMA}.{table}_{shown(day)}"
    return (
        f"CREATE TABLE {name} (LIKE {SCHEMA}.{table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES);"
        f"ALTER TABLE {name} SET (autovacuum_vacuum_insert_scale_factor = 0.05, fillfactor = {_FILLED[table]});"
        f"ALTER TABLE {SCHEMA}.{table} ATTACH PARTITION {name}"
        f" FOR VALUES FROM ('\\x{first_id(day).hex()}') TO ('\\x{first_id(day + 1).hex()}')"
    )


class DayDropping:
    """Drops days on a connection of its own, which must not be inside a transaction. Nobody who reads or writes waits
    for it: a table is taken off its parent concurrently, and is nobody's when it is dropped. Interrupted at any point,
    the next one finishes what was begun."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def begin(self) -> bool:
        """False if another process is at it. What an earlier one left half done is finished."""
        if not await self._connection.fetchval("SELECT pg_try_advisory_lock(7317, 3)"):
            return False
        for (name,) in await self._connection.fetch(_HALF_TAKEN_OFF):
            await self._connection.execute(
                f"ALTER TABLE {SCHEMA}.{name.rpartition('_')[0]} DETACH PARTITION {SCHEMA}.{name} FINALIZE"
            )
        for (name,) in await self._connection.fetch(_TAKEN_OFF):
            await self._connection.execute(f"DROP TABLE {SCHEMA}.{name}")
        return True

    async def days(self) -> set[int]:
        return await present_days(self._connection)

    async def drop(self, day: int) -> None:
        """The ledger's goes last: while it is there, the day counts as present."""
        for table in TABLES:
            name = f"{SCHEMA}.{table}_{shown(day)}"
            if await self._connection.fetchval("SELECT to_regclass($1)", name) is not None:
                await self._connection.execute(f"ALTER TABLE {SCHEMA}.{table} DETACH PARTITION {name} CONCURRENTLY")
                await self._connection.execute(f"DROP TABLE {name}")


_OF_A_DAY = rf"""
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r'
        AND c.relname ~ '^({"|".join(TABLES)})_\d{{8}}$'"""
_HALF_TAKEN_OFF = f"SELECT c.relname {_OF_A_DAY} AND i.inhdetachpending"
_TAKEN_OFF = f"SELECT c.relname {_OF_A_DAY} AND i.inhrelid IS NULL"


def days_ahead(now: Instant) -> set[int]:
    """Those that are to be there at this moment."""
    today = day_of(now)
    return set(range(today - 1, today + AHEAD + 1))


async def make_days_ahead(connection: Connection, now: Instant) -> None:
    await make_days(connection, days_ahead(now))
