"""Provider accounts as all processes share them: the state of a breaker, and the terms on which a lane asks."""

from datetime import timedelta

from msgspec import Struct

OPEN_FOR = timedelta(seconds=60)
"""How long a breaker stays open before one trial (N6.4)."""


class BreakerState(Struct, frozen=True):
    """`epoch` counts the breaker's moves; the later one is right. `trial_in`: how long until a trial may be asked for;
    None while the breaker is closed. A span, for the clocks of two machines differ."""

    epoch: int
    trial_in: timedelta | None

    @property
    def is_closed(self) -> bool:
        return self.trial_in is None


UNMOVED = BreakerState(0, None)
"""The breaker of an account that has never failed."""


class Terms(Struct, frozen=True):
    """On which terms a lane claims for its account. `epoch` is the breaker's last move that the lane knows of;
    `is_trial`: the breaker is open, and the one message that tries the account is asked for."""

    epoch: int = 0
    per_second: int | None = None
    is_trial: bool = False

    @property
    def is_free(self) -> bool:
        """No pace to keep and no trial to win: the account need not be asked at all."""
        return self.per_second is None and not self.is_trial


FREE = Terms()
