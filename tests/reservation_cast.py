"""Words for tests of reservations: times in Japan, a farm, a customer, bookings in any state."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from noroshi.domain.instants import Instant, at
from noroshi.domain.notification_jobs import Booking, Job, JobId, JobKind, JobStatus
from noroshi.domain.reservations import (
    Customer,
    Farm,
    FarmId,
    PaymentStatus,
    ReminderPolicy,
    Reservation,
    ReservationId,
    ReservationStatus,
)

JST = ZoneInfo("Asia/Tokyo")


def jst(text: str) -> Instant:
    """`2025-12-03 19:00` in Japan."""
    return at(datetime.fromisoformat(text).replace(tzinfo=JST))


LINE_USER_ID = "U" + "0123456789abcdef" * 2
FARM = Farm(
    farm_id=FarmId(1),
    name="やまだ農園",
    pickup_place_name="やまだ農園 直売所",
    pickup_map_url="https://maps.example.jp/yamada",
    pickup_detail_memo="駐車場は建物の裏手にございます。",
)
HANAKO = Customer("hanako", "花子", LINE_USER_ID)

PICKUP_START = jst("2025-12-03 19:00")
PICKUP_END = jst("2025-12-03 20:00")
EARLY = jst("2025-12-01 01:54")
"""The confirmation of S3's own example: more than 48 hours before."""

CREATED = jst("2025-11-30 12:00")


def reservation(**fields: Any) -> Reservation:
    """Made and not paid yet, unless the fields say otherwise."""
    return Reservation(
        **{
            "reservation_id": ReservationId(237),
            "farm_id": FARM.farm_id,
            "customer_id": HANAKO.customer_id,
            "status": ReservationStatus.PENDING,
            "payment_status": PaymentStatus.UNPAID,
            "pickup_start": PICKUP_START,
            "pickup_end": PICKUP_END,
            "pickup_code": "0417",
            "qty_5": 2,
            "qty_10": 1,
            "subtotal_5": 5_000,
            "subtotal_10": 4_500,
            "total": 9_500,
            "created_at": CREATED,
            "updated_at": CREATED,
            **fields,
        }
    )


def confirmed(at_: Instant = EARLY, **fields: Any) -> Reservation:
    words = {
        "status": ReservationStatus.CONFIRMED,
        "payment_status": PaymentStatus.SUCCEEDED,
        "confirmed_at": at_,
        "reminder_policy": ReminderPolicy.FIXED_48H,
    }
    return reservation(**{**words, **fields})


def cancelled(**fields: Any) -> Reservation:
    return reservation(**{"status": ReservationStatus.CANCELLED, "cancelled_at": EARLY, **fields})


def job(kind: JobKind = JobKind.CONFIRMATION, status: JobStatus = JobStatus.PENDING, **fields: Any) -> Job:
    return Job(
        **{
            "job_id": JobId(20),
            "reservation_id": ReservationId(237),
            "farm_id": FARM.farm_id,
            "kind": kind,
            "scheduled_at": EARLY,
            "status": status,
            "attempt_count": 0,
            "last_error": None,
            "message_text": "text",
            "has_line_user_id": True,
            "created_at": EARLY,
            "updated_at": EARLY,
            **fields,
        }
    )


def booking(of: Reservation | None = None, *jobs: Job, farm: Farm = FARM, customer: Customer = HANAKO) -> Booking:
    return Booking(of or reservation(), farm, customer, jobs)
