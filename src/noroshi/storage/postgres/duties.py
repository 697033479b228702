"""Duties on PostgreSQL: a process asks for one, and has it for a while if nobody else does."""

from datetime import timedelta

from noroshi.domain.instants import plus
from noroshi.storage.turns import Turn, Turns


class PostgresDuties:
    """Implements ports/duties.py by a row a duty, leased by the database's time: a lock that a frozen process held
    would be held for as long as it stands still. `holder` names this process."""

    def __init__(self, turns: Turns, holder: str) -> None:
        self._turns = turns
        self._holder = holder

    async def take(self, duty: str, span: timedelta) -> bool:
        async def work(turn: Turn) -> bool:
            return await turn.has_changed("take_duty", duty, self._holder, plus(turn.now, span), turn.now)

        return await self._turns.turn("take_duty", work)
