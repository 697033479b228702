"""Announcements between processes: who hears what, how often, and what becomes of it when the connection is cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from noroshi.domain.inbox import Owner
from noroshi.machine.clock import SystemClock
from noroshi.ports.clock import Clock
from tests.conformance.company import beside
from tests.conformance.ground import EMAIL, HERE, PUSH, SECOND
from tests.conformance.hearing import Hearer, hearing
from tests.conformance.stores import Store

pytestmark = pytest.mark.parametrize("store", ["postgres"], indirect=True)


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


@pytest.fixture
async def two(store: Store, clock: Clock) -> AsyncIterator[tuple[Hearer, Hearer]]:
    """Two processes, ready once each was told to look: from then on they miss nothing."""
    async with beside(store, clock) as other, ready(store) as here, ready(other) as there:
        yield here, there


@asynccontextmanager
async def ready(store: Store) -> AsyncIterator[Hearer]:
    async with hearing(store) as hearer:
        await hearer.until(lambda: hearer.changes == 1)
        hearer.changes = 0
        yield hearer


Two = tuple[Hearer, Hearer]


async def test_what_is_announced_is_heard_soon_elsewhere_and_does_not_come_back(two: Two) -> None:
    here, there = two
    here.announcements.announce({EMAIL})
    await there.until(lambda: there.lanes == [EMAIL])
    there.announcements.announce([PUSH])
    await here.until(lambda: here.lanes == [EMAIL, PUSH])


async def test_of_changed_inboxes_the_others_hear(two: Two) -> None:
    here, there = two
    owners = {Owner(HERE, f"人{number}" * 30) for number in range(300)}  # more than one hint can hold
    here.announcements.announce_inboxes(owners)
    await there.until(lambda: there.owners == owners)
    assert (here.owners, here.changes, there.changes) == (set(), 0, 0)


async def test_of_too_many_changed_inboxes_it_is_only_said_that_one_should_look(two: Two) -> None:
    here, there = two
    here.announcements.announce_inboxes(Owner(HERE, f"person-{number}") for number in range(10_001))
    await there.until(lambda: there.changes == 1)
    assert there.owners == set()


async def test_a_change_makes_the_others_look_again(two: Two) -> None:  # N4.7
    here, there = two
    here.announcements.tell_change()
    await there.until(lambda: there.changes == 1)


async def test_however_often_a_lane_is_announced_others_hear_it_seldom(two: Two, clock: Clock) -> None:
    here, there = two
    began = clock.monotonic()
    for _ in range(200):
        here.announcements.announce([EMAIL])
        await clock.sleep(SECOND / 1000)
    span = clock.monotonic() - began
    here.announcements.announce([PUSH])
    await there.until(lambda: PUSH in there.lanes)
    assert 1 < there.lanes.count(EMAIL) <= span / 0.02 + 2


async def test_a_connection_that_was_cut_is_made_again_and_what_was_missed_is_looked_for(
    two: Two, lies_at: str
) -> None:
    here, there = two
    knife = await asyncpg.connect(lies_at)
    listening = "datname = current_database() AND query LIKE 'LISTEN%'"
    await knife.fetch(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {listening}")  # noqa: S608
    await knife.close()
    await asyncio.gather(there.until(lambda: there.changes > 0), here.until(lambda: here.changes > 0))
    here.announcements.announce([EMAIL])
    await there.until(lambda: EMAIL in there.lanes)
