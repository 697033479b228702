"""The breaker of one account (N6.4): results go in, whether the account may be tried comes out."""

from datetime import timedelta
from typing import NamedTuple

from noroshi.domain.accounts import OPEN_FOR, BreakerState
from noroshi.domain.instants import Instant, plus

FAILURES_TO_OPEN = 5

_NO_SPAN = timedelta(0)
_MICROSECOND = timedelta(microseconds=1)


class Permit(NamedTuple):
    """Leave to send. `epoch` dates it: what was let through before the breaker last moved proves nothing now."""

    epoch: int
    is_trial: bool


class Breaker:
    """Closed, until five failures in a row open it; open for a minute; then half-open, for one trial send. The
    account's row in the store tells other processes of its moves, and this one of theirs."""

    def __init__(self) -> None:
        self.epoch = 0
        self._failures = 0
        self._open_until: Instant | None = None
        self._has_trial = False

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def wait(self, now: Instant) -> timedelta | None:
        """How long until a send may be let through: nothing, a span, or (None) until the trial has its result."""
        if self._open_until is None:
            return _NO_SPAN
        if self._has_trial:
            return None
        return max(self._open_until - now, 0) * _MICROSECOND

    def admit(self, now: Instant) -> Permit | None:
        """Leave for a send if there is any; of an account on trial, for one message."""
        if self.wait(now) != _NO_SPAN:
            return None
        self._has_trial = not self.is_closed
        return Permit(self.epoch, self._has_trial)

    def holds(self, permit: Permit) -> bool:
        """Whether the leave still stands."""
        return permit.epoch == self.epoch

    def give_back(self, permit: Permit) -> bool:
        """The send did not come about. True if another may now have the trial; without effect after a result."""
        if not (permit.is_trial and self.holds(permit) and self._has_trial):
            return False
        self._has_trial = False
        return True

    def record(self, permit: Permit, now: Instant, *, is_failure: bool) -> bool:
        """The result of a send that was let through. True if the breaker moved."""
        if not self.holds(permit):
            return False
        if permit.is_trial:
            self._move(plus(now, OPEN_FOR) if is_failure else None)
            return True
        self._failures = self._failures + 1 if is_failure else 0
        if self._failures < FAILURES_TO_OPEN:
            return False
        self._move(plus(now, OPEN_FOR))
        return True

    def learn(self, state: BreakerState, now: Instant) -> bool:
        """What the row says; the later move is right, and of two with the same number the one in the row. True if
        this breaker moved by it."""
        if state.epoch < self.epoch or (state.epoch == self.epoch and state.is_closed and self.is_closed):
            return False
        has_moved = state.epoch > self.epoch or state.is_closed != self.is_closed
        open_until = None if state.trial_in is None else plus(now, min(state.trial_in, OPEN_FOR))
        if has_moved:
            self._move(open_until, state.epoch)
        elif not self._has_trial:
            self._open_until = open_until
        return has_moved

    def _move(self, open_until: Instant | None, epoch: int | None = None) -> None:
        self.epoch = self.epoch + 1 if epoch is None else epoch
        self._failures = 0
        self._has_trial = False
        self._open_until = open_until
