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
    opened = STORES[request.param](tmp_path, clock)
    yield opened
    opened.close()


@pytest.fixture
def ground(store: Store, clock: HandClock) -> Ground:
    return Ground(store, clock)
