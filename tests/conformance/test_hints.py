"""Announcements between processes: who hears what, how often, and what becomes of it when the connection is cut."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import asyncpg
import pytest

from noroshi.domain.inbox import Owner
from noroshi.domain.lanes import Lane
from noroshi.machine.clock import SystemClock
from noroshi.ports.announcements import Announcements
from noroshi.ports.clock import Clock
from tests.conformance.company import beside, url_of
from tests.conformance.ground import EMAIL, HERE, PUSH, SECOND
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


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


@asynccontextmanager
async def hearing(store: Store) -> AsyncIterator[Hearer]:
    """Ready once it was told to look: from then on it misses nothing."""
    hearer = Hearer(store.announcements(SystemClock()))
    await hearer.announcements.start()
    if url_of(store) is not None:
        await hearer.until(lambda: hearer.changes == 1)
        hearer.changes = 0
    yield hearer
    await hearer.announcements.stop()


async def test_what_is_announced_is_heard_at_once_here_and_soon_elsewhere(store: Store, clock: Clock) -> None:
    async with beside(store, clock) as other, hearing(store) as here, hearing(other) as there:
        here.announcements.announce({EMAIL})
        assert here.lanes == [EMAIL]
        if other is not store:
            await there.until(lambda: there.lanes == [EMAIL])
            there.announcements.announce([PUSH])
            await here.until(lambda: here.lanes == [EMAIL, PUSH])
        assert here.lanes.count(EMAIL) == 1  # nobody hears their own words come back


async def test_of_changed_inboxes_the_others_hear_and_this_one_knows(store: Store, clock: Clock) -> None:
    owners = {Owner(HERE, f"人{number}" * 30) for number in range(300)}  # more than one hint can hold
    async with beside(store, clock) as other, hearing(store) as here, hearing(other) as there:
        here.announcements.announce_inboxes(owners)
        if other is not store:
            await there.until(lambda: there.owners == owners)
        assert (here.owners, here.changes, there.changes) == (set(), 0, 0)


async def test_of_too_many_changed_inboxes_it_is_only_said_that_one_should_look(store: Store, clock: Clock) -> None:
    async with beside(store, clock) as other, hearing(store) as here, hearing(other) as there:
        here.announcements.announce_inboxes(Owner(HERE, f"person-{number}") for number in range(10_001))
        if other is not store:
            await there.until(lambda: there.changes == 1)
        assert there.owners == set()


async def test_a_change_makes_everybody_look_again(store: Store, clock: Clock) -> None:  # N4.7
    async with beside(store, clock) as other, hearing(store) as here, hearing(other) as there:
        here.announcements.tell_change()
        assert here.changes == 1
        if other is not store:
            await there.until(lambda: there.changes == 1)


async def test_however_often_a_lane_is_announced_others_hear_it_seldom(store: Store, clock: Clock) -> None:
    async with beside(store, clock) as other, hearing(store) as here, hearing(other) as there:
        began = clock.monotonic()
        for _ in range(200):
            here.announcements.announce([EMAIL])
            await clock.sleep(SECOND / 1000)
        span = clock.monotonic() - began
        assert len(here.lanes) == 200
        if other is not store:
            here.announcements.announce([PUSH])
            await there.until(lambda: PUSH in there.lanes)
            assert 1 < there.lanes.count(EMAIL) <= span / 0.02 + 2


async def test_a_connection_that_was_cut_is_made_again_and_what_was_missed_is_looked_for(
    store: Store, clock: Clock
) -> None:
    url = url_of(store)
    if url is None:
        return  # within one process there is nothing to cut
    async with beside(store, clock) as other, hearing(store) as here, hearing(other) as there:
        knife = await asyncpg.connect(url)
        listening = "datname = current_database() AND query LIKE 'LISTEN%'"
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {listening}"  # noqa: S608
        await knife.fetch(cut)
        await knife.close()
        await there.until(lambda: there.changes > 0)
        await here.until(lambda: here.changes > 0)
        here.announcements.announce([EMAIL])
        await there.until(lambda: EMAIL in there.lanes)
