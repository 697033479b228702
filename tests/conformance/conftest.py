"""Every test of this folder gets a fresh store of each kind, and the ground to stand on."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from noroshi.ports.clock import Clock
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
def ground(store: Store, clock: HandClock) -> Ground:
    return Ground(store, clock)
