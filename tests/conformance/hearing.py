"""Hearers: a store in, what one process hears of its announcements out."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from noroshi.domain.inbox import Owner
from noroshi.domain.lanes import Lane
from noroshi.machine.clock import SystemClock
from noroshi.ports.announcements import Announcements
from tests.conformance.stores import Store

SOON = 5


class Hearer:
    """What one process hears; `until` waits for it."""

    def __init__(self, announcements: Announcements) -> None:
        self.lanes: list[Lane] = []
        self.owners: set[Owner] = set()
        self.changes = 0
        self.announcements = announcements
        self._news = asyncio.Event()
        announcements.listen(self._hear_lanes, self._hear_change, self._hear_owners)

    def _hear_lanes(self, lanes: Iterable[Lane]) -> None:
        self.lanes += lanes
        self._news.set()

    def _hear_owners(self, owners: Iterable[Owner]) -> None:
        self.owners.update(owners)
        self._news.set()

    def _hear_change(self) -> None:
        self.changes += 1
        self._news.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON):
            while not is_so():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def hearing(store: Store) -> AsyncIterator[Hearer]:
    hearer = Hearer(store.announcements(SystemClock()))
    await hearer.announcements.start()
    yield hearer
    await hearer.announcements.stop()
