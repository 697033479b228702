"""PostgresHistory: a moment in; the days that were over before it are dropped once nothing of them is unfinished."""

import structlog
from msgspec import Struct

from noroshi.domain.instants import Instant
from noroshi.storage.history import StoredHistory
from noroshi.storage.postgres.connection import LOST, connect, unavailable
from noroshi.storage.postgres.days import (
    TABLES,
    DayDropping,
    day_of,
    day_of_table,
    days_ahead,
    first_id,
    make_days_ahead,
)
from noroshi.storage.postgres.turns import PostgresReadings, PostgresTurns
from noroshi.storage.turns import Row, Statements, Turn

_log = structlog.get_logger(__name__)

_BEGINNING: Row = (0, b"", 0)


class _Days(Struct, frozen=True):
    """`are_torn`: somebody was interrupted amid making or dropping one."""

    present: set[int]
    are_torn: bool


async def _look(reader: Statements) -> tuple[Instant, _Days]:
    tables = await reader.rows("tables_of_days")
    present = {day_of_table(name) for name, _ in tables}
    is_paired = len(tables) == len(present) * len(TABLES)
    return await reader.moment(), _Days(present, not (is_paired and all(is_whole for _, is_whole in tables)))


class PostgresHistory(StoredHistory):
    """A day is dropped whole, which costs the same for a thousand rows and for a hundred million. What belongs to it
    in the tables that are not cut by day goes first, a page a turn."""

    def __init__(self, turns: PostgresTurns, readings: PostgresReadings, url: str) -> None:
        super().__init__(turns, readings)
        self._url = url
        self._odd: set[int] = set()

    async def make_ready(self) -> None:
        """Over a connection of its own, like dropping: what alters tables never takes one that accepting needs. Where
        nothing is to be made, as nearly always, there is none."""
        now, days = await self._readings.read(_look)
        if days_ahead(now) <= days.present and not days.are_torn:
            return
        connection = await connect(self._url)
        try:
            await make_days_ahead(connection, now)
        finally:
            await connection.close()

    async def forget_before(self, moment: Instant, limit: int) -> int:
        """Of several processes one does the work, and the others have nothing to do."""
        end = day_of(moment)
        _, days = await self._readings.read(_look)
        if not days.are_torn and not self._over(days.present, end):
            return await self._forget_former(days.present, end, limit)
        connection = await connect(self._url)
        try:
            dropping = DayDropping(connection)
            return await self._forget_days(dropping, end, limit) if await dropping.begin() else 0
        except LOST as error:
            raise unavailable(error) from error
        finally:
            await connection.close()

    async def _forget_days(self, dropping: DayDropping, end: int, limit: int) -> int:
        """The days before `end`, and what was left of days that are gone."""
        present = await dropping.days()
        went = await self._forget_former(present, end, limit)
        for day in self._over(present, end):
            went += await self._forget_day(dropping, day, limit)
        return went

    def _over(self, present: set[int], end: int) -> list[int]:
        return sorted(day for day in present if day < end and day not in self._odd)

    async def _forget_former(self, present: set[int], end: int, limit: int) -> int:
        """The batches of days that are gone."""
        return await self._forget_batches(b"", first_id(min([*present, end])), limit)

    async def _forget_day(self, dropping: DayDropping, day: int, limit: int) -> int:
        """Nothing new can come into a day without an undecided batch, except by the replay of a dead letter: once
        those are gone, what is finished stays so."""
        first, end = first_id(day), first_id(day + 1)
        if await self._is_unfinished(first, end):
            return 0
        while await self._turns.turn(
            "forget_letters", lambda turn: turn.run("forget_dead_letters_of_day", first, end, limit)
        ):
            pass
        if await self._is_unfinished(first, end):
            return 0
        row = await self._readings.read(lambda reader: reader.one("count_day", first, end))
        count, unfinished = row or (0, 0)
        if unfinished:  # nothing waits for these, so nothing will ever finish them: a person should look
            _log.error("day_kept", number=day, count=unfinished)
            self._odd.add(day)
            return 0
        await self._forget_message_ids(first, end, limit)
        count += await self._forget_batches(first, end, limit)
        await dropping.drop(day)
        return int(count)

    async def _is_unfinished(self, first: bytes, end: bytes) -> bool:
        row = await self._readings.read(lambda reader: reader.one("day_is_unfinished", first, end))
        return row is None or bool(row[0])

    async def _forget_message_ids(self, first: bytes, end: bytes, limit: int) -> None:
        place: Row | None = _BEGINNING
        while place is not None:
            place = await self._forget_message_page(first, end, place, limit)

    async def _forget_message_page(self, first: bytes, end: bytes, after: Row, limit: int) -> Row | None:
        return await self._turns.turn(
            "forget_message_ids",
            lambda turn: turn.one("forget_message_ids_of_day", first, end, *after, limit),
        )

    async def _forget_batches(self, first: bytes, end: bytes, limit: int) -> int:
        async def forget_page(turn: Turn) -> int:
            page = await turn.rows("batches_of_day", first, end, limit)
            for name in ("forget_batch_body", "forget_attachments", "forget_rejections", "forget_batch"):
                await turn.run_many(name, page)
            return len(page)

        went = 0
        while page := await self._turns.turn("forget_batches", forget_page):
            went += page
        return went
