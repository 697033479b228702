"""What only PostgreSQL has: days that are made ahead, dropped when all of them is finished, and block nobody."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from time import perf_counter

import asyncpg
import pytest

from noroshi.domain.deliveries import Verdict
from noroshi.domain.instants import plus
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.storage.postgres import history
from noroshi.storage.postgres.connection import Connection, connect
from noroshi.storage.postgres.days import AHEAD, day_of, present_days, shown
from noroshi.storage.postgres.store import PostgresStore
from tests.cast import HANAKO, TARO, crowd
from tests.conformance.ground import Ground
from tests.conformance.stores import HandClock, a_sealer

DAY = timedelta(days=1)
KEPT = timedelta(days=90)


@pytest.fixture
async def ground(postgres_url: str) -> AsyncIterator[Ground]:
    clock = HandClock()
    store = PostgresStore(postgres_url, sealer=a_sealer(), meter=NullMeter(), crash_points=NoCrashPoints(), clock=clock)
    await store.start()
    ground = Ground(store, clock)
    await ground.meet(HANAKO, TARO)
    await ground.write()
    yield ground
    await store.stop()


@pytest.fixture
async def onlooker(ground: Ground, postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Whoever else uses the database."""
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def send(ground: Ground) -> None:
    for claim in (await ground.take()).claims:
        await ground.settle(claim, Verdict.SENT, message_id=claim.key.notification_id.hex())


async def tables(onlooker: asyncpg.Connection) -> set[str]:
    return {row[0] for row in await onlooker.fetch("SELECT relname FROM pg_class WHERE relname ~ '_[0-9]{8}$'")}


async def test_the_coming_days_are_there_before_they_come(ground: Ground, onlooker: asyncpg.Connection) -> None:
    ground.clock.move(3 * DAY)
    await ground.store.history.make_ready()
    today = day_of(ground.now)
    assert set(range(today - 1, today + AHEAD + 1)) <= await present_days(onlooker)


