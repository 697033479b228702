"""The pace of one account (N8.4): wishes to send go in, the moments they may go come out (GCRA)."""

from datetime import timedelta

from noroshi.domain.instants import Instant

_SECOND = 1_000_000
_MICROSECOND = timedelta(microseconds=1)
_NO_SPAN = timedelta(0)
_BURST_SHARE = 10


class Pace:
    """At most `per_second` messages in any window of one second, bursts included: what a burst may take is
    given up by the steady rate. None: no limit."""

    def __init__(self, per_second: int | None) -> None:
        self._is_free = per_second is None
        rate = max(per_second or 1, 1)
        self._burst = max(rate // _BURST_SHARE, 1)
        # b at once and then one every T make b - 1 + 1/T in a second; rounded up, T errs on the slow side.
        self._interval = -(-_SECOND // (rate - self._burst + 1))
        self._full_at = 0
        """When everything granted so far would be gone at the steady rate."""

    def most(self, wanted: int) -> int:
        """How many of `wanted` may ever go at once."""
        return wanted if self._is_free else min(wanted, self._burst)

    def wait(self, now: Instant) -> timedelta:
        """How long until one more may go."""
        if self._is_free:
            return _NO_SPAN
        return max(self._full_at - (self._burst - 1) * self._interval - now, 0) * _MICROSECOND

    def reserve(self, count: int, now: Instant) -> Instant:
        """Books `count` (no more than `most` allows) and answers when they may all go."""
        if self._is_free:
            return now
        go_at = max(now, self._full_at - (self._burst - count) * self._interval)
        self._full_at = max(self._full_at, go_at) + count * self._interval
        return Instant(go_at)
