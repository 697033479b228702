"""Duties on PostgreSQL: a process asks for one, and has it for a while if nobody else does."""

from datetime import timedelta

import structlog

from noroshi.domain.instants import plus
from noroshi.storage.postgres.connection import LOST, Pool, end_silent, unavailable
from noroshi.storage.turns import Turn, Turns

_log = structlog.get_logger(__name__)


class PostgresDuties:
    """Implements ports/duties.py by a row a duty, leased by the database's time: a lock that a frozen process held
    would be held for as long as it stands still. `holder` names this process. Whoever asks first makes sure that no
    such process holds anything else, this row included."""

    def __init__(self, turns: Turns, pool: Pool, holder: str) -> None:
        self._turns = turns
        self._pool = pool
        self._holder = holder

    async def take(self, duty: str, span: timedelta) -> bool:
        await self._end_silent()

        async def work(turn: Turn) -> bool:
            return await turn.has_changed("take_duty", duty, self._holder, plus(turn.now, span), turn.now)

        return await self._turns.turn("take_duty", work)

    async def _end_silent(self) -> None:
        try:
            async with self._pool.borrow() as connection:
                ended = await end_silent(connection)
        except LOST as error:
            raise unavailable(error) from error
        if ended:
            _log.warning("silent_sessions_ended", count=ended)
