"""Requests that callers enqueued in their own transactions: found by their state, never by their place in time (W6)."""

from collections.abc import Callable
from typing import Protocol

from noroshi.domain.batches import NewBatch
from noroshi.domain.enqueued import Enqueued, EnqueuedView, RequestState
from noroshi.domain.ids import RequestId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.requests import NotificationRequest

PrepareEnqueued = Callable[[Enqueued, NotificationRequest, tuple[str, ...], Instant], NewBatch]
"""(whose, what, the template's channels, now) in, the batch that it becomes out; a ProblemError makes it dead."""


class Requests(Protocol):
    """They are taken by `Batches.keep`, in the commit that keeps their batches."""

    async def oldest_waiting(self) -> Instant | None:
        """When the oldest waiting request was enqueued; None: nothing waits. Asked often, and cheap."""
        ...

    async def list_requests(
        self, tenant: TenantId, state: RequestState | None, before: RequestId | None, limit: int
    ) -> list[EnqueuedView]:
        """Newest first, with ids below `before`."""
        ...

    async def find(self, tenant: TenantId, request_id: RequestId) -> EnqueuedView | None: ...

    async def retry(self, tenant: TenantId, request_id: RequestId) -> bool:
        """A dead request waits again. False: there is no dead request of this id."""
        ...

    async def forget(self, keys_before: Instant, before: Instant, limit: int) -> int:
        """Of requests that no longer wait, frees the keys of those enqueued before `keys_before` and removes those
        enqueued before `before`, up to `limit` of each; answers how many were touched."""
        ...
