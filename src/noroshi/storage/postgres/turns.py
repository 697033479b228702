"""Turns and readings on PostgreSQL: work in, done in one transaction on one connection; its answer after the commit."""

from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any, TypeVar

import asyncpg

from noroshi.domain.instants import Instant
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.meter import Meter
from noroshi.storage.postgres.connection import LOST, SCHEMA, Connection, Pool, unavailable
from noroshi.storage.postgres.days import day_of_id, make_days
from noroshi.storage.postgres.sql import COPIES, SQL
from noroshi.storage.turns import Group, Row, Statements, Turn

T = TypeVar("T")

_MOST_TRIES = 5
_BETWEEN_IDS = "\x1f"
"""Nobody's id holds a control character: they are refused wherever ids come in."""

_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.UniqueViolationError)
"""Two processes wanted the same at once: the turn is taken again, and then sees what the other did."""


class _UnlockableError(Exception):
    """The locks of some of these people are missing. They are made in a commit of their own, before the turn is taken
    again: all locks of a turn are taken in order."""

    def __init__(self, people: Sequence[Group]) -> None:
        super().__init__("the locks of some people are missing")
        self.people = people


class PostgresStatements:
    """Named statements on one connection."""

    __slots__ = ("_clock", "connection", "count")

    def __init__(self, connection: Connection, clock: Clock | None) -> None:
        self.connection = connection
        self.count = 0
        self._clock = clock

    async def moment(self) -> Instant:
        """By the database, or in a test by its clock."""
        if self._clock is None:
            return Instant(await self.connection.fetchval("SELECT noroshi_now()"))
        now = self._clock.now()
        await self.connection.fetchval("SELECT set_config('noroshi.now', $1, true)", str(now))
        return now

    async def rows(self, name: str, *parameters: Any) -> list[Row]:
        self.count += 1
        found: list[Row] = await self.connection.fetch(SQL[name], *parameters)
        return found

    async def one(self, name: str, *parameters: Any) -> Row | None:
        self.count += 1
        found: Row | None = await self.connection.fetchrow(SQL[name], *parameters)
        return found

    async def rows_for(self, name: str, asked: Sequence[tuple[Any, ...]], *parameters: Any) -> list[Row]:
        if not asked:
            return []
        return await self.rows(name, *zip(*asked, strict=True), *parameters)

    async def rows_for_people(self, name: str, asked: Sequence[Group], *parameters: Any) -> list[Row]:
        """The user ids of a group go as one text, and how many people stand before the group as the last column: to
        send every id as a value of its own costs as much as deciding about it."""
        if not asked:
            return []
        joined: list[tuple[Any, ...]] = []
        before = 0
        for same, users in asked:
            joined.append((*same, _BETWEEN_IDS.join(users), before))
            before += len(users)
        return await self.rows_for(name, joined, *parameters)


class PostgresTurn(PostgresStatements):
    """Statements that write, inside a transaction."""

    __slots__ = ("_numbers", "now")

    def __init__(self, connection: Connection, clock: Clock | None, numbers: "Numbers") -> None:
        super().__init__(connection, clock)
        self.now = Instant(0)
        self._numbers = numbers

    async def begin(self) -> None:
        await self.connection.execute("BEGIN")
        self.now = await self.moment()

    async def lock_people(self, people: Sequence[Group]) -> None:
        ((asked, locked),) = await self.rows_for_people("lock_people", people)
        if locked < asked:
            raise _UnlockableError(people)

    async def run(self, name: str, *parameters: Any) -> int:
        self.count += 1
        status: str = await self.connection.execute(SQL[name], *parameters)
        return int(status.rpartition(" ")[2])

    async def change_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> int:
        return await self.run(name, *zip(*parameter_rows, strict=True)) if parameter_rows else 0

    async def has_changed(self, name: str, *parameters: Any) -> bool:
        return await self.run(name, *parameters) > 0

    async def run_many(self, name: str, parameter_rows: Sequence[Sequence[Any]]) -> list[Row]:
        if not parameter_rows:
            return []
        self.count += 1
        if name in COPIES:
            table, columns = COPIES[name]
            await self.connection.copy_records_to_table(
                table, records=parameter_rows, columns=columns, schema_name=SCHEMA
            )
            return []
        found: list[Row] = await self.connection.fetch(SQL[name], *zip(*parameter_rows, strict=True))
        return found

    def next_number(self, how_many: int = 1) -> int:
        """By the database's time: two processes that count in the same microsecond meet only where the statement
        has a number of its own to give."""
        return self._numbers.take(how_many, self.now)


