"""Doubts: what a restored store must not send by itself, until an operator has decided (W31)."""

from typing import Protocol

from noroshi.domain.doubts import Doubts
from noroshi.domain.instants import Instant
from noroshi.domain.marks import Restored


class RestoredDoubts(Protocol):
    async def review(self, restored: Restored) -> Doubts: ...

    async def discard_due(self, restored: Restored, before: Instant, limit: int) -> int:
        """Withdraws up to `limit` of what came with the backup and was being sent or was due before that time, with
        the record of it; answers how many, 0 when nothing is left."""
        ...

    async def resume(self, by: str, *, with_requests: bool) -> None:
        """Ends the pauses that the restore set, and the restored mode. Requests that waited when the backup was taken
        wait again, or stay dead for a person to retry."""
        ...
