"""F26: ten thousand leases that nobody here may touch do not hide the one behind them."""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from noroshi.domain.categories import Categories
from noroshi.flow.dispatch.settling import Settler
from noroshi.flow.dispatch.sweeper import PAGE, Sweeper
from noroshi.machine.clock import SystemClock
from noroshi.machine.meter import NullMeter
from noroshi.ports.queue import Queue
from noroshi.storage.duties import SoleDuties
from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.report import publish, section
from tests.faults.machinery.witness import LANE, Witness, WitnessedStore

HOPELESS = 10_000
SWEEPS = 2

CLOCK = SystemClock()


class FirstPageQueue:
    """The queue as a sweeper sees it that stops at its first page: what was found in the wild (River #1318)."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __getattr__(self, name: str) -> object:
        return getattr(self._queue, name)

    async def expired(self, after: object, limit: int, *, is_start: bool) -> object:
        return [] if after is not None else await self._queue.expired(None, limit, is_start=is_start)


LEASED = """
    INSERT INTO deliveries (notification_id, due_at, lane, tenant, endpoint_id, state, user_id, category,
        template_row, wanted_at, fence, claims)
    VALUES (?, ?, 'in_app.retired.normal', 1, 0, 1, 'user-0', 'general', 1, 0, 1, 1)"""


@pytest.fixture
async def life(tmp_path: Path, store: Stores) -> AsyncIterator[WitnessedStore]:
    """A store in which one delivery of ours waits behind ten thousand of an account that is gone."""
    with store.opened(tmp_path) as kept:
        life = WitnessedStore(kept, Witness(), random.Random("sweeper"))
        await life.store.start()
        await life.people()
        await life.accept()
        taken = await life.store.queue.take(LANE, 1, timedelta(seconds=1), frozenset())
        assert len(taken.claims) == 1
        ended_at = CLOCK.now() - 1
        kept.change("UPDATE deliveries SET due_at = ? WHERE state = 1", (ended_at,))
        kept.change("DELETE FROM deliveries WHERE state = 0")
        kept.change(LEASED, *((secrets.token_bytes(16), ended_at - number) for number in range(1, HOPELESS + 1)))
        yield life
        await life.store.stop()


def sweeper_of(life: WitnessedStore, queue: Queue) -> Sweeper:
    return Sweeper(
        clock=CLOCK,
        meter=NullMeter(),
        queue=queue,
        settler=Settler(CLOCK, NullMeter(), queue, asyncio.Event()),
        categories=Categories(()),
        served=frozenset({(LANE.channel, LANE.account)}),
        announce=lambda _lanes: None,
        paused_categories=frozenset,
        duties=SoleDuties(),
    )


async def is_rescued(life: WitnessedStore) -> bool:
    return LANE in await life.store.queue.waiting()


async def test_the_row_behind_ten_thousand_that_may_not_be_touched_is_rescued(
    store: Stores, life: WitnessedStore
) -> None:
    # F26, W10
    sweeper = sweeper_of(life, life.store.queue)
    assert HOPELESS > PAGE
    assert not await is_rescued(life)
    sweeps = 0
    while not await is_rescued(life):
        assert sweeps < SWEEPS
        await sweeper.sweep()
        sweeps += 1
    told = f"Behind {HOPELESS:,} leases that may not be touched the next one was rescued in sweep {sweeps}."
    publish(section("sweeper", store.kind), told)
    assert await life.store.queue.unfinished() == HOPELESS + 1


async def test_control_a_sweeper_that_stops_at_its_first_page_never_finds_it(life: WitnessedStore) -> None:
    sweeper = sweeper_of(life, FirstPageQueue(life.store.queue))  # type: ignore[arg-type]
    for _ in range(SWEEPS):
        await sweeper.sweep()
    assert not await is_rescued(life)
