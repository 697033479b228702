"""Batches over the API: the list of them, newest first, each with its sums where counting is cheap."""

from typing import Annotated

from msgspec import Meta, Struct

from noroshi.domain.batches import BatchSummary
from noroshi.domain.ids import BatchId, read, show
from noroshi.domain.instants import iso
from noroshi.domain.problems import ProblemError
from noroshi.domain.sums import sum_up
from noroshi.entrypoints.api.calls import Call
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.notifications import BatchStatus, status_of
from noroshi.entrypoints.api.paging import IdBytes, Page, PageQuery, page_of, place_in
from noroshi.entrypoints.api.wire import IdText, Moment, when

AfterId = Annotated[str, Meta(extra_json_schema={"format": "uuid"}, description="Only batches with a greater id.")]


class BatchQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    after: AfterId | None = None


class SumsItem(Struct, frozen=True):
    """As in the status of a batch: in notifications, adding up to total."""

    total: int
    delivered: int
    failed: int
    pending: int
    suppressed: int
    cancelled: int


class BatchItem(Struct, frozen=True):
    """A batch in a list. `sums` is null for one with over a hundred notifications: its status route counts them."""

    batch_id: IdText
    template_id: str
    channels: list[str]
    priority: str
    category: str
    status: BatchStatus
    created_at: Moment
    created_by: str
    scheduled_at: Moment | None
    cancelled_at: Moment | None
    total_recipients: int
    accepted: int
    rejected: int
    undecided: int
    sums: SumsItem | None


async def list_batches(desk: Desk, call: Call[BatchQuery, None]) -> Page[BatchItem]:
    before = place_in(call.query.cursor, IdBytes)
    batches = await desk.history.list_batches(
        call.tenant, None if before is None else BatchId(before), _after(call.query), call.query.limit + 1
    )
    return page_of(batches, call.query, lambda batch: batch.head.batch_id, lambda batch: _show(desk, batch))


def _after(query: BatchQuery) -> BatchId | None:
    if query.after is None:
        return None
    raw = read(query.after)
    if raw is None:
        raise ProblemError("bad_field", "Expected a batch id (a UUID).", field="after")
    return BatchId(raw)


def _show(desk: Desk, batch: BatchSummary) -> BatchItem:
    head, progress = batch.head, batch.progress
    return BatchItem(
        batch_id=show(head.batch_id),
        template_id=head.template_id,
        channels=list(head.channels),
        priority=head.priority,
        category=head.category,
        status=status_of(head, progress, batch.cancelled_at, desk.clock.now()),
        created_at=iso(head.created_at),
        created_by=head.created_by,
        scheduled_at=iso(head.due_at) if progress.is_scheduled else None,
        cancelled_at=when(batch.cancelled_at),
        total_recipients=progress.total,
        accepted=progress.accepted,
        rejected=progress.rejected,
        undecided=progress.undecided,
        sums=_sums(desk, batch),
    )


def _sums(desk: Desk, batch: BatchSummary) -> SumsItem | None:
    if batch.counts is None:
        return None
    sums = sum_up(batch.counts, desk.reporting_channels)
    return SumsItem(sums.total, sums.delivered, sums.failed, sums.pending, sums.suppressed, sums.cancelled)
