"""The pace of one account in this process (N8.4): wishes to send go in, the moments they may go come out."""

from datetime import timedelta

from noroshi.domain.instants import Instant
from noroshi.domain.pacing import spacing_of

_MICROSECOND = timedelta(microseconds=1)
_NO_SPAN = timedelta(0)


class Pace:
    """At most `per_second` messages in any window of one second, bursts included: what a burst may take is
    given up by the steady rate. None: no limit."""

    def __init__(self, per_second: int | None) -> None:
        self.per_second = per_second
        self._spacing = None if per_second is None else spacing_of(per_second)
        self._full_at = 0

    def most(self, wanted: int) -> int:
        """How many of `wanted` may ever go at once."""
        return wanted if self._spacing is None else min(wanted, self._spacing.burst)

    def wait(self, now: Instant) -> timedelta:
        """How long until one more may go."""
        return _NO_SPAN if self._spacing is None else self._spacing.wait(self._full_at, now) * _MICROSECOND

    def reserve(self, count: int, now: Instant) -> Instant:
        """Books `count` (no more than `most` allows) and answers when they may all go."""
        if self._spacing is None:
            return now
        go_at, self._full_at = self._spacing.reserve(self._full_at, count, now)
        return go_at
