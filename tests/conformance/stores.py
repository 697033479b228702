"""The stores under test: a name, a place and a clock in, an open store out."""

import asyncio
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from noroshi.domain.instants import Instant, at, plus
from noroshi.keeper.answering import Answering, Told
from noroshi.keeper.line import CLOSE, OPEN, Line, Notice, RemotePorts
from noroshi.keeper.methods import Method
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.machine.sealing import AesSealer
from noroshi.ports.clock import Clock
from noroshi.ports.meter import Meter
from noroshi.ports.sealer import Sealer
from noroshi.ports.store import StorePorts
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import open_inline_store, open_store
from tests import stores
from tests.stores import hasty

MONDAY = at(stores.MONDAY)


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


Store = StorePorts
"""Every port that a store implements."""


def a_sealer() -> Sealer:
    return AesSealer({1: b"m" * 32}, b"b" * 32)


def _broken() -> None:
    raise AssertionError("the disk is said to have failed")


def _sqlite_with_threads(path: str, clock: Clock, *, is_apart: bool = False) -> Store:
    return open_store(
        path,
        sealer=a_sealer(),
        clock=clock,
        meter=NullMeter(),
        crash_points=NoCrashPoints(),
        on_broken=_broken,
        synchronous="OFF",
        is_apart=is_apart,
    )


class OverALine(RemotePorts):
    """A store behind a keeper's line whose two ends are in one loop, so that both have the test's clock."""

    def __init__(self, store: Callable[[], Store]) -> None:
        super().__init__(self._ask)
        self._open = store

    async def _ask(self, topic: int, value: object, method: Method | None = None) -> Any:
        return await self._line.ask(topic, value, method)

    async def start(self) -> int:
        loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()
        _, self._line = await loop.create_unix_connection(lambda: Line(NullMeter(), _noted, _lost), sock=ours)
        await loop.create_unix_connection(lambda: Answering(self._opened), sock=theirs)
        schema: int = await self._ask(OPEN, None)
        return schema

    def _opened(self, _order: bytes, _meter: Meter, _told: Told) -> Store:
        return self._open()

    async def stop(self) -> None:
        await self._ask(CLOSE, None)
        await self._line.closed


def _noted(notice: Notice) -> None:
    raise AssertionError(notice)


def _lost() -> None:
    """At the end."""


def _sqlite_keeper(path: str, clock: Clock) -> Store:
    return OverALine(lambda: _sqlite_with_threads(path, clock, is_apart=True))


def _sqlite_inline(path: str, clock: Clock) -> Store:
    return open_inline_store(
        open_connection(path, synchronous="OFF"),
        sealer=a_sealer(),
        clock=clock,
        meter=NullMeter(),
        crash_points=NoCrashPoints(),
    )


def _postgres(url: str, clock: Clock) -> Store:
    return PostgresStore(
        hasty(url),
        sealer=a_sealer(),
        meter=NullMeter(),
        crash_points=NoCrashPoints(),
        clock=clock,
        is_unsafe=True,
    )


STORES: dict[str, Callable[[str, Clock], Store]] = {
    "sqlite-threads": _sqlite_with_threads,
    "sqlite-inline": _sqlite_inline,
    "sqlite-keeper": _sqlite_keeper,
    "postgres": _postgres,
}
"""A new store is one line here; then it has to pass everything in this folder."""
