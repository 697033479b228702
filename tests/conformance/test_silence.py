"""What only PostgreSQL has: sessions of processes that froze amid a turn, whose locks everybody else would wait for."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from noroshi.storage.postgres.connection import LOST, Pool, connect, end_silent, migrate

AT_ONCE = timedelta(0)
NAMED = "UPDATE marks SET value = 'held' WHERE name = 'one'"


@pytest.fixture
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    lone = await connect(postgres_url)
    await migrate(lone)
    await lone.execute("INSERT INTO marks (tenant, name, value, at) VALUES (0, 'one', '', 0)")
    await lone.close()
    pool = Pool(postgres_url, 3)
    await pool.open()
    yield pool
    await pool.close()


async def stop_amid_preparing(connection: asyncpg.Connection) -> None:
    """A row is locked, and of the next statement only the first half is ever said."""
    await connection.execute("BEGIN")
    await connection.execute(NAMED)
    await connection.prepare("SELECT $1::integer")


async def test_who_falls_silent_while_preparing_loses_his_locks(pool: Pool) -> None:  # F10
    async with pool.borrow() as frozen, pool.borrow() as another, pool.borrow() as sweeping:
        await stop_amid_preparing(frozen)
        waiting = asyncio.create_task(another.execute(NAMED))
        assert await end_silent(sweeping) == 0  # it is not silent for long enough yet
        assert not waiting.done()
        assert await end_silent(sweeping, AT_ONCE) == 1
        await waiting
        with pytest.raises(LOST):
            await frozen.fetchval("SELECT 1")


async def test_who_waits_for_a_lock_or_between_turns_is_left_alone(pool: Pool) -> None:
    async with pool.borrow() as busy, pool.borrow() as waits, pool.borrow() as sweeping:
        await busy.execute("BEGIN")
        await busy.execute(NAMED)
        waiting = asyncio.create_task(waits.execute(NAMED))
        while not await sweeping.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            pass
        assert await end_silent(sweeping, AT_ONCE) == 0
        await busy.execute("COMMIT")
        await waiting
        assert await end_silent(sweeping, AT_ONCE) == 0
