"""Farms, customers and reservations over the API: what the shop enters, checked, in; what is kept, and how its
notifications stand, out (L16, L4)."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from noroshi.domain.instants import Instant, iso
from noroshi.domain.notification_jobs import DisplayState, Job, JobKind, JobStatus
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import OffsetTime, instant_of
from noroshi.domain.reservations import (
    Customer,
    Farm,
    FarmId,
    NewReservation,
    PaymentStatus,
    ReminderPolicy,
    ReservationId,
    ReservationStatus,
)
from noroshi.domain.shop import SENTENCES, BookingView, KindView, Why
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import Moment, when

LineUserIdText = Annotated[
    str, Meta(pattern="^U[0-9a-f]{32}$", description="As LINE gives it to a login or a webhook.")
]
UrlText = Annotated[str, Meta(pattern=r"^https?://\S+$", max_length=1_000)]
MemoText = Annotated[str, Meta(max_length=1_000)]
LabelText = Annotated[str, Meta(min_length=1, max_length=50)]
ShortText = Annotated[str, Meta(min_length=1, max_length=100)]
CodeText = Annotated[str, Meta(pattern="^[0-9]{4}$", description="Left out: drawn.")]
Bags = Annotated[int, Meta(ge=0, le=1_000_000)]
Yen = Annotated[int, Meta(ge=0, le=1_000_000_000)]
RowId = Annotated[int, Meta(ge=1, le=2**63 - 1)]

_SHOWN_OF_AN_ID = 5


class FarmBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the farm. Jobs that exist keep their text; confirmed reservations keep their reminder's policy."""

    name: ShortText
    pickup_place_name: ShortText | None = None
    pickup_map_url: UrlText | None = None
    pickup_detail_memo: MemoText | None = None
    label_5kg: LabelText = "5kg"
    label_10kg: LabelText = "10kg"
    label_25kg: LabelText = "25kg"
    reminder_policy: ReminderPolicy = ReminderPolicy.FIXED_48H


class FarmAnswer(Struct, frozen=True):
    farm_id: int
    name: str
    pickup_place_name: str | None
    pickup_map_url: str | None
    pickup_detail_memo: str | None
    label_5kg: str
    label_10kg: str
    label_25kg: str
    reminder_policy: ReminderPolicy


class CustomerBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the customer; without a LINE user id their notifications fail, saying so."""

    name: ShortText | None = None
    line_user_id: LineUserIdText | None = None


class CustomerAnswer(Struct, frozen=True):
    """The LINE user id is masked."""

    customer_id: str
    name: str | None
    line_user_id: str | None


class ReservationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts are whole yen. `total` is what a payment must come to; left out: the sum of the subtotals."""

    farm_id: RowId
    customer_id: Annotated[str, Meta(min_length=1, max_length=128)]
    pickup_start: OffsetTime
    pickup_end: OffsetTime
    qty_5: Bags = 0
    qty_10: Bags = 0
    qty_25: Bags = 0
    subtotal_5: Yen = 0
    subtotal_10: Yen = 0
    subtotal_25: Yen = 0
    total: Yen | None = None
    pickup_code: CodeText | None = None


class JobAnswer(Struct, frozen=True):
    """A row of notification_jobs; times are UTC."""

    job_id: int
    reservation_id: int
    kind: JobKind
    scheduled_at: Moment
    status: JobStatus
    attempt_count: int
    last_error: str | None
    message_text: str
    created_at: Moment
    updated_at: Moment


class KindAnswer(Struct, frozen=True):
    """How one kind of notification stands: DASH where the rules want none, NONE where one is missing. `sentence` says
    why; `may_resend`: a person may send it again. `resend_may_double_after` is set where LINE gave no clear answer and
    may have taken it: sent again before that time it arrives once, after it maybe twice."""

    kind: JobKind
    state: DisplayState
    why: Why | None
    sentence: str | None
    may_resend: bool
    resend_may_double_after: Moment | None
    job: JobAnswer | None


