"""Reminders: a policy, the pickup and the confirmation in; whether and when to remind out. No other place knows."""

from collections.abc import Callable
from datetime import datetime, time, timedelta

from msgspec import Struct

from noroshi.domain.instants import Instant, at, plus
from noroshi.domain.japan import in_japan
from noroshi.domain.reservations import ReminderPolicy
from noroshi.domain.shop import Why

MIN_LEAD_TIME = timedelta(hours=48)


class ReminderPlan(Struct, frozen=True):
    """`scheduled_at` is set if it should be sent, else `why` says why not."""

    should_send: bool
    scheduled_at: Instant | None = None
    why: Why | None = None


def plan_reminder(policy: ReminderPolicy, event_start: Instant, confirmed_at: Instant) -> ReminderPlan:
    """The reminder of a reservation confirmed at that time (L6)."""
    if plus(event_start, -MIN_LEAD_TIME) < confirmed_at:
        return ReminderPlan(should_send=False, why=Why.TOO_SOON)
    scheduled_at = _POLICIES[policy](event_start)
    if scheduled_at <= confirmed_at:
        return ReminderPlan(should_send=False, why=Why.NOT_AFTER_CONFIRMATION)
    if scheduled_at >= event_start:
        return ReminderPlan(should_send=False, why=Why.NOT_BEFORE_PICKUP)
    return ReminderPlan(should_send=True, scheduled_at=scheduled_at)


def _fixed_48h(event_start: Instant) -> Instant:
    return plus(event_start, -MIN_LEAD_TIME)


_SLOTS = ((6, 12, 1, 20), (12, 16, 0, 8), (16, 22, 0, 12))
"""Pickup hours in Japan from and below, days before, and the hour of the reminder there."""

_OTHERWISE = (0, 8)


def _time_slots(event_start: Instant) -> Instant:
    pickup = in_japan(event_start)
    slots = ((days, hour) for first, end, days, hour in _SLOTS if first <= pickup.hour < end)
    days, hour = next(slots, _OTHERWISE)
    return at(datetime.combine(pickup.date() - timedelta(days=days), time(hour), pickup.tzinfo))


_POLICIES: dict[ReminderPolicy, Callable[[Instant], Instant]] = {
    ReminderPolicy.FIXED_48H: _fixed_48h,
    ReminderPolicy.TIME_SLOTS: _time_slots,
}
