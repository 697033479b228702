"""StoredMarks: what the store says of itself."""

from noroshi.domain.marks import Mark
from noroshi.storage.turns import Readings, Turns


class StoredMarks:
    """Implements ports/marks.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def read(self) -> dict[Mark, str]:
        rows = await self._readings.read(lambda reader: reader.rows("read_marks"))
        return {Mark(name): value for name, value, _ in rows}

    async def put(self, mark: Mark, value: str) -> None:
        await self._turns.turn("put_mark", lambda turn: turn.run("put_mark", mark, value, turn.now))

    async def remove(self, mark: Mark) -> None:
        await self._turns.turn("remove_mark", lambda turn: turn.run("remove_mark", mark))
