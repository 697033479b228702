"""Batches: keeping what was accepted, and deciding it slice by slice."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from noroshi.domain.addressing import SliceChanges, SliceFacts
from noroshi.domain.batches import BatchView, Earlier, NewBatch, Progress, Rejection
from noroshi.domain.ids import BatchId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.records import StatusCounts
from noroshi.ports.requests import PrepareEnqueued

Decide = Callable[[SliceFacts], SliceChanges]


class Turn(Struct):
    """What one turn did. `earlier` stands beside each new batch: None if it was kept. `progress` tells how far
    every batch touched in this turn is decided (rejections: those of this turn only). `noes` counts what was not
    queued, by (channel, reason), and `dead` what was dead-lettered, by (lane, code). `has_more`: something is due and
    undecided; `next_due_at`: when the next waiting batch or hold falls due. `enqueued` are the batches that enqueued
    requests became, `refused` counts those that died, by code; `has_more_enqueued`: more of them wait."""

    earlier: list[Earlier | None] = field(default_factory=list)
    progress: dict[BatchId, Progress] = field(default_factory=dict)
    lanes: set[Lane] = field(default_factory=set)
    deliveries: int = 0
    noes: dict[tuple[str, str], int] = field(default_factory=dict)
    dead: dict[tuple[Lane, str], int] = field(default_factory=dict)
    decided: int = 0
    has_more: bool = False
    next_due_at: Instant | None = None
    enqueued: list[NewBatch] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    has_more_enqueued: bool = False


class Batches(Protocol):
    async def keep(
        self,
        new: Sequence[NewBatch],
        room: int,
        decide: Decide,
        *,
        is_urgent: bool = False,
        is_beside: bool = False,
        prepare: PrepareEnqueued | None = None,
    ) -> Turn:
        """One turn, one commit: keeps the new batches with their idempotency keys, takes up to `room` recipients
        mixed from all batches and holds that are due, has them decided, and writes what was decided. With `prepare`
        enqueued requests are taken, too: each becomes a batch of this commit, or dead. A turn taken `is_beside` others
        leaves them half of the batches that are due."""
        ...

    async def find(self, tenant: TenantId, batch_id: BatchId) -> BatchView | None: ...

    async def counts(self, tenant: TenantId, batch_id: BatchId) -> StatusCounts | None: ...

    async def rejections(
        self, tenant: TenantId, batch_id: BatchId, after: int, limit: int
    ) -> list[tuple[int, Rejection]]:
        """(position, rejection) of recipients after position `after`."""
        ...

    async def remember_answer(
        self, tenant: TenantId, batch_id: BatchId, encode: Callable[[Progress], bytes]
    ) -> bytes | None:
        """The answer that was kept first; else one for how far the batch is decided now (with its first 101
        rejections), which is kept while anything is undecided. None: no such batch."""
        ...

    async def begin_cancel(self, tenant: TenantId, batch_id: BatchId) -> bool:
        """Marks the batch withdrawn: nothing more of it is decided or claimed. False if there is no such batch."""
        ...

    async def cancel_page(self, limit: int) -> int:
        """Withdraws up to `limit` unsent notifications of batches being cancelled; 0 when nothing is left."""
        ...

    async def forget_keys(self, limit: int) -> int:
        """Removes up to `limit` idempotency keys that are older than a day; answers how many."""
        ...
