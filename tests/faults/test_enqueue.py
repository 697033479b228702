"""Callers' transactions that overlap, race and fail, through every driver of PostgreSQL (W4, W6, W13)."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import pytest
from msgspec import Struct
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from noroshi import NoStoreError, aenqueue, enqueue
from noroshi.domain.categories import Categories
from noroshi.domain.enqueued import RequestState
from noroshi.domain.ids import DEFAULT_TENANT, RequestId, read
from noroshi.flow.accept.enqueued import preparing
from noroshi.flow.address.decide import Addresser
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.ports.batches import Turn
from noroshi.ports.crash_points import CrashPoints
from noroshi.storage.postgres.sql import SQL
from noroshi.storage.postgres.store import PostgresStore
from tests.architecture.tree import ROOT
from tests.cast import HANAKO
from tests.conformance.stores import a_sealer

FINE: dict[str, Any] = {"user_ids": ["hanako"], "template_id": "welcome"}
SERVED = {"email": "acme"}
DECIDE = Addresser(Categories(), SERVED, "en").decide
PATIENCE = 30


@asynccontextmanager
async def a_store(url: str, crash_points: CrashPoints | None = None) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(
        url,
        sealer=a_sealer(),
        meter=NullMeter(),
        crash_points=crash_points or NoCrashPoints(),
        is_unsafe=True,
    )
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    """With one person and one template."""
    async with a_store(postgres_url) as opened:
        await opened.people.put_user(DEFAULT_TENANT, HANAKO.user)
        await opened.templates.add(
            DEFAULT_TENANT,
            "welcome",
            channel="email",
            locale="en",
            variant="",
            subject=None,
            title=None,
            body="Hello",
            metadata={},
            created_by="test",
        )
        yield opened


async def take(store: PostgresStore) -> Turn:
    """One turn of the intake."""
    return await store.batches.keep((), 500, DECIDE, prepare=preparing(SERVED))


async def states(store: PostgresStore) -> Counter[RequestState]:
    return Counter(view.state for view in await store.requests.list_requests(DEFAULT_TENANT, None, None, 1000))


# every driver


class Driver(Struct, frozen=True):
    """A caller's connection: what enqueues, runs a statement, and commits through it."""

    enqueue: Callable[..., Awaitable[str]]
    run: Callable[[str], Awaitable[Any]]
    commit: Callable[[], Awaitable[None]]


def _soon(act: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    async def acted(*words: Any, **named: Any) -> Any:
        return act(*words, **named)

    return acted


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Driver]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield Driver(
            _soon(lambda **fields: enqueue(connection, **fields)),
            _soon(connection.execute),
            _soon(connection.commit),
        )


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncIterator[Driver]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Driver(lambda **fields: aenqueue(connection, **fields), connection.execute, connection.commit)


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Driver]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield Driver(lambda **fields: aenqueue(connection, **fields), connection.execute, transaction.commit)
    await connection.close()


@asynccontextmanager
async def by_an_asyncpg_pool(url: str) -> AsyncIterator[Driver]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Driver(lambda **fields: aenqueue(connection, **fields), connection.execute, transaction.commit)


@asynccontextmanager
async def by_sqlalchemy(url: str) -> AsyncIterator[Driver]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        yield Driver(
            _soon(lambda **fields: enqueue(connection, **fields)),
            _soon(lambda question: connection.execute(text(question))),
            _soon(connection.commit),
        )
    engine.dispose()


@asynccontextmanager
async def by_a_session(url: str) -> AsyncIterator[Driver]:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session:
        yield Driver(
            _soon(lambda **fields: enqueue(session, **fields)),
            _soon(lambda question: session.execute(text(question))),
            _soon(session.commit),
        )
    engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_async(url: str) -> AsyncIterator[Driver]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.connect() as connection:
        yield Driver(
            lambda **fields: aenqueue(connection, **fields),
            lambda question: connection.execute(text(question)),
            connection.commit,
        )
    await engine.dispose()


@asynccontextmanager
async def by_an_async_session(url: str) -> AsyncIterator[Driver]:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    async with AsyncSession(engine) as session:
        yield Driver(
            lambda **fields: aenqueue(session, **fields),
            lambda question: session.execute(text(question)),
            session.commit,
        )
    await engine.dispose()


DRIVERS = [
    by_psycopg,
    by_psycopg_async,
    by_asyncpg,
    by_an_asyncpg_pool,
    by_sqlalchemy,
    by_a_session,
    by_sqlalchemy_async,
    by_an_async_session,
]
every_driver = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)


@every_driver
async def test_a_repeated_key_does_not_abort_the_callers_transaction(
    store: PostgresStore, postgres_url: str, driver: Any
) -> None:
    async with driver(postgres_url) as caller:
        await caller.run("CREATE TABLE orders (order_id text)")
        first = await caller.enqueue(**FINE, idempotency_key="order-17")
        again = await caller.enqueue(**FINE, idempotency_key="order-17")
        other = await caller.enqueue(**FINE)
        await caller.run("INSERT INTO orders VALUES ('order-17')")
        assert await states(store) == {}
        await caller.commit()
    assert first == again != other
    assert len((await take(store)).enqueued) == 2
    assert await states(store) == {RequestState.TAKEN: 2}


@every_driver
async def test_what_is_never_committed_is_never_sent(store: PostgresStore, postgres_url: str, driver: Any) -> None:
    async with driver(postgres_url) as caller:
        await caller.enqueue(**FINE)
        await caller.run("ROLLBACK")
    assert (await take(store)).enqueued == []
    assert await states(store) == {}


