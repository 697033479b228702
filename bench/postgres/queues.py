"""The peers of B2 and B3: pgqueuer and procrastinate on the same server; jobs in, seconds out.

python -m bench.postgres.queues pgqueuer|procrastinate URL JOBS
"""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import asyncpg
import msgspec
import procrastinate
import uvloop
from msgspec import Struct
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.types import QueueExecutionMode
from procrastinate.jobs import DeleteJobCondition

A_CALL = 5_000
A_CLAIM = 100
PAYLOAD = b'{"user_id":"u000001","template_id":"bench-note","data":{"order":"m-000000001","total":4200}}' + 160 * b" "


class Queued(Struct):
    """How long enqueueing and draining took, with the CPU-seconds of this process, and how many were done."""

    enqueue_seconds: float
    enqueue_cpu: float
    drain_seconds: float
    drain_cpu: float
    done: int
    left: int


async def with_pgqueuer(url: str, jobs: int) -> Queued:
    connection = await asyncpg.connect(url)
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.install()
    began, used = time.perf_counter(), time.process_time()
    for first in range(0, jobs, A_CALL):
        some = min(A_CALL, jobs - first)
        await queries.enqueue(["noop"] * some, [PAYLOAD] * some, [0] * some)
    enqueued = time.perf_counter() - began, time.process_time() - used
    queue = PgQueuer(driver)
    done = 0

    @queue.entrypoint("noop")
    async def noop(_job: object) -> None:
        nonlocal done
        done += 1

    began, used = time.perf_counter(), time.process_time()
    await queue.qm.run(batch_size=A_CLAIM, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1))
    drained = time.perf_counter() - began, time.process_time() - used
    left = await connection.fetchval("SELECT count(*) FROM pgqueuer")
    await connection.close()
    return Queued(*enqueued, *drained, done, left)


async def with_procrastinate(url: str, jobs: int) -> Queued:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    done = 0
    text: Any = PAYLOAD.decode()

    @app.task(name="noop")
    async def noop(payload: str) -> None:
        nonlocal done
        done += len(payload) > 0

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began, used = time.perf_counter(), time.process_time()
        for first in range(0, jobs, 1_000):
            some = min(1_000, jobs - first)
            await noop.configure().batch_defer_async(*[{"payload": text}] * some)
        enqueued = time.perf_counter() - began, time.process_time() - used
        began, used = time.perf_counter(), time.process_time()
        await app.run_worker_async(
            wait=False, concurrency=20, delete_jobs=DeleteJobCondition.SUCCESSFUL, install_signal_handlers=False
        )
        drained = time.perf_counter() - began, time.process_time() - used
        left = jobs - done
    return Queued(*enqueued, *drained, done, left)


PEERS: dict[str, Callable[[str, int], Coroutine[Any, Any, Queued]]] = {
    "pgqueuer": with_pgqueuer,
    "procrastinate": with_procrastinate,
}


if __name__ == "__main__":
    _, name, where, how_many = sys.argv
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(PEERS[name](where, int(how_many)))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))
