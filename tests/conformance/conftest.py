"""Every test of this folder gets a fresh store of each kind, and the ground to stand on."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from noroshi.ports.clock import Clock
from tests.callers import ForeignCaller
from tests.conformance.ground import Ground
from tests.conformance.places import place  # noqa: F401
from tests.conformance.stores import STORES, HandClock, Store


@pytest.fixture
def clock() -> Clock:
    return HandClock()


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    if request.param == "postgres":
        if "PGURL" not in os.environ:
            pytest.skip("service missing: postgres")

        c = await asyncpg.connect(os.environ["PGURL"])
        await c.execute("DROP SCHEMA IF EXISTS noroshi CASCADE")
        await c.close()
    opened = STORES[request.param](tmp_path, clock)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
def caller(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Iterator[ForeignCaller]:
    """With a connection of its own to where the store lies."""
    is_on_postgres = request.node.callspec.params["store"] == "postgres"
    with ForeignCaller(os.environ["PGURL"] if is_on_postgres else str(tmp_path / "noroshi.db")) as opened:
        yield opened


@pytest.fixture
def ground(store: Store, clock: HandClock) -> Ground:
    return Ground(store, clock)