@every_driver
async def test_a_database_without_our_tables_is_said_to_be_so(postgres_url: str, driver: Any) -> None:
    async with driver(postgres_url) as caller:
        with pytest.raises(NoStoreError, match="noroshi migrate"):
            await caller.enqueue(**FINE)
        await caller.run("ROLLBACK")


async def test_the_grants_of_the_docs_are_enough(store: PostgresStore, postgres_url: str) -> None:
    page = (ROOT / "docs" / "how-to" / "enqueue.md").read_text(encoding="utf-8")
    (grants,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    role = f"shop_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role}")
        try:
            owner.execute(grants.replace("shop", role))
            owner.execute(f"SET ROLE {role}")
            first = enqueue(owner, **FINE, idempotency_key="order-17")
            assert enqueue(owner, **FINE, idempotency_key="order-17") == first
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                owner.execute("SELECT body FROM noroshi.requests")
        finally:
            owner.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")
    assert len((await take(store)).enqueued) == 1


# transactions that overlap


async def _commit_in_turn(store: PostgresStore, url: str) -> None:
    """A caller begins first and commits last; what others committed meanwhile is taken meanwhile."""
    async with by_psycopg_async(url) as slow, by_psycopg_async(url) as quick:
        await slow.enqueue(**FINE, data={"n": "slow"})
        await quick.enqueue(**FINE, data={"n": "quick"})
        await quick.commit()
        assert len((await take(store)).enqueued) == 1
        await slow.commit()
    await take(store)


async def test_what_was_enqueued_earlier_and_committed_later_is_found(
    store: PostgresStore, postgres_url: str
) -> None:  # W6
    await _commit_in_turn(store, postgres_url)
    assert await states(store) == {RequestState.TAKEN: 2}


async def test_a_mark_of_how_far_one_has_read_would_lose_it(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W6, the control
    monkeypatch.setitem(
        SQL,
        "waiting_requests",
        "SELECT tenant, request_id, created_by, octet_length(body) FROM requests WHERE created_at > "
        "(SELECT coalesce(max(created_at), 0) FROM requests WHERE state > 0) ORDER BY created_at LIMIT $1",
    )
    await _commit_in_turn(store, postgres_url)
    assert await states(store) == {RequestState.TAKEN: 1, RequestState.WAITING: 1}


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_who_races_for_a_key_waits_for_the_winner_and_goes_on(
    store: PostgresStore, postgres_url: str, end: str
) -> None:  # W13
    async with by_asyncpg(postgres_url) as first, by_asyncpg(postgres_url) as second, asyncio.timeout(PATIENCE):
        held = await first.enqueue(**FINE, idempotency_key="order-17")
        racing = asyncio.ensure_future(second.enqueue(**FINE, idempotency_key="order-17"))
        await _until_one_waits(postgres_url)
        await first.run(end)
        won = await racing
        await second.run("SELECT 1")
        await second.commit()
    assert (won == held) is (end == "COMMIT")
    assert len((await take(store)).enqueued) == 1


async def _until_one_waits(url: str) -> None:
    connection = await asyncpg.connect(url)
    question = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not await connection.fetchval(question):
        await asyncio.sleep(0.01)
    await connection.close()


async def test_of_two_hundred_racing_callers_each_key_is_one_request_and_one_batch(
    store: PostgresStore, postgres_url: str
) -> None:
    callers, keys, processes = 200, 100, 3
    enqueued = asyncio.Event()

    async def call(pool: Any, number: int) -> tuple[str, str]:
        key = f"order-{number % keys}"
        async with pool.acquire() as connection, connection.transaction():
            return key, await aenqueue(connection, **FINE, data={"order": key}, idempotency_key=key)

    async def serve(other: PostgresStore) -> int:
        taken = 0
        while not enqueued.is_set() or await other.requests.oldest_waiting() is not None:
            taken += len((await take(other)).enqueued)
        return taken

    async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE):
        stores = [await stack.enter_async_context(a_store(postgres_url)) for _ in range(processes)]
        pool = await stack.enter_async_context(asyncpg.create_pool(postgres_url, min_size=1, max_size=20))
        serving = [asyncio.ensure_future(serve(other)) for other in stores]
        answers = await asyncio.gather(*(call(pool, number) for number in range(callers)))
        enqueued.set()
        taken = [await one for one in serving]
    assert (sum(taken), len(set(answers))) == (keys, keys)
    assert await states(store) == {RequestState.TAKEN: keys}
    batches = [view.batch_id for view in await store.requests.list_requests(DEFAULT_TENANT, None, None, 1000)]
    assert len(set(batches)) == keys


# processes that end


class EndedError(Exception):
    """The process is gone."""


class EndAt:
    def __init__(self, place: str) -> None:
        self._place = place

    def reach(self, name: str) -> None:
        if name == self._place:
            raise EndedError(name)


@pytest.mark.parametrize(("edge", "taken_again"), [("before", 1), ("after", 0)])
async def test_whoever_ends_while_taking_leaves_exactly_one_batch(
    store: PostgresStore, postgres_url: str, edge: str, taken_again: int
) -> None:  # W4
    async with by_psycopg_async(postgres_url) as caller:
        request_id = await caller.enqueue(**FINE, idempotency_key="order-17")
        await caller.commit()
    async with a_store(postgres_url, EndAt(f"commit.take_requests.{edge}")) as ending:
        with pytest.raises(EndedError):
            await take(ending)
    assert len((await take(store)).enqueued) == taken_again
    view = await store.requests.find(DEFAULT_TENANT, RequestId(read(request_id) or b""))
    assert view is not None
    assert view.state is RequestState.TAKEN
    assert view.batch_id is not None
    assert await store.batches.find(DEFAULT_TENANT, view.batch_id) is not None
    assert await store.queue.unfinished() == 1
