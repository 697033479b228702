"""The customer's page: a booking and the time in, what it shows and whether it still shows it out (L14)."""

from datetime import timedelta

from noroshi.domain.instants import Instant, plus
from noroshi.domain.notification_jobs import Booking
from noroshi.domain.shop import BookedView
from noroshi.reservations.context import build_context

GRACE = timedelta(minutes=15)
"""So long after the end a customer who stands at the counter still finds the reservation."""


def view_booked(booking: Booking, now: Instant) -> BookedView:
    event_start, event_end = booking.reservation.event_start, booking.reservation.event_end
    return BookedView(
        booking=booking,
        context=build_context(booking),
        event_start=event_start,
        event_end=event_end,
        is_expired=now > event_end,
        is_expired_for_display=now > plus(event_end, GRACE),
    )
