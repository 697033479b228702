"""What the catcher kept, for the developer to look at."""

from collections.abc import Sequence
from typing import Protocol

from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import TenantId
from noroshi.domain.records import CaughtMessage


class Caught(Protocol):
    async def keep_caught(self, attempts: Sequence[Attempt]) -> None:
        """Keeps messages, the latest 10,000 of a tenant."""
        ...

    async def list_caught(
        self,
        tenant: TenantId,
        channel: str | None,
        user_id: str | None,
        before: int | None,
        limit: int,
        *,
        after: int = 0,
    ) -> list[CaughtMessage]:
        """Newest first, with ids below `before` and above `after`."""
        ...
