"""The gate of one account: its breaker, its pace and its enforced rests, as every lane of the account meets them.

What a gate decides holds in this process at once; the account's row in the store makes it hold in the others."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from noroshi.domain.accounts import FREE, OPEN_FOR, BreakerState, Terms
from noroshi.domain.instants import Instant, plus
from noroshi.flow.dispatch.breaker import Breaker, Permit
from noroshi.flow.dispatch.pace import Pace
from noroshi.ports.clock import Clock

_MICROSECOND = timedelta(microseconds=1)
_NO_SPAN = timedelta(0)


def tick_of(clock: Clock) -> Instant:
    """A moment of the monotonic clock: breaker and pace must not follow a wall clock that jumps (W30)."""
    return Instant(int(clock.monotonic() * 1_000_000))


class Gate:
    """Shared by the lanes of an account. `listeners` are called when a lane that waits here may look again."""

    def __init__(self, account: str, clock: Clock, per_second: int | None) -> None:
        self.account = account
        self.listeners: list[Callable[[], None]] = []
        self.pace = Pace(per_second)
        self._clock = clock
        self._breaker = Breaker()
        self._rests_until = Instant(0)
        self._held_until = Instant(0)

    @property
    def is_broken(self) -> bool:
        return not self._breaker.is_closed

    @property
    def epoch(self) -> int:
        """The number of the breaker's last move."""
        return self._breaker.epoch

    @property
    def opens_for(self) -> timedelta | None:
        """What its last move means for other processes."""
        return OPEN_FOR if self.is_broken else None

    def wait(self) -> timedelta | None:
        """How long until something may be sent: nothing, a span, or (None) until a listener is called."""
        tick = tick_of(self._clock)
        of_breaker = self._breaker.wait(tick)
        if of_breaker is None:
            return None
        held = max(self._held_until - tick, 0) * _MICROSECOND
        return max(of_breaker, self._rest(), self.pace.wait(tick), held)

    def admit(self) -> Permit | None:
        return None if self._rest() else self._breaker.admit(tick_of(self._clock))

    def terms(self, permit: Permit) -> Terms:
        """What a claim must ask of the account's row; nothing while there is no pace to share and no trial."""
        if self.pace.per_second is None and not permit.is_trial:
            return FREE
        return Terms(permit.epoch, self.pace.per_second, permit.is_trial)

    def hold(self, span: timedelta) -> None:
        """Other processes have used up the pace for that long."""
        self._held_until = plus(tick_of(self._clock), span)

    def learn(self, state: BreakerState) -> bool:
        """What the account's row says of the breaker. True if it moved here."""
        has_moved = self._breaker.learn(state, tick_of(self._clock))
        if has_moved:
            self._tell()
        return has_moved

    def holds(self, permit: Permit) -> bool:
        """Whether what was let in may still be sent."""
        return self._breaker.holds(permit) and not self._rest()

    def give_back(self, permit: Permit) -> bool:
        """The send did not come about. True if that was a trial, which another may now have."""
        is_trial = self._breaker.give_back(permit)
        if is_trial:
            self._tell()
        return is_trial

    def record(self, permit: Permit, failures: Sequence[bool]) -> bool:
        """What was sent, in its order: which of it failed. True if the breaker moved."""
        tick = tick_of(self._clock)
        # A call without a failure says no more than its last message.
        told = failures if any(failures) else failures[-1:]
        has_moved = any(self._breaker.record(permit, tick, is_failure=f) for f in told)
        if has_moved:
            self._tell()
        return has_moved

    def rest(self, until: Instant) -> None:
        """Nothing is sent before `until`; the later time wins."""
        self._rests_until = max(self._rests_until, until)

    def _rest(self) -> timedelta:
        if not self._rests_until:
            return _NO_SPAN
        return max(self._rests_until - self._clock.now(), 0) * _MICROSECOND

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()
