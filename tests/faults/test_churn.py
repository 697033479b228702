"""Growth: deliveries come and go all day, and the tables they pass through stay as small as what is alive."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from noroshi.domain.deliveries import Settlement, Verdict
from noroshi.domain.ids import new_batch_id, notification_id
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.storage.postgres.store import PostgresStore
from tests.conformance.ground import Ground
from tests.conformance.stores import HandClock, a_sealer
from tests.services.fixtures import StartPostgres

LANE = Lane("email", "acme", Priority.NORMAL)
WHOLE = 200_000
ALIVE = 20_000
STEP = 500
MOST_GROWTH = 5


class Churn:
    """Puts deliveries into a lane and takes them out again, in small steps."""

    def __init__(self, store: PostgresStore, connection: asyncpg.Connection) -> None:
        self._store = store
        self._connection = connection
        self._clock = SystemClock()
        self._batch = new_batch_id(self._clock.now() // 1000, 0)
        self.put = 0
        self.largest = 0

    async def prepare(self) -> None:
        """What every delivery refers to."""
        await Ground(self._store, HandClock()).write()
        self._template = await self._connection.fetchval("SELECT template_row FROM noroshi.templates")
        await self._connection.execute(
            "INSERT INTO noroshi.batch_bodies (tenant, batch_id, data, user_ids) VALUES (1, $1, '{}', '[]')",
            self._batch,
        )

    async def fill(self, count: int) -> None:
        now = self._clock.now()
        template = self._template
        rows = [
            (1, notification_id(self._batch, n, 0), 1, LANE.name, now, f"guest-{n}", "general", template, None, now)
            for n in range(self.put, self.put + count)
        ]
        columns = ("tenant", "notification_id", "endpoint_id", "lane", "due_at", "user_id", "category", "template_row")
        await self._connection.copy_records_to_table(
            "deliveries", schema_name="noroshi", columns=(*columns, "expires_at", "wanted_at"), records=rows
        )
        self.put += count

    async def drain(self, count: int) -> None:
        taken = await self._store.queue.take(LANE, count, timedelta(seconds=40), frozenset())
        assert len(taken.claims) == count
        now = self._clock.now()
        await self._store.queue.settle(
            [Settlement(claim.key, claim.fence, Verdict.SENT, now, now, due_at=now) for claim in taken.claims]
        )

    async def size(self) -> int:
        size: int = await self._connection.fetchval("SELECT pg_total_relation_size('noroshi.deliveries')")
        self.largest = max(self.largest, size)
        return size


@pytest.mark.slow
async def test_a_lane_through_which_many_pass_stays_as_small_as_what_waits_in_it(
    start_postgres: StartPostgres,
) -> None:  # B12
    server = start_postgres(autovacuum_naptime="1s")
    store = PostgresStore(server.url, sealer=a_sealer(), meter=NullMeter(), crash_points=NoCrashPoints())
    await store.start()
    connection = await asyncpg.connect(server.url)
    churn = Churn(store, connection)
    try:
        await churn.prepare()
        await churn.fill(ALIVE)
        full = await churn.size()
        while churn.put < WHOLE:
            await asyncio.gather(churn.fill(STEP), churn.drain(STEP))
            await churn.size()
        vacuums = await connection.fetchval(
            "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'deliveries'"
        )
    finally:
        await connection.close()
        await store.stop()
    print(f"deliveries: {full} bytes with {ALIVE} rows, at most {churn.largest} bytes; {vacuums} vacuums")
    assert vacuums > 0
    assert churn.largest < MOST_GROWTH * full
