"""Quiet hours (N3.4): a person's hours, their zone and now in; until when they must be left alone out.

A wall-clock time stands for the first instant at which the clock on that wall shows it or a later time: a time that
a clock change skips is the instant of the change, one that it repeats counts the first time only.
"""

from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from noroshi.domain.instants import Instant, at, moment_of
from noroshi.domain.people import DEFAULT_ZONE, QuietHours

_MAX_SPANS = 50_000


class _Span(NamedTuple):
    """[begins, ends), over which the answer does not change."""

    begins: int
    ends: int
    is_quiet: bool


_spans: dict[tuple[str, str, str], _Span] = {}
"""The span that held last, by zone, start and end: nearly every question of a day falls into the same one."""


def quiet_until(hours: QuietHours, user_zone: str | None, now: Instant) -> Instant | None:
    """None: not quiet now. Asked for every recipient, so the usual answer costs one look into a dictionary."""
    if not hours.enabled or hours.start == hours.end:
        return None
    key = (hours.timezone or user_zone or DEFAULT_ZONE, hours.start, hours.end)
    span = _spans.get(key)
    if span is None or not span.begins <= now < span.ends:
        span = _span_around(now, _zone(key[0]), time.fromisoformat(hours.start), time.fromisoformat(hours.end))
        if len(_spans) >= _MAX_SPANS:
            _spans.clear()
        _spans[key] = span
    return Instant(span.ends) if span.is_quiet else None


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    """A zone that the tables do not know (a name that was withdrawn) is read as the default one."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return ZoneInfo(DEFAULT_ZONE)


def _span_around(now: Instant, zone: ZoneInfo, start: time, end: time) -> _Span:
    today = moment_of(now).astimezone(zone).date()
    quiet = _quiet_spans(today, zone, start, end)
    for span in quiet:
        if span.begins <= now < span.ends:
            return span
    begins = max((span.ends for span in quiet if span.ends <= now), default=int(now))
    ends = min((span.begins for span in quiet if span.begins > now), default=now + 1)
    return _Span(begins, ends, is_quiet=False)


def _quiet_spans(today: date, zone: ZoneInfo, start: time, end: time) -> list[_Span]:
    """The quiet spans from two days before to two days after, in order; those that touch are one."""
    spans: list[_Span] = []
    for offset in range(-2, 3):
        day = today + timedelta(days=offset)
        last_day = day if start < end else day + timedelta(days=1)
        begins: int = _first_at(zone, datetime.combine(day, start))
        ends = _first_at(zone, datetime.combine(last_day, end))
        if spans and begins <= spans[-1].ends:
            begins = spans.pop().begins
        if begins < ends:
            spans.append(_Span(begins, ends, is_quiet=True))
    return spans


def _first_at(zone: ZoneInfo, wall: datetime) -> Instant:
    """The first instant at which the zone's clocks show `wall` or later."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return at(moment)
    # The clocks skip `wall`: with fold=1 it is read by the offset after the change, and so falls before the change.
    before = wall.replace(tzinfo=zone, fold=1)
    seconds = range(int(before.timestamp()), int(moment.timestamp()) + 1)
    first = bisect_left(seconds, wall, key=lambda second: datetime.fromtimestamp(second, zone).replace(tzinfo=None))
    return Instant(seconds[first] * 1_000_000)
