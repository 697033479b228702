"""The machine's own time: the one place that asks the system for it and waits by it."""

import asyncio
import time
from datetime import timedelta

from noroshi.domain.instants import Instant, plus


class PlayedClock:
    """Time that passes when it is told to: for demonstrations, in which a day takes a minute."""

    def __init__(self, start: Instant) -> None:
        self._now = start

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._now / 1_000_000

    async def sleep(self, span: timedelta) -> None:
        self.move(span)

    def move(self, span: timedelta) -> None:
        self._now = plus(self._now, span)


class SystemClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(span.total_seconds())
