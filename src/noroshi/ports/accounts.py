"""Provider accounts: until when each must be left alone, and how its breaker stands, over all processes."""

from datetime import timedelta
from typing import Protocol

from noroshi.domain.accounts import BreakerState
from noroshi.domain.instants import Instant


class Accounts(Protocol):
    async def block(self, account: str, until: Instant, why: str) -> None:
        """Nothing is sent through the account before `until`, also after a restart. The later time wins."""
        ...

    async def blocked(self) -> dict[str, Instant]: ...

    async def move_breaker(self, account: str, epoch: int, open_for: timedelta | None) -> BreakerState:
        """Opens the breaker (for a span) or closes it (None), as its move number `epoch`. Where another was first
        with that number, nothing changes. Answers how it stands."""
        ...

    async def breakers(self) -> dict[str, BreakerState]:
        """Of the accounts whose breaker has ever moved."""
        ...

    async def end_trial(self, account: str, epoch: int) -> None:
        """A trial that `Queue.take` granted did not come about: another may have it."""
        ...
