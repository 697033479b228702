"""Turns and readings whose loop is gone in the middle: they end in silence, for there is nobody left to ask."""

from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from dispatch_cast import CountingMeter, HandClock, RecordedCrashPoints

from noroshi.storage.postgres.turns import PostgresReadings, PostgresTurns


class Never:
    def __await__(self) -> Generator[None, None, None]:
        yield


class ReleasedConnection:
    """Never answers; its pool has taken it back meanwhile."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def execute(self, statement: str) -> None:
        self.told.append(statement)
        await Never()

    def is_closed(self) -> bool:
        raise asyncpg.InterfaceError("connection has been released back to the pool")


class OnePool:
    def __init__(self, connection: ReleasedConnection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Any]:
        yield self._connection


async def nothing(_statements: Any) -> None: ...


def turn(pool: Any) -> Coroutine[Any, Any, None]:
    return PostgresTurns(pool, HandClock(), CountingMeter(), RecordedCrashPoints()).turn("work", nothing)


def reading(pool: Any) -> Coroutine[Any, Any, None]:
    return PostgresReadings(pool, HandClock()).read(nothing)


@pytest.mark.parametrize("begin", [turn, reading])
def test_what_is_under_way_when_the_loop_goes_ends_in_silence(begin: Any) -> None:
    connection = ReleasedConnection()
    work = begin(OnePool(connection))
    work.send(None)
    work.close()
    assert len(connection.told) == 1
