"""What only PostgreSQL has: two transactions amid their work at once, brought to their worst order by a row held."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from noroshi.domain.deliveries import Claim, Verdict
from noroshi.domain.ids import BatchId
from noroshi.domain.problems import ProblemError
from noroshi.domain.states import Status
from noroshi.storage.postgres.connection import connect
from tests.cast import HANAKO
from tests.conformance.ground import EMAIL, HERE, LEASE, SECOND, Ground
from tests.conformance.stores import STORES, HandClock

WAITING = """SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database()"""
END_WHO_WAITS = f"SELECT pg_terminate_backend(pid) {WAITING.partition('count(*)')[2]}"
HOLD = "SELECT 1 FROM deliveries FOR UPDATE"


@pytest.fixture
async def ground(postgres_url: str) -> AsyncIterator[Ground]:
    clock = HandClock()
    store = STORES["postgres"](postgres_url, clock)
    await store.start()
    yield Ground(store, clock)
    await store.stop()


@pytest.fixture
async def holder(postgres_url: str, ground: Ground) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(postgres_url)
    yield connection
    await connection.close()


async def until_somebody_waits(connection: asyncpg.Connection) -> None:
    while not await connection.fetchval(WAITING):
        await asyncio.sleep(0.01)


async def one_claimed(ground: Ground) -> tuple[BatchId, Claim]:
    await ground.meet(HANAKO)
    await ground.write()
    batch_id = await ground.accept(HANAKO)
    (claim,) = (await ground.store.queue.take(EMAIL, 10, LEASE, frozenset())).claims
    return batch_id, claim


async def test_a_cancel_waits_for_a_retry_that_is_being_settled(ground: Ground, holder: asyncpg.Connection) -> None:
    # N4.3: the cancel would find the delivery still claimed, take itself for done, and leave it ready for a retry
    batch_id, claim = await one_claimed(ground)
    await holder.execute("BEGIN")
    await holder.execute(HOLD)
    settling = asyncio.create_task(
        ground.store.queue.settle([ground.settlement(claim, Verdict.RETRY, code="BUSY", after=SECOND)])
    )
    await until_somebody_waits(holder)
    cancelling = asyncio.create_task(ground.store.batches.begin_cancel(HERE, batch_id))
    await asyncio.wait([cancelling], timeout=0.2)
    while cancelling.done() and await ground.store.batches.cancel_page(50):
        pass
    await holder.execute("COMMIT")
    await asyncio.gather(settling, cancelling)
    while await ground.store.batches.cancel_page(50):
        pass
    assert await ground.store.queue.unfinished() == 0
    assert (await ground.view(batch_id)).status is Status.CANCELLED


async def test_who_is_decided_about_is_locked_without_a_mark_on_their_row(
    ground: Ground, holder: asyncpg.Connection
) -> None:  # DESIGN 5.5
    await ground.meet(HANAKO)
    await ground.write()
    await holder.execute("BEGIN")
    await holder.execute("SELECT 1 FROM person_locks FOR UPDATE")
    accepting = asyncio.create_task(ground.accept(HANAKO))
    await until_somebody_waits(holder)
    assert not accepting.done()
    await holder.execute("COMMIT")
    await accepting
    assert await holder.fetchval("SELECT xmax::text FROM users") == "0"


async def test_locks_that_a_crash_of_the_database_took_along_are_made_again(
    ground: Ground, holder: asyncpg.Connection
) -> None:
    people = await ground.crowd(30)
    await ground.write()
    await holder.execute("TRUNCATE person_locks")  # as recovery leaves it
    await ground.accept(*people)
    assert len((await ground.store.queue.take(EMAIL, 100, LEASE, frozenset())).claims) == len(people)
    assert await holder.fetchval("SELECT count(*) FROM person_locks") == len(people)


async def test_a_server_lost_while_locks_are_made_again_is_waited_for(
    ground: Ground, holder: asyncpg.Connection
) -> None:  # F6: such a call was answered 500
    await ground.meet(HANAKO)
    await ground.write()
    await holder.execute("TRUNCATE person_locks")
    await holder.execute("BEGIN")
    await holder.execute("LOCK TABLE person_locks IN SHARE MODE")  # they may be looked for, not made
    accepting = asyncio.create_task(ground.accept(HANAKO))
    await until_somebody_waits(holder)
    await holder.execute(END_WHO_WAITS)
    with pytest.raises(ProblemError) as refused:
        await accepting
    assert refused.value.kind.code == "store_unavailable"
    await holder.execute("COMMIT")
    await ground.accept(HANAKO)
    assert await holder.fetchval("SELECT count(*) FROM person_locks") == 1
