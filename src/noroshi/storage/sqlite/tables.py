"""SqliteTables: a file in, its whole tables out, and rows back in."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw

from noroshi.domain.instants import Instant
from noroshi.ports.clock import Clock
from noroshi.storage.signs import SqliteSigns
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.sql import SQL
from noroshi.storage.tables import OF_THE_STORE, Table
from noroshi.storage.turns import Row

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


class SqliteTables:
    """Implements storage/tables.py StoreTables. As a reader it sees one moment, whatever is written meanwhile."""

    kind = "sqlite"
    failures: tuple[type[Exception], ...] = (apsw.Error,)

    def __init__(self, path: str, clock: Clock, *, is_reader: bool) -> None:
        self._path = path
        self._clock = clock
        self._connection = open_connection(path, is_reader=is_reader)
        if is_reader:
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_master").fetchall()  # the view begins with the first read

    async def close(self) -> None:
        self._connection.close()

    async def moment(self) -> Instant:
        return self._clock.now()

    async def schema(self) -> int:
        return int(self._connection.pragma("user_version"))

    async def migrate(self, up_to: int | None = None) -> int:
        return migrate(self._connection, up_to)

    async def others(self) -> int:
        """The lock on the data folder keeps others out."""
        return 0

    async def signs(self) -> SqliteSigns:
        return SqliteSigns(
            library=apsw.sqlite_lib_version(),
            file_bytes=_bytes_of(self._path),
            log_bytes=_bytes_of(f"{self._path}-wal"),
            journal_mode=str(self._connection.pragma("journal_mode")),
        )

    async def list_tables(self) -> list[Table]:
        names = [str(name) for (name,) in self._connection.execute(_TABLES) if name not in OF_THE_STORE]
        return [self._describe(name) for name in names]

    def _describe(self, name: str) -> Table:
        columns: list[Row] = self._connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        key = sorted((place, column) for column, place in columns if place)
        return Table(name, tuple(column for column, _ in columns), tuple(column for _, column in key))

    async def count(self, table: Table) -> int:
        rows: list[Row] = self._connection.execute(f"SELECT count(*) FROM {table.name}").fetchall()  # noqa: S608
        return int(rows[0][0])

    async def rows(self, table: Table, skip: int) -> AsyncIterator[Row]:
        columns, key = ", ".join(table.columns), ", ".join(table.key)
        found = self._connection.execute(
            f"SELECT {columns} FROM {table.name} ORDER BY {key} LIMIT -1 OFFSET ?",  # noqa: S608
            (skip,),
        )
        for row in found:
            yield row

    async def ask(self, name: str, *parameters: Any) -> list[Row]:
        return self._connection.execute(SQL[name], parameters).fetchall()

    async def commit(self, *statements: tuple[Any, ...]) -> None:
        with self._connection:
            for name, *parameters in statements:
                self._connection.execute(SQL[name], parameters).fetchall()

    async def clear(self, table: Table) -> None:
        self._connection.execute(f"DELETE FROM {table.name}")  # noqa: S608

    async def put(self, table: Table, rows: list[Row]) -> None:
        columns, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
        with self._connection:
            self._connection.executemany(
                f"INSERT INTO {table.name} ({columns}) VALUES ({marks})",  # noqa: S608
                rows,
            ).fetchall()

    async def finish(self) -> None:
        """Moves the log into the file."""
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _bytes_of(path: str) -> int:
    there = Path(path)
    return there.stat().st_size if there.exists() else 0
