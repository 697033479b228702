"""What was attached to batches: kept once for all recipients, and read by who sends it or looks at it."""

from typing import Protocol

from noroshi.domain.ids import BatchId, TenantId


class Attachments(Protocol):
    async def contents(self, tenant: TenantId, batch_id: BatchId) -> list[bytes]:
        """In the order of the batch's attachments; none, if it has none or is forgotten."""
        ...
