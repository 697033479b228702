"""Time, injected: the only source of now and the only way to wait."""

from datetime import timedelta
from typing import Protocol

from noroshi.domain.instants import Instant


class Clock(Protocol):
    def now(self) -> Instant:
        """The moment, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump: for leases held locally and for time-outs."""
        ...

    async def sleep(self, span: timedelta) -> None: ...
