"""What the tables' logic asks of a database: named statements, in a turn that commits, or in a reading that does not.

The logic in this folder is written once, with `await`; each store answers in its own way. SQLite answers at once,
where its writer works; PostgreSQL answers over a connection. What differs is said in SQL: each store has a file of
statements with the same names.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from noroshi.domain.instants import Instant

T = TypeVar("T")

Row = tuple[Any, ...]
Group = tuple[tuple[Any, ...], list[str]]
"""What is the same for a group of people, and their user ids."""


class Statements(Protocol):
    """Named statements inside one consistent view."""

    async def moment(self) -> Instant:
        """The store's own now: that of the database where many processes share it."""
        ...

    async def rows(self, name: str, *parameters: Any) -> list[Row]: ...

    async def one(self, name: str, *parameters: Any) -> Row | None: ...

    async def rows_for(self, name: str, asked: Sequence[tuple[Any, ...]], *parameters: Any) -> list[Row]:
        """The statement asked about a set of rows at once (its columns come first, then the parameters). An empty
        set gives no rows."""
        ...

    async def rows_for_people(self, name: str, asked: Sequence[Group], *parameters: Any) -> list[Row]:
        """The same for many people, in groups of whom everything but the user id is the same. The statement knows each
        by their place among all of them, and lists may be among its parameters."""
        ...


class Turn(Statements, Protocol):
    """Statements that write, inside a transaction."""

    @property
    def now(self) -> Instant: ...

    async def lock_people(self, people: Sequence[Group]) -> None:
        """Nobody else decides about these people before our commit; what is read from here on is what those before us
        have left. Asked once a turn: locks are taken in order."""
        ...

    async def run(self, name: str, *parameters: Any) -> int:
        """Answers how many rows changed."""
        ...

    async def has_changed(self, name: str, *parameters: Any) -> bool:
        """Whether the statement changed anything."""
        ...

    async def change_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> int:
        """The statement over a set of rows; answers how many it changed."""
        ...

    async def run_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> list[Row]:
        """The statement over a set of rows; answers what RETURNING gave, in any order."""
        ...

    def next_number(self, how_many: int = 1) -> int:
        """The first of `how_many` numbers never given before, in the order of time: fences, ledger places, ids."""
        ...


class Turns(Protocol):
    async def turn(self, name: str, work: Callable[[Turn], Coroutine[Any, Any, T]], *, is_urgent: bool = False) -> T:
        """Does the work in a transaction; answers after its commit. `name` is its crash point. Urgent turns go
        first."""
        ...


class Readings(Protocol):
    async def read(self, question: Callable[[Statements], Coroutine[Any, Any, T]], *, is_brief: bool = False) -> T:
        """The answer from one view of what is committed. A brief question takes no longer than a turn may."""
        ...


def as_instant(value: Any) -> Instant | None:
    return None if value is None else Instant(value)
