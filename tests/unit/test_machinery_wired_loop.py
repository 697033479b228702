"""The loop in virtual time with real connections: time stands still while the server works, and then jumps."""

import asyncio
import time
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest
from tests.faults.machinery.wired_loop import WiredLoop

HOUR = 3600.0


@pytest.fixture
def loop() -> Iterator[WiredLoop]:
    loop = WiredLoop()
    yield loop
    loop.close()


def test_an_hour_passes_at_once_and_no_time_out_of_a_connection_runs_out(loop: WiredLoop, postgres_url: str) -> None:
    async def work() -> list[object]:
        connection = await asyncpg.connect(postgres_url, command_timeout=0.5)
        answers = [await connection.fetchval("SELECT 1")]
        await asyncio.sleep(HOUR)
        answers.append(await connection.fetchval("SELECT 2 FROM pg_sleep(1)"))
        await connection.close()
        return answers

    began = time.monotonic()
    assert loop.run_until_complete(work()) == [1, 2]
    assert loop.time() == HOUR
    assert 1 <= time.monotonic() - began < 30


def test_timers_wait_while_the_server_owes_an_answer(loop: WiredLoop, postgres_url: str) -> None:
    seen: list[str] = []

    async def ask() -> None:
        connection = await asyncpg.connect(postgres_url)
        loop.call_later(0.001, seen.append, "timer")
        await connection.execute("SELECT pg_sleep(0.3)")
        seen.append("answer")
        await connection.close()
        await asyncio.sleep(0.002)

    loop.run_until_complete(ask())
    assert seen == ["answer", "timer"]


def test_a_closed_loop_leaves_the_server_as_a_dead_process_does(postgres_url: str) -> None:
    loop = WiredLoop()

    async def begin() -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("CREATE TABLE kept (number integer)")
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("INSERT INTO kept VALUES (1)")
        await asyncio.sleep(HOUR)
        await transaction.commit()

    task = loop.create_task(begin())
    loop.run_until_idle(HOUR / 2)
    assert not task.done()
    loop.close()
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE kept")  # once the server has noticed
        assert other.execute("SELECT count(*) FROM kept").fetchone() == (0,)
