"""Connections: a file's path in, a configured apsw connection at the current schema out."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import apsw
import msgspec

from noroshi.domain.instants import Instant
from noroshi.ports.clock import Clock
from noroshi.storage.errors import NewerSchemaError, UnsafeStoreError
from noroshi.storage.sqlite.sql import SQL, migrations
from noroshi.storage.turns import Group, Row

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode

OLDEST_SAFE_LIBRARY = (3, 51, 3)
"""Older ones can corrupt a WAL database when a checkpoint races a reset."""

BUSY_PATIENCE_MS = 10_000
"""How long a foreign writer's lock is waited for."""

CACHE_KIB = 8192
"""Small on purpose: whenever a page was split, SQLite walks through its whole cache at the commit. With 64 MB that was
a third of every commit; what is not in the cache is in the system's, two microseconds away."""

MAPPED_BYTES = 1 << 40
"""So much of the file may be read where it lies in the system's memory: more than any file has."""

LOG_KEPT_BYTES = 48_000_000
"""What the log's file may keep of its size when it begins anew after a long reader."""

DISK_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.BusyError,
    apsw.CantOpenError,
)
"""What the disk, or whoever else uses the file, is to blame for."""


def open_connection(
    path: str,
    *,
    vfs: str | None = None,
    is_reader: bool = False,
    synchronous: str = "FULL",
    cache_kib: int = CACHE_KIB,
    is_mapped: bool = False,
) -> apsw.Connection:
    """A connection with the store's pragmas; readers cannot write. If the file `is_mapped` its pages are read without
    being copied, and a disk that cannot read one ends the process (SIGBUS) instead of raising an error."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SAFE_LIBRARY:
        raise UnsafeStoreError(f"SQLite {apsw.sqlite_lib_version()} is older than 3.51.3")
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE
    if not is_reader:
        flags |= apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(path, flags=flags, vfs=vfs, statementcachesize=200)
    # Else whatever compares a column with a parameter is prepared anew for every execution, at five times its cost.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.set_busy_timeout(BUSY_PATIENCE_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous)
    connection.pragma("journal_size_limit", LOG_KEPT_BYTES)
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("temp_store", "memory")
    if is_mapped:
        connection.pragma("mmap_size", MAPPED_BYTES)
    if is_reader:
        connection.pragma("query_only", 1)
    return connection


def migrate(connection: apsw.Connection, up_to: int | None = None) -> int:
    """Brings the file to the current schema, each step in its own transaction; answers the schema's number. `up_to`
    stops at an earlier one, for a backup that is to be restored into it."""
    current = int(connection.pragma("user_version"))
    steps = [step for step in migrations() if up_to is None or step[0] <= up_to]
    if current > steps[-1][0]:
        raise NewerSchemaError(f"the file has schema {current}, this version knows {steps[-1][0]}")
    for number, _, script in steps:
        if number > current:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(script)
            connection.pragma("user_version", number)
            connection.execute("COMMIT")
    return steps[-1][0]


class SqliteStatements:
    """Named queries on one connection; `count` says how many were run (a set of rows counts once). They answer at
    once: whoever awaits one never waits."""

    __slots__ = ("clock", "connection", "count")

    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self.count = 0

    async def moment(self) -> Instant:
        return self.clock.now()

    async def rows(self, name: str, *parameters: Any) -> list[Row]:
        self.count += 1
        return self.connection.execute(SQL[name], parameters).fetchall()

    async def one(self, name: str, *parameters: Any) -> Row | None:
        self.count += 1
        found = self.connection.execute(SQL[name], parameters).fetchall()
        return found[0] if found else None

    async def rows_for(self, name: str, asked: Sequence[tuple[Any, ...]], *parameters: Any) -> list[Row]:
        if not asked:
            return []
        self.count += 1
        return self.connection.execute(SQL[name], (_as_json(asked), *parameters)).fetchall()

    async def rows_for_people(self, name: str, asked: Sequence[Group], *parameters: Any) -> list[Row]:
        """One statement a group: a plain list of user ids is read in a third of the time that rows take."""
        given = [_encode(one).decode() if isinstance(one, list) else one for one in parameters]
        found: list[Row] = []
        before = 0
        for same, users in asked:
            self.count += 1
            parts = (_encode(users).decode(), before, *same, *given)
            found += self.connection.execute(SQL[name], parts).fetchall()
            before += len(users)
        return found

    async def run(self, name: str, *parameters: Any) -> int:
        """Answers how many rows changed."""
        self.count += 1
        self.connection.execute(SQL[name], parameters).fetchall()
        return self.connection.changes()

    async def has_changed(self, name: str, *parameters: Any) -> bool:
        return await self.run(name, *parameters) > 0

    async def change_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> int:
        before = self.connection.total_changes()
        await self.run_many(name, parameter_rows)
        return self.connection.total_changes() - before

    async def run_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> list[Row]:
        """The statement over a set of rows; answers what RETURNING gave."""
        if not parameter_rows:
            return []
        self.count += 1
        return self.connection.executemany(SQL[name], parameter_rows).fetchall()


def _as_json(rows: Sequence[tuple[Any, ...]]) -> str:
    """A set of rows as one JSON parameter; bytes become hexadecimal digits."""
    for place, value in enumerate(rows[0]):
        if isinstance(value, bytes):
            rows = [(*row[:place], row[place].hex(), *row[place + 1 :]) for row in rows]
    return _encode(rows).decode()


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that only awaits what answers at once, to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a turn on SQLite may await its statements only")
