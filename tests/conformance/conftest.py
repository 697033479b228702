"""Every test of this folder gets a fresh store of each kind, and the ground to stand on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noroshi.ports.clock import Clock
from tests.conformance.ground import Ground
from tests.conformance.stores import STORES, HandClock, Store


@pytest.fixture
def clock() -> Clock:
    return HandClock()


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    is_file = request.param != "postgres"
    place = str(tmp_path / "noroshi.db") if is_file else request.getfixturevalue("postgres_schema")()
    opened = STORES[request.param](place, clock)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
def ground(store: Store, clock: HandClock) -> Ground:
    return Ground(store, clock)