async def test_a_round_with_nothing_to_make_or_to_drop_opens_no_connection(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    async def noted(url: str) -> Connection:
        opened.append(url)
        return await connect(url)

    monkeypatch.setattr(history, "connect", noted)
    await ground.store.history.make_ready()
    assert await ground.store.history.forget_before(plus(ground.now, -KEPT), 100) == 0
    assert opened == []
    ground.clock.move(DAY)
    await ground.store.history.make_ready()
    assert len(opened) == 1


async def test_a_day_that_nobody_made_is_made_when_it_is_needed(ground: Ground, onlooker: asyncpg.Connection) -> None:
    ground.clock.move(30 * DAY)
    await ground.accept(HANAKO)
    assert day_of(ground.now) in await present_days(onlooker)


async def test_a_finished_day_goes_with_its_tables_and_all_that_pointed_there(
    ground: Ground, onlooker: asyncpg.Connection
) -> None:  # N11.1
    first = shown(day_of(ground.now))
    await ground.accept(HANAKO, TARO)
    await send(ground)
    assert await onlooker.fetchval("SELECT count(*) FROM noroshi.message_ids") == 2
    ground.clock.move(KEPT)
    await ground.store.history.make_ready()
    assert await ground.store.history.forget_before(ground.now, 1) == 2 + 1
    assert not {f"notifications_{first}", f"ledger_{first}"} & await tables(onlooker)
    for table in ("message_ids", "batches", "batch_bodies", "rejections", "ledger"):
        assert await onlooker.fetchval(f"SELECT count(*) FROM noroshi.{table}") == 0  # noqa: S608
    await ground.accept(HANAKO)
    await send(ground)


async def test_a_day_stays_whole_until_all_of_it_is_finished(
    ground: Ground, onlooker: asyncpg.Connection
) -> None:  # N4.6
    first = shown(day_of(ground.now))
    await ground.accept(TARO)
    await send(ground)
    await ground.accept(HANAKO)
    ground.clock.move(KEPT)
    await ground.store.history.forget_before(ground.now, 100)
    assert {f"notifications_{first}", f"ledger_{first}"} <= await tables(onlooker)
    await send(ground)
    await ground.store.history.forget_before(ground.now, 100)
    assert f"notifications_{first}" not in await tables(onlooker)


async def test_what_says_it_is_unfinished_stays_though_nothing_waits_for_it(
    ground: Ground, onlooker: asyncpg.Connection
) -> None:
    first = shown(day_of(ground.now))
    await ground.accept(HANAKO)
    await onlooker.execute("DELETE FROM noroshi.deliveries")
    ground.clock.move(KEPT)
    assert await ground.store.history.forget_before(ground.now, 100) == 0
    assert f"notifications_{first}" in await tables(onlooker)


async def test_nobody_who_accepts_waits_for_a_day_that_is_dropped(ground: Ground, onlooker: asyncpg.Connection) -> None:
    """The day cannot go while an old reader holds it; what is accepted meanwhile must not queue up behind that."""
    await ground.accept(HANAKO)
    await send(ground)
    ground.clock.move(KEPT)
    await ground.store.history.make_ready()
    reading = onlooker.transaction(isolation="repeatable_read", readonly=True)
    await reading.start()
    await onlooker.fetchval("SELECT count(*) FROM noroshi.notifications, noroshi.ledger")
    dropping = asyncio.create_task(ground.store.history.forget_before(ground.now, 100))
    longest = 0.0
    for _ in range(100):
        began = perf_counter()
        async with asyncio.timeout(10):
            await ground.accept(HANAKO, TARO)
            await send(ground)
        longest = max(longest, perf_counter() - began)
    assert not dropping.done()
    await reading.rollback()
    assert await dropping > 0
    print(f"longest accept and send beside the drop: {longest * 1000:.0f} ms")
    assert longest < 2


async def test_a_drop_that_was_interrupted_is_finished_by_the_next(
    ground: Ground, onlooker: asyncpg.Connection
) -> None:
    first = shown(day_of(ground.now))
    await ground.accept(HANAKO)
    await send(ground)
    ground.clock.move(KEPT)
    await ground.store.history.make_ready()
    reading = onlooker.transaction()
    await reading.start()
    await onlooker.fetchval("SELECT count(*) FROM noroshi.notifications")
    dropping = asyncio.create_task(ground.store.history.forget_before(ground.now, 100))
    pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending"
    async with asyncio.timeout(10):
        while not await onlooker.fetchval(pending):
            await asyncio.sleep(0.01)
    dropping.cancel()
    await asyncio.wait((dropping,))
    await reading.rollback()
    assert await onlooker.fetchval(pending) == 1
    await ground.store.history.forget_before(ground.now, 100)
    assert not {f"notifications_{first}", f"ledger_{first}"} & await tables(onlooker)


async def test_two_processes_do_not_drop_the_same_day(ground: Ground, onlooker: asyncpg.Connection) -> None:
    await ground.accept(HANAKO)
    await send(ground)
    ground.clock.move(KEPT)
    went = await asyncio.gather(*(ground.store.history.forget_before(ground.now, 100) for _ in range(4)))
    assert sum(went) == 2


async def test_a_notification_that_is_sent_stays_on_its_page(ground: Ground, onlooker: asyncpg.Connection) -> None:
    """Else every index would get a second entry for it."""
    people = crowd(200)
    await ground.meet(*people)
    await ground.accept(*people)

    async def pages() -> dict[bytes, str]:
        rows = await onlooker.fetch("SELECT notification_id, split_part(ctid::text, ',', 1) FROM noroshi.notifications")
        return {row[0]: row[1] for row in rows}

    before = await pages()
    while claims := (await ground.take()).claims:
        await ground.store.queue.settle([ground.settlement(claim, Verdict.SENT) for claim in claims])
    assert len(set(before.values())) > 3 and await pages() == before