class ReservationAnswer(Struct, frozen=True, kw_only=True):
    """`booked_url` is the customer's page, for whoever has the link."""

    reservation_id: int
    farm_id: int
    customer_id: str
    status: ReservationStatus
    payment_status: PaymentStatus
    event_start: Moment
    event_end: Moment
    pickup_code: str
    qty_5: int
    qty_10: int
    qty_25: int
    subtotal_5: int
    subtotal_10: int
    subtotal_25: int
    rice_subtotal: int
    total: int
    paid_amount: int | None
    payment_reference: str | None
    confirmed_at: Moment | None
    cancelled_at: Moment | None
    created_at: Moment
    updated_at: Moment
    booked_url: str
    notifications: list[KindAnswer]


async def add_farm(desk: Desk, call: Call[NoQuery, FarmBody]) -> FarmAnswer:
    return await _put_farm(desk, call, FarmId(0))


async def replace_farm(desk: Desk, call: Call[NoQuery, FarmBody]) -> FarmAnswer:
    farm_id = FarmId(call.number("farm_id", "farm"))
    if not farm_id:
        raise missing("farm")  # 0 would make a new one
    return await _put_farm(desk, call, farm_id)


async def show_farm(desk: Desk, call: Call[NoQuery, None]) -> FarmAnswer:
    farm = await desk.shop.reservations.find_farm(call.tenant, FarmId(call.number("farm_id", "farm")))
    if farm is None:
        raise missing("farm")
    return _show_farm(farm)


async def list_farms(desk: Desk, call: Call[PageQuery, None]) -> Page[FarmAnswer]:
    after = FarmId(place_in(call.query.cursor, RowNumber) or 0)
    farms = await desk.shop.reservations.list_farms(call.tenant, after, call.query.limit + 1)
    return page_of(farms, call.query, lambda farm: farm.farm_id, _show_farm)


async def put_customer(desk: Desk, call: Call[NoQuery, CustomerBody]) -> CustomerAnswer:
    customer = Customer(call.path["customer_id"], call.body.name, call.body.line_user_id)
    await desk.shop.reservations.put_customer(call.tenant, customer)
    return _show_customer(customer)


async def show_customer(desk: Desk, call: Call[NoQuery, None]) -> CustomerAnswer:
    customer = await desk.shop.reservations.find_customer(call.tenant, call.path["customer_id"])
    if customer is None:
        raise missing("customer")
    return _show_customer(customer)


async def add_reservation(desk: Desk, call: Call[NoQuery, ReservationBody]) -> ReservationAnswer:
    new = _new_reservation(desk, call.body)
    booking = await desk.shop.reservations.add(call.tenant, new)
    if booking is None:
        farm = await desk.shop.reservations.find_farm(call.tenant, new.farm_id)
        field = "farm_id" if farm is None else "customer_id"
        raise ProblemError("bad_field", f"There is no such {field.removesuffix('_id')}.", field=field)
    return show_booking(desk.shop.show(call.tenant, booking))


async def show_reservation(desk: Desk, call: Call[NoQuery, None]) -> ReservationAnswer:
    view = await desk.shop.view_booking(call.tenant, reservation_id_of(call.number("reservation_id", "reservation")))
    if view is None:
        raise missing("reservation")
    return show_booking(view)


async def list_reservations(desk: Desk, call: Call[PageQuery, None]) -> Page[ReservationAnswer]:
    place = place_in(call.query.cursor, RowNumber)
    before = None if place is None else ReservationId(place)
    views = await desk.shop.view_bookings(call.tenant, before, call.query.limit + 1)
    return page_of(views, call.query, lambda view: view.booking.reservation.reservation_id, show_booking)


def reservation_id_of(number: int) -> ReservationId:
    return ReservationId(number)


def masked(line_user_id: str | None) -> str | None:
    return None if line_user_id is None else f"{line_user_id[:_SHOWN_OF_AN_ID]}…"


