"""Reservations: farms, their customers, and what was reserved (L16)."""

from enum import StrEnum
from typing import NewType

from msgspec import Struct

from noroshi.domain.instants import Instant

FarmId = NewType("FarmId", int)
ReservationId = NewType("ReservationId", int)


class ReminderPolicy(StrEnum):
    """When a customer is reminded of the pickup (L6)."""

    FIXED_48H = "fixed_48h"
    TIME_SLOTS = "time_slots"


class ReservationStatus(StrEnum):
    PENDING = "pending"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"


class PaymentStatus(StrEnum):
    UNPAID = "unpaid"
    SUCCEEDED = "succeeded"


class Farm(Struct, frozen=True, kw_only=True):
    """Where rice is picked up, and how it is called. `farm_id` 0: not kept yet."""

    name: str
    farm_id: FarmId = FarmId(0)
    pickup_place_name: str | None = None
    pickup_map_url: str | None = None
    pickup_detail_memo: str | None = None
    label_5kg: str = "5kg"
    label_10kg: str = "10kg"
    label_25kg: str = "25kg"
    reminder_policy: ReminderPolicy = ReminderPolicy.FIXED_48H


class Customer(Struct, frozen=True):
    """Whoever reserves. `line_user_id` is None until another domain has linked the two."""

    customer_id: str
    name: str | None = None
    line_user_id: str | None = None


class NewReservation(Struct, frozen=True, kw_only=True):
    """Amounts are whole yen; `total` is what a payment must come to."""

    farm_id: FarmId
    customer_id: str
    pickup_start: Instant
    pickup_end: Instant
    pickup_code: str
    total: int
    qty_5: int = 0
    qty_10: int = 0
    qty_25: int = 0
    subtotal_5: int = 0
    subtotal_10: int = 0
    subtotal_25: int = 0


class Reservation(NewReservation, frozen=True, kw_only=True):
    """`reminder_policy` is the farm's at the time of the confirmation: a later change decides nothing anew."""

    reservation_id: ReservationId
    status: ReservationStatus
    payment_status: PaymentStatus
    created_at: Instant
    updated_at: Instant
    confirmed_at: Instant | None = None
    cancelled_at: Instant | None = None
    reminder_policy: ReminderPolicy | None = None
    paid_amount: int | None = None
    payment_reference: str | None = None

    @property
    def event_start(self) -> Instant:
        """When the pickup begins: the one answer for reminders, cancellation and the booked page (L14)."""
        return self.pickup_start

    @property
    def event_end(self) -> Instant:
        return self.pickup_end

    @property
    def rice_subtotal(self) -> int:
        return self.subtotal_5 + self.subtotal_10 + self.subtotal_25

    @property
    def is_confirmed(self) -> bool:
        """Ever: a cancellation does not undo it."""
        return self.confirmed_at is not None

    @property
    def is_cancelled(self) -> bool:
        return self.status is ReservationStatus.CANCELLED


class Payment(Struct, frozen=True):
    """Money that came in for a reservation. `reference` is the payment's name at its provider."""

    reservation_id: ReservationId
    amount: int
    currency: str
    reference: str
