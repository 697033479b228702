"""Times for people: instants in UTC in, the wall clock of Japan out. Nothing is compared in this form (L2)."""

from datetime import datetime
from zoneinfo import ZoneInfo

from noroshi.domain.instants import Instant, moment_of

JST = ZoneInfo("Asia/Tokyo")

_WEEKDAYS = "月火水木金土日"


def in_japan(instant: Instant) -> datetime:
    return moment_of(instant).astimezone(JST)


def shown_day(moment: datetime) -> str:
    """12月3日（水）"""
    return f"{moment.month}月{moment.day}日（{_WEEKDAYS[moment.weekday()]}）"


def shown_time(moment: datetime) -> str:
    """19:00"""
    return f"{moment.hour}:{moment.minute:02}"


def shown_moment(instant: Instant) -> str:
    """2026年3月2日（月）18:00"""
    moment = in_japan(instant)
    return f"{moment.year}年{shown_day(moment)}{shown_time(moment)}"


def pickup_display(start: Instant, end: Instant) -> str:
    """12月3日（水）19:00〜20:00; the day of the end is named if it is another."""
    first, last = in_japan(start), in_japan(end)
    until = shown_time(last) if last.date() == first.date() else f"{shown_day(last)}{shown_time(last)}"
    return f"{shown_day(first)}{shown_time(first)}〜{until}"
