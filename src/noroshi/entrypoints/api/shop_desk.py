"""The shop's part of the desk: what the API and the pages may ask of reservations."""

from datetime import timedelta
from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.notification_jobs import Booking, CancelVerdict, JobId, PaymentVerdict
from noroshi.domain.reservations import ReservationId
from noroshi.domain.shop import BookedView, BookingView, Preview, SendReport
from noroshi.ports.reservations import Reservations


class ShopDesk(Protocol):
    @property
    def reservations(self) -> Reservations: ...

    @property
    def is_on_https(self) -> bool:
        """Whether people reach this server encrypted."""
        ...

    async def take_payment(self, body: bytes, signature: str | None) -> PaymentVerdict:
        """An event of Stripe's webhook, as it came."""
        ...

    async def schedule_cancel_completed(self, tenant: TenantId, reservation_id: ReservationId) -> CancelVerdict | None:
        """Cancels a reservation, once. None: there is no such reservation."""
        ...

    async def send_pending_jobs(self, tenant: TenantId, limit: int = ..., *, is_dry: bool = False) -> SendReport: ...

    async def send_single_job(self, tenant: TenantId, job_id: JobId, *, is_dry: bool = False) -> SendReport | None:
        """None: there is no such job."""
        ...

    async def longest_wait(self, tenant: TenantId) -> timedelta:
        """How long the oldest job that is due has been so."""
        ...

    async def preview(self, tenant: TenantId, reservation_id: ReservationId) -> Preview | None: ...

    async def view_booking(self, tenant: TenantId, reservation_id: ReservationId) -> BookingView | None: ...

    async def view_bookings(self, tenant: TenantId, before: ReservationId | None, limit: int) -> list[BookingView]:
        """Newest first."""
        ...

    def show(self, tenant: TenantId, booking: Booking) -> BookingView: ...

    async def view_booked(self, tenant: TenantId, reservation_id: ReservationId) -> BookedView | None: ...

    def tenant_of_link(self, token: str, reservation_id: ReservationId) -> TenantId | None:
        """Whose reservation a signed link opens; None: it opens nothing."""
        ...

    def new_pickup_code(self) -> str: ...
