"""Notifications over the API: requests in; the answer, the batch and what became of it out."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from noroshi.domain.batches import BatchHead, Progress, Rejection
from noroshi.domain.ids import NotificationId, show
from noroshi.domain.instants import Instant, iso
from noroshi.domain.requests import AcceptedAnswer, NotificationRequest, RejectionText
from noroshi.domain.sums import sum_up, undecided_notifications
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import IdBytes, Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import (
    AttachmentItem,
    IdText,
    Moment,
    NotificationItem,
    show_attachments,
    show_notification,
    when,
)

BatchStatus = Annotated[str, Meta(extra_json_schema={"enum": ["queued", "processing", "scheduled", "cancelled"]})]


class BatchAnswer(Struct, frozen=True):
    """A batch and a page of its notifications, each with the trail of decisions that explains it. `due_at` is
    `scheduled_at`, or when it was accepted; the counts are in recipients."""

    batch_id: IdText
    template_id: str
    channels: list[str]
    priority: str
    category: str
    digest_key: str | None
    status: BatchStatus
    created_at: Moment
    created_by: str
    scheduled_at: Moment | None
    due_at: Moment
    expires_at: Moment | None
    cancelled_at: Moment | None
    total_recipients: int
    accepted: int
    rejected: int
    undecided: int
    reasons: dict[str, int]
    attachments: list[AttachmentItem]
    items: list[NotificationItem]
    next_cursor: str | None


class StatusAnswer(Struct, frozen=True):
    """In notifications (user x channel); delivered, failed, pending, suppressed and cancelled add up to total.
    delivery_rate = delivered / max(total, 1). SENT counts as delivered where the channel's provider never reports
    delivery; `statuses` stays raw. What is not yet decided is `undecided`, at most one for each channel of each
    recipient, and is counted as pending (cancelled, if the batch was)."""

    batch_id: IdText
    total: int
    delivered: int
    failed: int
    pending: int
    suppressed: int
    cancelled: int
    undecided: int
    delivery_rate: float
    statuses: dict[str, int]


class CancelAnswer(Struct, frozen=True):
    """`cancelled` counts the notifications withdrawn by this call; what was sent before stays sent."""

    batch_id: IdText
    cancelled: int


async def accept_notifications(desk: Desk, call: Call[NoQuery, NotificationRequest]) -> AcceptedAnswer:
    return await desk.accept(call.caller, call.body, call.idempotency_key)


async def show_batch(desk: Desk, call: Call[PageQuery, None]) -> BatchAnswer:
    after = place_in(call.query.cursor, IdBytes)
    batch = await desk.batches.find(call.tenant, call.batch_id)
    if batch is None:
        raise missing("batch")
    last_seen = None if after is None else NotificationId(after)
    views = await desk.history.of_batch(call.tenant, call.batch_id, last_seen, call.query.limit + 1)
    page = page_of(views, call.query, lambda view: view.notification_id, show_notification)
    head, progress = batch.head, batch.progress
    return BatchAnswer(
        batch_id=show(head.batch_id),
        template_id=head.template_id,
        channels=list(head.channels),
        priority=head.priority,
        category=head.category,
        digest_key=head.digest_key,
        status=status_of(head, progress, batch.cancelled_at, desk.clock.now()),
        created_at=iso(head.created_at),
        created_by=head.created_by,
        scheduled_at=iso(head.due_at) if progress.is_scheduled else None,
        due_at=iso(head.due_at),
        expires_at=when(head.expires_at),
        cancelled_at=when(batch.cancelled_at),
        total_recipients=progress.total,
        accepted=progress.accepted,
        rejected=progress.rejected,
        undecided=progress.undecided,
        reasons=progress.reasons,
        attachments=show_attachments(batch.attachments),
        items=page.items,
        next_cursor=page.next_cursor,
    )


async def show_batch_status(desk: Desk, call: Call[NoQuery, None]) -> StatusAnswer:
    counts = await desk.batches.counts(call.tenant, call.batch_id)
    if counts is None:
        raise missing("batch")
    sums = sum_up(counts, desk.reporting_channels)
    statuses: dict[str, int] = {}
    for (_, status), count in counts.by_channel.items():
        statuses[status.name] = statuses.get(status.name, 0) + count
    return StatusAnswer(
        batch_id=show(call.batch_id),
        total=sums.total,
        delivered=sums.delivered,
        failed=sums.failed,
        pending=sums.pending,
        suppressed=sums.suppressed,
        cancelled=sums.cancelled,
        undecided=undecided_notifications(counts),
        delivery_rate=sums.delivery_rate,
        statuses=statuses,
    )


async def list_rejections(desk: Desk, call: Call[PageQuery, None]) -> Page[RejectionText]:
    after = place_in(call.query.cursor, RowNumber)
    if await desk.batches.find(call.tenant, call.batch_id) is None:
        raise missing("batch")
    first = -1 if after is None else after
    rows = await desk.batches.rejections(call.tenant, call.batch_id, first, call.query.limit + 1)
    return page_of(rows, call.query, lambda row: row[0], _show_rejection)


async def show_one_notification(desk: Desk, call: Call[NoQuery, None]) -> NotificationItem:
    view = await desk.history.find(call.tenant, call.notification_id)
    if view is None:
        raise missing("notification")
    return show_notification(view)


async def cancel_batch(desk: Desk, call: Call[NoQuery, None]) -> CancelAnswer:
    cancelled = await desk.cancel(call.caller, call.batch_id)
    if cancelled is None:
        raise missing("batch")
    return CancelAnswer(show(call.batch_id), cancelled)


async def list_user_notifications(desk: Desk, call: Call[PageQuery, None]) -> Page[NotificationItem]:
    place: Any = place_in(call.query.cursor, tuple[RowNumber, IdBytes])
    if not await desk.history.has_user(call.tenant, call.user_id):
        raise missing("user")
    before = None if place is None else (Instant(place[0]), NotificationId(place[1]))
    views = await desk.history.of_user(call.tenant, call.user_id, before, call.query.limit + 1)
    return page_of(views, call.query, lambda view: (view.decided_at, view.notification_id), show_notification)


def _show_rejection(row: tuple[int, Rejection]) -> RejectionText:
    return RejectionText(row[1].user_id, row[1].code)


def status_of(head: BatchHead, progress: Progress, cancelled_at: Instant | None, now: Instant) -> str:
    if cancelled_at is not None:
        return "cancelled"
    if progress.undecided == 0:
        return "queued"
    return "scheduled" if progress.is_scheduled and head.due_at > now else "processing"
