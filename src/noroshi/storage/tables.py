"""Whole tables, as backing up, restoring and moving see them: described by the store itself, read in the order of their
keys, written in pages."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import Struct

from noroshi.domain.instants import Instant
from noroshi.storage.signs import PostgresSigns, SqliteSigns
from noroshi.storage.turns import Row

PAGE_ROWS = 2_000
PAGE_BYTES = 4_000_000

OF_THE_STORE = frozenset({"duties", "late_days", "marks", "migrations", "notification_senders", "person_locks"})
"""Tables that a store keeps for itself: they are made anew where its rows go."""

SEEDED = frozenset({"tenants"})
"""Tables that have rows in an empty store."""


class Table(Struct, frozen=True):
    """`key` is its primary key, the order in which its rows are read."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class TableSource(Protocol):
    """Where rows come from; all reads see the same moment."""

    @property
    def kind(self) -> str: ...

    async def schema(self) -> int:
        """The number of its last migration; 0: there is none."""
        ...

    async def list_tables(self) -> list[Table]: ...

    async def count(self, table: Table) -> int: ...

    def rows(self, table: Table, skip: int) -> AsyncIterator[Row]:
        """In the order of the key, without the first `skip`."""
        ...

    async def close(self) -> None: ...


class StoreTables(TableSource, Protocol):
    """The tables of a store, which can be written too."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What database, disk or network are to blame for."""
        ...

    async def moment(self) -> Instant: ...

    async def migrate(self, up_to: int | None = None) -> int: ...

    async def others(self) -> int:
        """How many other connections of Noroshi the database has, where it can tell."""
        ...

    async def signs(self) -> SqliteSigns | PostgresSigns: ...

    async def ask(self, name: str, *parameters: Any) -> list[Row]:
        """A named statement that reads."""
        ...

    async def commit(self, *statements: tuple[Any, ...]) -> None:
        """Named statements with their parameters, in one commit."""
        ...

    async def clear(self, table: Table) -> None: ...

    async def put(self, table: Table, rows: list[Row]) -> None:
        """In one commit."""
        ...

    async def finish(self) -> None:
        """After the last row: what the store keeps for itself is made from the rows."""
        ...


async def in_pages(rows: AsyncIterator[Row]) -> AsyncIterator[list[Row]]:
    """Pages that fit into memory however large their rows are."""
    page: list[Row] = []
    size = 0
    async for row in rows:
        page.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
        if len(page) >= PAGE_ROWS or size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
