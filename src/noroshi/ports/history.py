"""History: what was decided and what happened, for whoever asks why."""

from typing import Protocol

from noroshi.domain.batches import BatchSummary
from noroshi.domain.ids import BatchId, NotificationId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.records import NotificationView


class History(Protocol):
    async def of_batch(
        self, tenant: TenantId, batch_id: BatchId, after: NotificationId | None, limit: int
    ) -> list[NotificationView]:
        """Notifications of a batch in order of their ids, each with its trail."""
        ...

    async def of_user(
        self, tenant: TenantId, user_id: str, before: tuple[Instant, NotificationId] | None, limit: int
    ) -> list[NotificationView]:
        """Newest first, with their trails."""
        ...

    async def find(self, tenant: TenantId, notification_id: NotificationId) -> NotificationView | None:
        """One notification with its trail."""
        ...

    async def list_batches(
        self, tenant: TenantId, before: BatchId | None, after: BatchId | None, limit: int
    ) -> list[BatchSummary]:
        """Newest first, with ids below `before` and above `after`."""
        ...

    async def has_user(self, tenant: TenantId, user_id: str) -> bool: ...

    async def make_ready(self) -> None:
        """Makes what the coming days need; called again and again, does nothing if all is there."""
        ...

    async def forget_before(self, moment: Instant, limit: int) -> int:
        """Removes finished notifications accepted before `moment`, with their ledger, and the batches that are left
        empty, at most `limit` rows a commit; answers how many notifications and batches went, and fewer than `limit`
        only if nothing is left to remove for now. A store that keeps days apart may wait until the day is over, and
        keep a day until all of it is finished."""
        ...
