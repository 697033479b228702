"""Claims under way: what the lanes hold goes in, leases are kept alive until it is settled."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from noroshi.domain.deliveries import Claim, DeliveryKey
from noroshi.domain.instants import Instant
from noroshi.flow.dispatch.breaker import Permit
from noroshi.flow.dispatch.composing import Result
from noroshi.ports.clock import Clock
from noroshi.ports.queue import Queue

_RENEWALS_PER_LEASE = 3
_AT_ONCE = Instant(0)


class Flight:
    """Claims that go in one call, all of a take or a part of it; `compose` makes what they say. `deadline` is
    monotonic and counted from before the store was asked, so it is never later than the lease; `lost` are those
    another has claimed since; before `go_at` (a tick) the account's shared pace lets none of them go."""

    __slots__ = ("claims", "compose", "deadline", "go_at", "lease", "lost", "permit", "renew_at")

    def __init__(
        self,
        claims: list[Claim],
        compose: Callable[[], Awaitable[list[Result]]],
        lease: timedelta,
        asked_at: float,
        permit: Permit,
        go_at: Instant = _AT_ONCE,
    ) -> None:
        self.claims = claims
        self.compose = compose
        self.lease = lease
        self.permit = permit
        self.go_at = go_at
        self.lost: set[DeliveryKey] = set()
        self.count_from(asked_at)

    def count_from(self, asked_at: float) -> None:
        """The lease was granted or renewed upon a question asked at that moment."""
        seconds = self.lease.total_seconds()
        self.deadline = asked_at + seconds
        self.renew_at = asked_at + seconds / _RENEWALS_PER_LEASE


class Flights:
    """Everything a dispatcher holds. `sending` counts the messages that are with a provider at this moment."""

    def __init__(self, clock: Clock, queue: Queue) -> None:
        self.sending = 0
        self._clock = clock
        self._queue = queue
        self._under_way: dict[Flight, None] = {}

    def begin(self, flight: Flight) -> None:
        self._under_way[flight] = None

    def end(self, flight: Flight) -> None:
        self._under_way.pop(flight, None)

    @property
    def claimed(self) -> int:
        return sum(len(f.claims) for f in self._under_way)

    async def renew(self) -> None:
        """Renews the leases that have used up a third, in one call for each length of lease."""
        asked_at = self._clock.monotonic()
        by_lease: dict[timedelta, list[Flight]] = {}
        for flight in self._under_way:
            if flight.renew_at <= asked_at:
                by_lease.setdefault(flight.lease, []).append(flight)
        for lease, flights in by_lease.items():
            held = [(c.key, c.fence) for f in flights for c in f.claims if c.key not in f.lost]
            lost = await self._queue.renew(held, lease)
            for flight in flights:
                flight.lost.update(c.key for c in flight.claims if c.key in lost)
                flight.count_from(asked_at)