def show_job(job: Job) -> JobAnswer:
    return JobAnswer(
        job_id=job.job_id,
        reservation_id=job.reservation_id,
        kind=job.kind,
        scheduled_at=iso(job.scheduled_at),
        status=job.status,
        attempt_count=job.attempt_count,
        last_error=job.last_error,
        message_text=job.message_text,
        created_at=iso(job.created_at),
        updated_at=iso(job.updated_at),
    )


def show_booking(view: BookingView) -> ReservationAnswer:
    booking = view.booking
    kept = booking.reservation
    return ReservationAnswer(
        reservation_id=kept.reservation_id,
        farm_id=kept.farm_id,
        customer_id=kept.customer_id,
        status=kept.status,
        payment_status=kept.payment_status,
        event_start=iso(kept.event_start),
        event_end=iso(kept.event_end),
        pickup_code=kept.pickup_code,
        qty_5=kept.qty_5,
        qty_10=kept.qty_10,
        qty_25=kept.qty_25,
        subtotal_5=kept.subtotal_5,
        subtotal_10=kept.subtotal_10,
        subtotal_25=kept.subtotal_25,
        rice_subtotal=kept.rice_subtotal,
        total=kept.total,
        paid_amount=kept.paid_amount,
        payment_reference=kept.payment_reference,
        confirmed_at=when(kept.confirmed_at),
        cancelled_at=when(kept.cancelled_at),
        created_at=iso(kept.created_at),
        updated_at=iso(kept.updated_at),
        booked_url=view.link,
        notifications=[_show_kind(kind) for kind in view.kinds],
    )


def _show_kind(view: KindView) -> KindAnswer:
    sentence = None if view.why is None else SENTENCES[view.why]
    job = None if view.job is None else show_job(view.job)
    return KindAnswer(
        kind=view.kind,
        state=view.state,
        why=view.why,
        sentence=sentence,
        may_resend=view.no_resend is None,
        resend_may_double_after=when(view.doubles_after),
        job=job,
    )


async def _put_farm(desk: Desk, call: Call[NoQuery, FarmBody], farm_id: FarmId) -> FarmAnswer:
    farm = await desk.shop.reservations.put_farm(call.tenant, Farm(farm_id=farm_id, **asdict(call.body)))
    if farm is None:
        raise missing("farm")
    return _show_farm(farm)


def _show_farm(farm: Farm) -> FarmAnswer:
    return FarmAnswer(**asdict(farm))


def _show_customer(customer: Customer) -> CustomerAnswer:
    return CustomerAnswer(customer.customer_id, customer.name, masked(customer.line_user_id))


def _new_reservation(desk: Desk, body: ReservationBody) -> NewReservation:
    start, end = instant_of(body.pickup_start, "pickup_start"), instant_of(body.pickup_end, "pickup_end")
    assert start is not None  # noqa: S101 - both are required
    assert end is not None  # noqa: S101
    _check_times(start, end, desk.clock.now())
    rice = body.subtotal_5 + body.subtotal_10 + body.subtotal_25
    return NewReservation(
        farm_id=FarmId(body.farm_id),
        customer_id=body.customer_id,
        pickup_start=start,
        pickup_end=end,
        pickup_code=body.pickup_code or desk.shop.new_pickup_code(),
        total=rice if body.total is None else body.total,
        qty_5=body.qty_5,
        qty_10=body.qty_10,
        qty_25=body.qty_25,
        subtotal_5=body.subtotal_5,
        subtotal_10=body.subtotal_10,
        subtotal_25=body.subtotal_25,
    )


def _check_times(start: Instant, end: Instant, now: Instant) -> None:
    if end <= start:
        raise ProblemError("bad_field", "The pickup would end before it begins.", field="pickup_end")
    if end <= now:
        raise ProblemError("bad_field", "The pickup is over.", field="pickup_end")
