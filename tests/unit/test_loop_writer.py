"""The writer on the loop: what is urgent goes first, a foreign lock stops nobody but those who write, what waits at the
end is kept."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.conformance.stores import HandClock

from noroshi.domain.problems import ProblemError
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.storage.sqlite import loop_writer
from noroshi.storage.sqlite.checkpoints import Checkpoints
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.loop_writer import HELD_PATIENCE_MS, LoopWriter
from noroshi.storage.sqlite.readers import ThreadReaders
from noroshi.storage.sqlite.writer import CommitGroup
from noroshi.storage.turns import Statements, Turn


class Ground:
    """A file, a writer on it, and what was committed there, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        connection = open_connection(str(path))
        migrate(connection)
        self.group = CommitGroup(
            connection, HandClock(), NullMeter(), NoCrashPoints(), busy_patience_ms=HELD_PATIENCE_MS
        )
        self.broken = 0
        self.writer = LoopWriter(self.group, Checkpoints(lambda: open_connection(str(path))), self._note)

    def _note(self) -> None:
        self.broken += 1

    def put(self, name: str, *, is_urgent: bool = False, fails: type[Exception] | None = None) -> "asyncio.Task[str]":
        async def work(turn: Turn) -> str:
            turn.connection.execute("INSERT INTO tenants (name) VALUES (?)", (name,))  # type: ignore[attr-defined]
            if fails is not None:
                raise fails(name)
            return name

        return asyncio.create_task(self.writer.turn("put", work, is_urgent=is_urgent))

    def open_reader(self) -> apsw.Connection:
        return open_connection(str(self.path), is_reader=True)

    def kept(self) -> list[str]:
        reader = apsw.Connection(str(self.path))
        try:
            return [
                str(name) for (name,) in reader.execute("SELECT name FROM tenants WHERE tenant > 1 ORDER BY tenant")
            ]
        finally:
            reader.close()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path / "noroshi.db")
    yield made
    made.writer.close()


async def test_what_is_urgent_goes_first_and_all_that_came_at_once_shares_a_commit(ground: Ground) -> None:
    commits: list[int] = []
    commit = ground.group.commit

    def note(jobs: Any, **how: Any) -> int:
        commits.append(len(jobs))
        return commit(jobs, **how)

    ground.group.commit = note  # type: ignore[method-assign]
    turns = [ground.put("first"), ground.put("urgent", is_urgent=True), ground.put("second")]
    assert await asyncio.gather(*turns) == ["first", "urgent", "second"]
    assert ground.kept() == ["urgent", "first", "second"]
    assert commits == [3]


async def test_an_answer_goes_out_before_the_next_group_is_begun(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noroshi.storage.sqlite.writer.GROUP_BUDGET_SECONDS", 0.0)
    turns = [ground.put("first"), ground.put("second"), ground.put("third")]
    await turns[0]
    assert not any(turn.done() for turn in turns[1:])
    assert await asyncio.gather(*turns) == ["first", "second", "third"]


async def test_whoever_writes_elsewhere_is_waited_for_and_the_loop_goes_on(ground: Ground) -> None:
    holder = apsw.Connection(str(ground.path))
    holder.execute("BEGIN IMMEDIATE")
    turns = [ground.put("usual"), ground.put("urgent", is_urgent=True)]
    longest, clock = 0.0, asyncio.get_running_loop().time
    for _ in range(30):
        began = clock()
        await asyncio.sleep(0.005)
        longest = max(longest, clock() - began)
    assert not any(turn.done() for turn in turns)
    holder.execute("COMMIT")
    holder.close()
    assert await asyncio.gather(*turns) == ["usual", "urgent"]
    assert ground.kept() == ["urgent", "usual"]
    assert longest < 1


async def test_a_lock_that_is_held_too_long_is_said_to_the_callers(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_writer, "_LOOKS", 3)
    holder = apsw.Connection(str(ground.path))
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(ProblemError, match="store_unavailable"):
        await ground.put("refused")
    holder.close()
    assert await ground.put("kept") == "kept"
    assert ground.kept() == ["kept"]
    assert not ground.broken


async def test_after_a_failed_disk_everybody_is_refused_and_it_is_said_once(ground: Ground) -> None:
    turns = [ground.put("first", fails=apsw.IOError), ground.put("second")]
    ended = await asyncio.gather(*turns, return_exceptions=True)
    assert [type(one) for one in ended] == [ProblemError, ProblemError]
    with pytest.raises(ProblemError, match="store_unavailable"):
        await ground.put("late")
    assert ground.kept() == []
    assert ground.broken == 1


async def test_at_the_end_a_foreign_lock_is_waited_for(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "noroshi.db")
    holder = apsw.Connection(str(ground.path))
    holder.execute("BEGIN IMMEDIATE")
    last = ground.put("last")
    await asyncio.sleep(0.05)
    threading.Timer(0.2, holder.execute, ("ROLLBACK",)).start()
    ground.writer.close()
    assert await last == "last"
    assert ground.kept() == ["last"]


async def test_what_waits_at_the_end_is_kept(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "noroshi.db")
    turns = [ground.put("first"), ground.put("second")]
    await asyncio.sleep(0)
    ground.writer.close()
    assert await asyncio.gather(*turns) == ["first", "second"]
    with pytest.raises(ProblemError, match="store_unavailable"):
        await ground.put("late")
    assert ground.kept() == ["first", "second"]


async def where_read(statements: Statements) -> tuple[str, list[str]]:
    rows = statements.connection.execute("SELECT name FROM tenants WHERE tenant > 1")  # type: ignore[attr-defined]
    return threading.current_thread().name, [name for (name,) in rows]


async def test_what_is_brief_is_read_on_the_loop_and_everything_else_in_a_thread(ground: Ground) -> None:
    readers = ThreadReaders(ground.open_reader, HandClock(), near=ground.group.connection)
    await ground.put("kept")
    here = threading.current_thread().name
    assert await readers.read(where_read, is_brief=True) == (here, ["kept"])
    thread, rows = await readers.read(where_read)
    assert (thread.startswith("noroshi-reader"), rows) == (True, ["kept"])
    readers.close()


async def test_beside_a_turn_that_could_be_neither_kept_nor_undone_a_thread_reads(ground: Ground) -> None:
    readers = ThreadReaders(ground.open_reader, HandClock(), near=ground.group.connection)
    await ground.put("kept")
    ground.group.connection.execute("BEGIN IMMEDIATE")
    ground.group.connection.execute("INSERT INTO tenants (name) VALUES ('in doubt')")
    thread, rows = await readers.read(where_read, is_brief=True)
    assert (thread.startswith("noroshi-reader"), rows) == (True, ["kept"])
    ground.group.connection.execute("ROLLBACK")
    readers.close()
