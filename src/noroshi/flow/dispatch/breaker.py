"""The breaker of one account (N6.4): results go in, whether the account may be tried comes out."""

from datetime import timedelta
from typing import NamedTuple

from noroshi.domain.instants import Instant, plus

FAILURES_TO_OPEN = 5
OPEN_FOR = timedelta(seconds=60)

_NO_SPAN = timedelta(0)
_MICROSECOND = timedelta(microseconds=1)


class Permit(NamedTuple):
    """Leave to send. `epoch` dates it: what was let through before the breaker last moved proves nothing now."""

    epoch: int
    is_trial: bool


class Breaker:
    """Closed, until five failures in a row open it; open for a minute; then half-open, for one trial send."""

    def __init__(self) -> None:
        self._epoch = 0
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
        return Permit(self._epoch, self._has_trial)

    def holds(self, permit: Permit) -> bool:
        """Whether the leave still stands."""
        return permit.epoch == self._epoch

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

    def _move(self, open_until: Instant | None) -> None:
        self._epoch += 1
        self._failures = 0
        self._has_trial = False
        self._open_until = open_until
