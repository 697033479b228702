"""Payments, cancellations, the sender and what is shown of them over the API (L5, L12, L14)."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import iso
from noroshi.domain.notification_jobs import CancelVerdict, JobId, JobKind, NewJob, PaymentVerdict
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import ReservationId, ReservationStatus
from noroshi.domain.shop import NotificationContext, SendReport
from noroshi.entrypoints.api.calls import ANYONE, Call, NoQuery, RawBody, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.reservations import JobAnswer, masked, show_job
from noroshi.entrypoints.api.wire import Moment

MOST_JOBS = 1_000
EXPIRED = "現在、予定している受け渡しの予約はありません"

_SIGNATURE = "stripe-signature"


class PendingQuery(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MOST_JOBS)] = 50
    dry_run: bool = False


class JobQuery(Struct, frozen=True, forbid_unknown_fields=True):
    dry_run: bool = False


class PreviewQuery(Struct, frozen=True, forbid_unknown_fields=True):
    reservation_id: Annotated[int, Meta(ge=1, le=2**63 - 1)]


class LinkQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`token` is that of the reservation's signed link; not needed with a key."""

    token: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class PaymentAnswer(Struct, frozen=True):
    """What the event did; Stripe looks at the status only."""

    received: bool
    result: PaymentVerdict


class PlannedJob(Struct, frozen=True):
    kind: JobKind
    scheduled_at: Moment
    message_text: str


class PreviewAnswer(Struct, frozen=True):
    """What would be said and made. Nothing is kept, and nothing is sent by it later; the LINE user id is masked."""

    context: NotificationContext
    texts: dict[JobKind, str]
    existing_jobs: list[JobAnswer]
    planned_jobs: list[PlannedJob]


class CancelAnswer(Struct, frozen=True):
    reservation_id: int
    status: ReservationStatus
    result: CancelVerdict


class BookedAnswer(Struct, frozen=True, kw_only=True):
    """What the customer's page shows: after a quarter of an hour beyond the end only `message`."""

    reservation_id: int
    status: ReservationStatus
    event_start: Moment
    event_end: Moment
    is_expired: bool
    is_expired_for_display: bool
    pickup_display: str | None
    pickup_place_name: str | None
    pickup_map_url: str | None
    pickup_detail_memo: str | None
    pickup_code: str | None
    message: str | None


async def take_payment(desk: Desk, call: Call[NoQuery, RawBody]) -> PaymentAnswer:
    result = await desk.shop.take_payment(call.body.raw, call.body.headers.get(_SIGNATURE))
    return PaymentAnswer(received=True, result=result)


async def preview_notifications(desk: Desk, call: Call[PreviewQuery, None]) -> PreviewAnswer:
    preview = await desk.shop.preview(call.tenant, ReservationId(call.query.reservation_id))
    if preview is None:
        raise missing("reservation")
    return PreviewAnswer(
        context=replace(preview.context, customer_line_user_id=masked(preview.context.customer_line_user_id)),
        texts=preview.texts,
        existing_jobs=[show_job(job) for job in preview.existing],
        planned_jobs=[_show_planned(job) for job in preview.planned],
    )


async def send_pending(desk: Desk, call: Call[PendingQuery, None]) -> SendReport:
    return await desk.shop.send_pending_jobs(call.tenant, call.query.limit, is_dry=call.query.dry_run)


async def send_job(desk: Desk, call: Call[JobQuery, None]) -> SendReport:
    job_id = JobId(call.number("job_id", "job"))
    report = await desk.shop.send_single_job(call.tenant, job_id, is_dry=call.query.dry_run)
    if report is None:
        raise missing("job")
    return report


async def cancel_reservation(desk: Desk, call: Call[LinkQuery, None]) -> CancelAnswer:
    reservation_id = ReservationId(call.number("reservation_id", "reservation"))
    tenant = opened_by(desk, call, reservation_id)
    verdict = await desk.shop.schedule_cancel_completed(tenant, reservation_id)
    if verdict is None:
        raise missing("reservation")
    return CancelAnswer(reservation_id, ReservationStatus.CANCELLED, verdict)


async def show_booked(desk: Desk, call: Call[LinkQuery, None]) -> BookedAnswer:
    reservation_id = ReservationId(call.number("reservation_id", "reservation"))
    tenant = opened_by(desk, call, reservation_id)
    view = await desk.shop.view_booked(tenant, reservation_id)
    if view is None:
        raise missing("reservation")
    context = None if view.is_expired_for_display else view.context
    return BookedAnswer(
        reservation_id=reservation_id,
        status=view.booking.reservation.status,
        event_start=iso(view.event_start),
        event_end=iso(view.event_end),
        is_expired=view.is_expired,
        is_expired_for_display=view.is_expired_for_display,
        pickup_display=None if context is None else context.pickup_display,
        pickup_place_name=None if context is None else context.pickup_place_name,
        pickup_map_url=None if context is None else context.pickup_map_url,
        pickup_detail_memo=None if context is None else context.pickup_detail_memo,
        pickup_code=None if context is None else context.pickup_code,
        message=EXPIRED if context is None else None,
    )


def opened_by(desk: Desk, call: Call[LinkQuery, None], reservation_id: ReservationId) -> TenantId:
    """Whose reservation it is: that of the key, else of the link."""
    if call.caller is not ANYONE:
        return call.tenant
    tenant = None if call.query.token is None else desk.shop.tenant_of_link(call.query.token, reservation_id)
    if tenant is None:
        detail = "This needs a key, or the `token` of the reservation's own link."
        raise ProblemError("unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
    return tenant


def _show_planned(job: NewJob) -> PlannedJob:
    return PlannedJob(job.kind, iso(job.scheduled_at), job.message_text)
