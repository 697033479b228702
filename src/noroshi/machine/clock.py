"""The machine's own time: the one place that asks the system for it and waits by it."""

import asyncio
import time
from datetime import timedelta

from noroshi.domain.instants import Instant


class SystemClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(span.total_seconds())
