"""The stores that tests take as a parameter, and databases at the current schema for those of them that need one."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from noroshi.domain.instants import Instant, at
from noroshi.machine.clock import SystemClock
from noroshi.storage.postgres.connection import connect, migrate
from noroshi.storage.postgres.days import make_days_ahead
from tests.services.databases import Databases

KINDS = ("sqlite", "postgres")
"""Every feature exists on each of these."""

MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""When a test in virtual time begins unless it says otherwise: 18:00 in Tokyo, 09:00 in London."""

OpenDatabase = Callable[[], str]


def hasty(url: str) -> str:
    """The same database, where a commit is answered before it is on the disk: as safe as tests in which no server
    dies have to be, and ten times as quick. The store calls that unsafe."""
    return f"{url}?synchronous_commit=off"


def make_schema(url: str) -> None:
    """What every database begins with: the schema, and the days around today and around that Monday. A test that
    comes to other days has them made, and costs a database."""
    asyncio.run(_make_schema(url, [SystemClock().now(), at(MONDAY)]))


async def _make_schema(url: str, starts: list[Instant]) -> None:
    connection = await connect(url)
    await migrate(connection)
    for start in starts:
        await make_days_ahead(connection, start)
    await connection.close()


@pytest.fixture
def postgres_schema(postgres_databases: Databases) -> Iterator[OpenDatabase]:
    """Each call answers the URL of another database at the current schema, with nothing in it."""
    with ExitStack() as used:
        yield lambda: used.enter_context(postgres_databases.fresh(make_schema))
