"""Connections: a file's path in, a configured apsw connection at the current schema out."""

from collections.abc import Sequence
from typing import Any

import apsw

from noroshi.storage.sqlite.sql import SQL, migrations

OLDEST_SAFE_LIBRARY = (3, 51, 3)
"""Older ones can corrupt a WAL database when a checkpoint races a reset."""

BUSY_PATIENCE_MS = 10_000
"""How long a foreign writer's lock is waited for."""

LOG_KEPT_BYTES = 64_000_000
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

Row = tuple[Any, ...]


class UnsafeLibraryError(RuntimeError):
    """The SQLite library has a known corruption bug."""


class NewerSchemaError(RuntimeError):
    """The file was written by a newer version of Noroshi."""


def open_connection(
    path: str, *, vfs: str | None = None, is_reader: bool = False, synchronous: str = "FULL", cache_kib: int = 65536
) -> apsw.Connection:
    """A connection with the store's pragmas; readers cannot write."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SAFE_LIBRARY:
        raise UnsafeLibraryError(f"SQLite {apsw.sqlite_lib_version()} is older than 3.51.3")
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE
    if not is_reader:
        flags |= apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(path, flags=flags, vfs=vfs, statementcachesize=200)
    connection.set_busy_timeout(BUSY_PATIENCE_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous)
    connection.pragma("journal_size_limit", LOG_KEPT_BYTES)
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("temp_store", "memory")
    if is_reader:
        connection.pragma("query_only", 1)
    return connection


def migrate(connection: apsw.Connection) -> int:
    """Brings the file to the current schema, each step in its own transaction; answers the schema's number."""
    current = int(connection.pragma("user_version"))
    steps = migrations()
    if current > steps[-1][0]:
        raise NewerSchemaError(f"the file has schema {current}, this version knows {steps[-1][0]}")
    for number, _, script in steps:
        if number > current:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(script)
            connection.pragma("user_version", number)
            connection.execute("COMMIT")
    return steps[-1][0]


class Statements:
    """Named queries on one connection; `count` says how many were run (a set of rows counts once)."""

    __slots__ = ("connection", "count")

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.count = 0

    def rows(self, name: str, *parameters: Any) -> list[Row]:
        self.count += 1
        return self.connection.execute(SQL[name], parameters).fetchall()

    def one(self, name: str, *parameters: Any) -> Row | None:
        found = self.rows(name, *parameters)
        return found[0] if found else None

    def run(self, name: str, *parameters: Any) -> int:
        """Answers how many rows changed."""
        self.count += 1
        self.connection.execute(SQL[name], parameters).fetchall()
        return self.connection.changes()

    def run_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> list[Row]:
        """The statement over a set of rows; answers what RETURNING gave."""
        if not parameter_rows:
            return []
        self.count += 1
        return self.connection.executemany(SQL[name], parameter_rows).fetchall()
