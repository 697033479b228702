"""Limits (N8): what a person has had lately in; whether one more is allowed, and else when, out."""

from functools import lru_cache

from noroshi.domain.addressing import Usage
from noroshi.domain.channels import CHANNELS, Limit
from noroshi.domain.instants import Instant
from noroshi.domain.people import FrequencyLimit
from noroshi.domain.priorities import Priority, scaled_limit

HOUR = 3_600_000_000
DAY = 24 * HOUR

OTHER_CHANNEL = Limit(per_hour=10, per_day=50)


@lru_cache(maxsize=4096)
def limit_for(channel: str, priority: Priority, own: FrequencyLimit | None) -> Limit | None:
    """The limit that holds: the person's own else the channel's, times the priority's factor. None: unlimited."""
    if own is not None:
        chosen = Limit(own.per_hour, own.per_day)
    else:
        chosen = CHANNELS[channel].limit if channel in CHANNELS else OTHER_CHANNEL
    per_hour, per_day = scaled_limit(chosen.per_hour, priority), scaled_limit(chosen.per_day, priority)
    if per_hour is None or per_day is None:
        return None
    return Limit(per_hour, per_day)


def over_until(usage: Usage, limit: Limit | None, now: Instant) -> Instant | None:
    """None: one more is allowed. Else when a place has fallen free in every window that is full: an entry leaves
    exactly an hour (a day) after it was counted; a limit of 0 is asked again one window later."""
    if limit is None:
        return None
    frees = 0
    if usage.hour >= limit.per_hour:
        frees = (usage.oldest_in_hour if usage.hour else now) + HOUR
    if usage.day >= limit.per_day:
        frees = max(frees, (usage.oldest_in_day if usage.day else now) + DAY)
    return Instant(frees) if frees else None
