"""The stores under test: a name, a folder and a clock in, an open store out."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from noroshi.domain.instants import Instant, at, plus
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.machine.sealing import AesSealer
from noroshi.ports.accounts import Accounts
from noroshi.ports.announcements import Announcements
from noroshi.ports.batches import Batches
from noroshi.ports.caught import Caught
from noroshi.ports.clock import Clock
from noroshi.ports.dead_letters import DeadLetters
from noroshi.ports.devices import Devices
from noroshi.ports.doubts import RestoredDoubts
from noroshi.ports.duties import Duties
from noroshi.ports.history import History
from noroshi.ports.keys import Keys
from noroshi.ports.marks import Marks
from noroshi.ports.pauses import Pauses
from noroshi.ports.people import People
from noroshi.ports.queue import Queue
from noroshi.ports.requests import Requests
from noroshi.ports.sealer import Sealer
from noroshi.ports.templates import Templates
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import open_inline_store, open_store

MONDAY = at(datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
"""When every test begins, unless it says otherwise: 18:00 in Tokyo, 09:00 in London."""


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, start: Instant = MONDAY) -> None:
        self._now = start

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._now / 1_000_000

    def move(self, span: timedelta) -> None:
        self._now = plus(self._now, span)

    async def sleep(self, span: timedelta) -> None:
        raise NotImplementedError("a store never waits by the clock")


class Store(Protocol):
    """Every port that a store implements."""

    @property
    def accounts(self) -> Accounts: ...
    @property
    def batches(self) -> Batches: ...
    @property
    def caught(self) -> Caught: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def devices(self) -> Devices: ...
    @property
    def doubts(self) -> RestoredDoubts: ...
    @property
    def duties(self) -> Duties: ...
    @property
    def history(self) -> History: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def marks(self) -> Marks: ...
    @property
    def pauses(self) -> Pauses: ...
    @property
    def people(self) -> People: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def templates(self) -> Templates: ...

    def announcements(self, clock: Clock) -> Announcements: ...
    async def start(self) -> int: ...
    async def stop(self) -> None: ...


def a_sealer() -> Sealer:
    return AesSealer({1: b"m" * 32}, b"b" * 32)


def _broken() -> None:
    raise AssertionError("the disk is said to have failed")


def _sqlite_with_threads(folder: Path, clock: Clock) -> Store:
    return open_store(
        str(folder / "noroshi.db"),
        sealer=a_sealer(),
        clock=clock,
        meter=NullMeter(),
        crash_points=NoCrashPoints(),
        on_broken=_broken,
        synchronous="OFF",
    )


def _sqlite_inline(folder: Path, clock: Clock) -> Store:
    return open_inline_store(
        open_connection(str(folder / "noroshi.db"), synchronous="OFF"),
        sealer=a_sealer(),
        clock=clock,
        meter=NullMeter(),
        crash_points=NoCrashPoints(),
    )


def _postgres(_folder: Path, clock: Clock) -> Store:
    return PostgresStore(
        os.environ["PGURL"],
        sealer=a_sealer(),
        meter=NullMeter(),
        crash_points=NoCrashPoints(),
        clock=clock,
    )


STORES: dict[str, Callable[[Path, Clock], Store]] = {
    "sqlite-threads": _sqlite_with_threads,
    "sqlite-inline": _sqlite_inline,
    "postgres": _postgres,
}
"""A new store is one line here; then it has to pass everything in this folder."""
