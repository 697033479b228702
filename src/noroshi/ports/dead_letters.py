"""Dead letters: what ended without success, until a person replays or discards it."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.records import DeadLetter, DeadLetterFilter


class DeadLetters(Protocol):
    async def list_dead_letters(
        self, tenant: TenantId, matching: DeadLetterFilter, before: int | None, limit: int
    ) -> list[DeadLetter]:
        """Newest first, with ids below `before`."""
        ...

    async def get(self, tenant: TenantId, dead_letter_id: int) -> DeadLetter | None:
        """With its trail."""
        ...

    async def replay(
        self, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int
    ) -> tuple[int, int]:
        """Queues up to `limit` again with fresh tries (DEAD_LETTERED to QUEUED); (replayed, left untouched because
        they can have no delivery: nothing to send to, or no template)."""
        ...

    async def discard(self, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int) -> int:
        """Forgets up to `limit`; the notifications stay DEAD_LETTERED."""
        ...
