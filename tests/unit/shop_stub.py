"""A shop for shape tests: one farm, one customer, one reservation, whatever is asked."""

from datetime import timedelta

from msgspec.structs import replace
from tests.reservation_cast import FARM, HANAKO, booking, confirmed, job, jst

from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.notification_jobs import Booking, CancelVerdict, DueJobs, JobId, PaymentVerdict
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import Customer, Farm, FarmId, NewReservation, ReservationId
from noroshi.domain.shop import BookedView, BookingView, Preview, SendReport
from noroshi.reservations.booked import view_booked
from noroshi.reservations.context import build_context
from noroshi.reservations.display import view_kinds
from noroshi.reservations.reports import report_run

BOOKING = booking(confirmed(), job())
NOW = jst("2025-12-01 12:00")
TOKEN = "1." + "A" * 24


class StubReservations:
    async def put_farm(self, tenant: TenantId, farm: Farm) -> Farm | None:
        if farm.farm_id not in (0, FARM.farm_id):
            return None
        return replace(farm, farm_id=FARM.farm_id)

    async def list_farms(self, tenant: TenantId, after: FarmId, limit: int) -> list[Farm]:
        return [FARM]

    async def find_farm(self, tenant: TenantId, farm_id: FarmId) -> Farm | None:
        return FARM if farm_id == FARM.farm_id else None

    async def put_customer(self, tenant: TenantId, customer: Customer) -> None:
        return

    async def find_customer(self, tenant: TenantId, customer_id: str) -> Customer | None:
        return HANAKO if customer_id == HANAKO.customer_id else None

    async def add(self, tenant: TenantId, new: NewReservation) -> Booking | None:
        return BOOKING if new.farm_id == FARM.farm_id else None

    async def find(self, tenant: TenantId, reservation_id: ReservationId) -> Booking | None:
        return BOOKING if reservation_id == BOOKING.reservation.reservation_id else None

    async def list_bookings(self, tenant: TenantId, before: ReservationId | None, limit: int) -> list[Booking]:
        return [BOOKING]


class StubShop:
    def __init__(self) -> None:
        self.reservations = StubReservations()
        self.is_on_https = False

    async def take_payment(self, body: bytes, signature: str | None) -> PaymentVerdict:
        if not body:
            raise ProblemError("bad_event_signature", "There is nothing to sign.")
        return PaymentVerdict.IGNORED

    async def schedule_cancel_completed(self, tenant: TenantId, reservation_id: ReservationId) -> CancelVerdict | None:
        return CancelVerdict.CANCELLED if reservation_id == BOOKING.reservation.reservation_id else None

    async def send_pending_jobs(self, tenant: TenantId, limit: int = 50, *, is_dry: bool = False) -> SendReport:
        return report_run(DueJobs(NOW, 0), [], is_dry=is_dry)

    async def send_single_job(self, tenant: TenantId, job_id: JobId, *, is_dry: bool = False) -> SendReport | None:
        return report_run(DueJobs(NOW, 1), [], is_dry=is_dry) if job_id == BOOKING.jobs[0].job_id else None

    async def longest_wait(self, tenant: TenantId) -> timedelta:
        return timedelta(0)

    async def preview(self, tenant: TenantId, reservation_id: ReservationId) -> Preview | None:
        if reservation_id != BOOKING.reservation.reservation_id:
            return None
        return Preview(build_context(BOOKING), {}, BOOKING.jobs, ())

    async def view_booking(self, tenant: TenantId, reservation_id: ReservationId) -> BookingView | None:
        found = await self.reservations.find(tenant, reservation_id)
        return None if found is None else self.show(tenant, found)

    async def view_bookings(self, tenant: TenantId, before: ReservationId | None, limit: int) -> list[BookingView]:
        return [self.show(tenant, BOOKING)]

    def show(self, tenant: TenantId, of: Booking) -> BookingView:
        return BookingView(of, view_kinds(of), "https://example.com/booked/237")

    async def view_booked(self, tenant: TenantId, reservation_id: ReservationId) -> BookedView | None:
        found = await self.reservations.find(tenant, reservation_id)
        return None if found is None else view_booked(found, NOW)

    def tenant_of_link(self, token: str, reservation_id: ReservationId) -> TenantId | None:
        return DEFAULT_TENANT if token == TOKEN else None

    def new_pickup_code(self) -> str:
        return "0417"
