"""Every test of this folder gets a fresh store of each kind, and the ground to stand on."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from noroshi.ports.clock import Clock
from tests.callers import ForeignCaller
from tests.conformance.ground import Ground
from tests.conformance.places import place  # noqa: F401
from tests.conformance.shop_counter import Counter
from tests.conformance.stores import STORES, HandClock, Store
from tests.stores import postgres_schema  # noqa: F401


@pytest.fixture
def clock() -> Clock:
    return HandClock()


@pytest.fixture
def lies_at(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the store is: the path of a file, or the URL of a database."""
    is_on_postgres = request.node.callspec.params["store"] == "postgres"
    return str(request.getfixturevalue("postgres_schema")() if is_on_postgres else tmp_path / "noroshi.db")


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, lies_at: str, clock: Clock) -> AsyncIterator[Store]:
    opened = STORES[request.param](lies_at, clock)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
def caller(store: Store, lies_at: str) -> Iterator[ForeignCaller]:
    """With a connection of its own to where the store lies."""
    with ForeignCaller(lies_at) as opened:
        yield opened


@pytest.fixture
def ground(store: Store, clock: HandClock) -> Ground:
    return Ground(store, clock)


@pytest.fixture
async def counter(store: Store, clock: HandClock) -> Counter:
    return await Counter(store, clock).open()
