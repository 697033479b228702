"""Pacing (N8.4): a provider's rate in, the moments at which messages may go out (GCRA)."""

from functools import lru_cache

from msgspec import Struct

from noroshi.domain.instants import Instant

_SECOND = 1_000_000
_BURST_SHARE = 10


class Spacing(Struct, frozen=True):
    """A burst, and then one message every interval (microseconds): never more than the rate in any window of a
    second, bursts included. `full_at`, which the caller keeps, is when everything granted so far would be gone at
    the steady rate."""

    burst: int
    interval: int

    def wait(self, full_at: int, now: Instant) -> int:
        """Microseconds until one more may go."""
        return max(full_at - (self.burst - 1) * self.interval - now, 0)

    def reserve(self, full_at: int, count: int, now: Instant) -> tuple[Instant, int]:
        """Books `count` (no more than the burst); answers when they may all go, and the new `full_at`."""
        go_at = max(now, full_at - (self.burst - count) * self.interval)
        return Instant(go_at), max(full_at, go_at) + count * self.interval

    def believable(self, full_at: int, now: Instant) -> int:
        """No grant reaches further ahead than two bursts: what does is the work of a clock that jumped (W30)."""
        return min(full_at, now + 2 * self.burst * self.interval)


@lru_cache(maxsize=256)
def spacing_of(per_second: int) -> Spacing:
    rate = max(per_second, 1)
    burst = max(rate // _BURST_SHARE, 1)
    # b at once and then one every T make b - 1 + 1/T in a second; rounded up, T errs on the slow side. One that is sent
    # late meets those after it, so there is room for one more where one more is little.
    late = 1 if rate >= _BURST_SHARE else 0
    return Spacing(burst, -(-_SECOND // (rate - burst + 1 - late)))
