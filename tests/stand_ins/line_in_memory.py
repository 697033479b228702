"""LINE without a process, for virtual time: it honours retry keys for a day, and its ledger tells what people got."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from msgspec import Struct

from noroshi.domain.instants import Instant, plus
from noroshi.domain.line import LineAnswer
from noroshi.ports.clock import Clock

KEYS_KEPT = timedelta(hours=24)
MONTHLY_LIMIT = LineAnswer(429, '{"message":"You have reached your monthly limit."}')

Conduct = Callable[[str], LineAnswer | None]
"""What is answered instead to a push to somebody; None: as usual."""


class Taken(Struct, frozen=True):
    at: Instant
    to: str
    text: str
    key: UUID


class LineInMemory:
    """Implements ports/line.py. `is_taking`: a push that is answered by the conduct is taken all the same."""

    def __init__(self, clock: Clock) -> None:
        self.taken: list[Taken] = []
        self.pushes = 0
        self.conduct: Conduct = lambda _to: None
        self.is_taking = False
        self.knows_keys = True
        self.answers_after = timedelta(milliseconds=20)
        self._clock = clock

    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        self.pushes += 1
        other = self.conduct(to)
        if other is not None and not self.is_taking:
            await self._clock.sleep(self.answers_after)
            return other
        answer = self._take(to, text, retry_key)
        await self._clock.sleep(self.answers_after)
        return other or answer

    def _take(self, to: str, text: str, key: UUID) -> LineAnswer:
        """Before it answers: whoever dies while waiting for the answer has sent it."""
        now = self._clock.now()
        if self.knows_keys and any(one.key == key and plus(one.at, KEYS_KEPT) > now for one in self.taken):
            return LineAnswer(409, '{"message":"The retry key is already accepted"}')
        self.taken.append(Taken(now, to, text, key))
        return LineAnswer(200, '{"sentMessages":[]}')