class Numbers:
    """Rising numbers of one process, in the order of time."""

    def __init__(self) -> None:
        self._last = 0

    def take(self, how_many: int, now: Instant) -> int:
        first = max(self._last + 1, now)
        self._last = first + how_many - 1
        return first


class PostgresTurns:
    """Implements storage/turns.py Turns: each turn is a transaction of its own."""

    def __init__(self, pool: Pool, clock: Clock | None, meter: Meter, crash_points: CrashPoints) -> None:
        self._pool = pool
        self._clock = clock
        self._meter = meter
        self._crash_points = crash_points
        self._numbers = Numbers()

    async def turn(
        self,
        name: str,
        work: Callable[[Turn], Coroutine[Any, Any, T]],
        *,
        is_urgent: bool = False,  # noqa: ARG002 - turns run side by side: there is no line to jump
    ) -> T:
        try:
            return await self._take_until_done(name, work)
        except LOST as error:
            raise unavailable(error) from error

    async def _take_until_done(self, name: str, work: Callable[[Turn], Coroutine[Any, Any, T]]) -> T:
        """Taken again after another was in the way, and after what it needs was made."""
        tries = 0
        while True:
            tries += 1
            try:
                async with self._pool.borrow() as connection:
                    return await self._take(connection, name, work)
            except _AGAIN as error:
                if tries >= _MOST_TRIES:
                    raise
                self._meter.count("store_turns_again_total", error=type(error).__name__)
            except asyncpg.CheckViolationError as missing:
                if tries >= _MOST_TRIES or not await self._make_day(missing):
                    raise
            except _UnlockableError as missing:
                if tries >= _MOST_TRIES:
                    raise
                await self._make_locks(missing.people)

    async def _take(self, connection: Connection, name: str, work: Callable[[Turn], Coroutine[Any, Any, T]]) -> T:
        started = perf_counter()
        try:
            turn = PostgresTurn(connection, self._clock, self._numbers)
            await turn.begin()
            result = await work(turn)
            self._crash_points.reach(f"commit.{name}.before")
            await connection.execute("COMMIT")
        except GeneratorExit:  # the loop is gone: nobody can be asked any more
            raise
        except BaseException:  # also whoever is cancelled hands back a connection without a transaction
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        self._crash_points.reach(f"commit.{name}.after")
        self._meter.observe("store_commit_seconds", perf_counter() - started)
        return result

    async def _make_locks(self, people: Sequence[Group]) -> None:
        async with self._pool.borrow() as connection:
            await PostgresStatements(connection, self._clock).rows_for_people("put_person_locks", people)

    async def _make_day(self, missing: asyncpg.CheckViolationError) -> bool:
        """A row for a day that nobody has made: the detail names its id."""
        detail = missing.detail or ""
        _, _, digits = detail.partition("(notification_id) = (\\x")
        if not digits:
            return False
        async with self._pool.borrow() as connection:
            await make_days(connection, {day_of_id(bytes.fromhex(digits[:12]))})
        return True


class PostgresReadings:
    """Implements storage/turns.py Readings: one snapshot a reading."""

    def __init__(self, pool: Pool, clock: Clock | None) -> None:
        self._pool = pool
        self._clock = clock

    async def read(
        self,
        question: Callable[[Statements], Coroutine[Any, Any, T]],
        *,
        is_brief: bool = False,  # noqa: ARG002 - nothing here waits for anything else
    ) -> T:
        try:
            async with self._pool.borrow() as connection:
                is_loop_gone = False
                try:
                    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    return await question(PostgresStatements(connection, self._clock))
                except GeneratorExit:
                    is_loop_gone = True
                    raise
                finally:
                    if not (is_loop_gone or connection.is_closed()):
                        await connection.execute("COMMIT")
        except LOST as error:
            raise unavailable(error) from error
