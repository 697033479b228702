"""Every story gets a world of its own; whoever needs another day or other settings builds one.

The rounds that catch what was forgotten (looks, sweeps, polls) are taken away: what a story tells must come about by
itself and in time, and hours pass quickly. A story about those rounds asks for them."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from noroshi.bootstrap import opening
from noroshi.flow import way
from noroshi.flow.accept import enqueued, intake
from noroshi.flow.dispatch import sweeper
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.storage.postgres import announcing
from tests.stores import KINDS, MONDAY, postgres_schema  # noqa: F401
from tests.stories.world import World

Build = Callable[..., World]
OpenStore = Callable[[], dict[str, str]]
"""Answers the settings that put a product on a store of its own."""

NEVER = timedelta(days=1)


def take_rounds_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "DispatchSettings", partial(DispatchSettings, look_every=NEVER, pauses_every=NEVER))
    monkeypatch.setattr(sweeper, "EVERY", NEVER)
    monkeypatch.setattr(intake, "_POLL", NEVER)
    monkeypatch.setattr(enqueued, "EVERY", NEVER)
    monkeypatch.setattr(way, "_TIDY_EVERY", NEVER)
    monkeypatch.setattr(announcing, "_HEARTBEAT_SECONDS", NEVER.total_seconds())


@pytest.fixture
def rounds() -> bool:
    """Whether the world has its rounds; a story overrides it."""
    return False


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> OpenStore:
    if request.param == "sqlite":
        return dict
    open_database = request.getfixturevalue("postgres_schema")
    return lambda: {"store": open_database()}


@pytest.fixture
def build(tmp_path: Path, rounds: bool, store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """Builds worlds: `build(start, max_unfinished="3")`."""
    if not rounds:
        take_rounds_away(monkeypatch)
    built: list[World] = []

    def make(start: datetime = MONDAY, **settings: str) -> World:
        built.append(World(tmp_path / str(len(built)), start, **store(), **settings))
        return built[-1]

    yield make
    for world in built:
        if not world.loop.is_closed():
            world.stop()


@pytest.fixture
def world(build: Build) -> World:
    return build()


with_rounds = pytest.mark.parametrize("rounds", [True], ids=["rounds"])
