"""The context of a message: a booking in, everything that a text may say of it out (L13)."""

from noroshi.domain.japan import pickup_display
from noroshi.domain.notification_jobs import Booking
from noroshi.domain.shop import NotificationContext


def build_context(booking: Booking) -> NotificationContext:
    reservation, farm = booking.reservation, booking.farm
    return NotificationContext(
        reservation_id=reservation.reservation_id,
        farm_id=reservation.farm_id,
        customer_line_user_id=booking.customer.line_user_id,
        pickup_display=pickup_display(reservation.event_start, reservation.event_end),
        pickup_place_name=farm.pickup_place_name,
        pickup_map_url=farm.pickup_map_url,
        pickup_detail_memo=farm.pickup_detail_memo,
        pickup_code=reservation.pickup_code,
        qty_5=reservation.qty_5,
        qty_10=reservation.qty_10,
        qty_25=reservation.qty_25,
        subtotal_5=reservation.subtotal_5,
        subtotal_10=reservation.subtotal_10,
        subtotal_25=reservation.subtotal_25,
        rice_subtotal=reservation.rice_subtotal,
        label_5kg=farm.label_5kg,
        label_10kg=farm.label_10kg,
        label_25kg=farm.label_25kg,
    )
