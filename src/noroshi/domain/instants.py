"""Instants: moments in UTC as whole microseconds since 1970, the one form in which the store compares times."""

from datetime import UTC, datetime, timedelta
from typing import NewType

Instant = NewType("Instant", int)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = Instant((datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MICROSECOND)
_LAST = Instant((datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND)


class NaiveTimeError(ValueError):
    """A time without an offset: nobody can say which moment is meant."""


def at(moment: datetime) -> Instant:
    """The instant of an aware datetime; the last day of the calendar and the first are cut off, for in another zone
    they fall outside it."""
    if moment.tzinfo is None:
        raise NaiveTimeError("the time has no UTC offset")
    return Instant(min(max((moment - _EPOCH) // _MICROSECOND, _FIRST), _LAST))


def moment_of(instant: Instant) -> datetime:
    """The aware UTC datetime of an instant."""
    return _EPOCH + timedelta(microseconds=instant)


def plus(instant: Instant, span: timedelta) -> Instant:
    """`span` later (or earlier), never beyond the year 9999."""
    return Instant(min(instant + span // _MICROSECOND, _LAST))


def iso(instant: Instant) -> str:
    """`YYYY-MM-DDTHH:MM:SS.ffffff+00:00`: the form on the wire."""
    return moment_of(instant).isoformat(timespec="microseconds")


def instant_of_iso(text: str) -> Instant:
    """What `iso` was given."""
    return at(datetime.fromisoformat(text))
