"""Reservations: farms, customers and what was reserved."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.notification_jobs import Booking
from noroshi.domain.reservations import Customer, Farm, FarmId, NewReservation, ReservationId


class Reservations(Protocol):
    async def put_farm(self, tenant: TenantId, farm: Farm) -> Farm | None:
        """Keeps a new farm (`farm_id` 0) or replaces one. None: there is no such farm to replace."""
        ...

    async def list_farms(self, tenant: TenantId, after: FarmId, limit: int) -> list[Farm]: ...

    async def find_farm(self, tenant: TenantId, farm_id: FarmId) -> Farm | None: ...

    async def put_customer(self, tenant: TenantId, customer: Customer) -> None: ...

    async def find_customer(self, tenant: TenantId, customer_id: str) -> Customer | None: ...

    async def add(self, tenant: TenantId, new: NewReservation) -> Booking | None:
        """None: there is no such farm or customer."""
        ...

    async def find(self, tenant: TenantId, reservation_id: ReservationId) -> Booking | None: ...

    async def list_bookings(self, tenant: TenantId, before: ReservationId | None, limit: int) -> list[Booking]:
        """Newest first, with ids below `before`."""
        ...
