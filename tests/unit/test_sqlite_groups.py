"""Commit groups: a turn that fails leaves nothing behind and takes no other with it, alone or in company."""

import asyncio
from typing import Any

import pytest
from tests.conformance.stores import HandClock

from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.writer import CommitGroup, InlineWriter
from noroshi.storage.turns import Turn


def a_writer() -> tuple[InlineWriter, Any]:
    connection = open_connection(":memory:")
    migrate(connection)
    return InlineWriter(CommitGroup(connection, HandClock(), NullMeter(), NoCrashPoints())), connection


async def put(turn: Turn, name: str, *, fails: bool = False) -> str:
    turn.connection.execute("INSERT INTO tenants (name) VALUES (?)", (name,))  # type: ignore[attr-defined]
    if fails:
        raise LookupError(name)
    return name


@pytest.mark.parametrize("company", [0, 1, 3])
async def test_a_turn_that_fails_leaves_nothing_and_takes_no_other_with_it(company: int) -> None:
    writer, connection = a_writer()
    names = [f"other-{number}" for number in range(company)]
    for fails in (False, True, False):
        turns = [writer.turn("put", lambda turn, name=name: put(turn, name)) for name in names]
        odd = writer.turn("put", lambda turn: put(turn, "odd", fails=fails))  # noqa: B023 - it is over in this round
        answers = await asyncio.gather(*turns[:1], odd, *turns[1:], return_exceptions=True)
        assert [type(one) for one in answers].count(LookupError) == fails
        assert not connection.in_transaction
    kept = [name for (name,) in connection.execute("SELECT name FROM tenants WHERE tenant > 1")]
    assert sorted(kept) == sorted([*names * 3, "odd", "odd"])
