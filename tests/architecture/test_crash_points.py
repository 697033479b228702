"""Before and after every commit and every outgoing call there is a crash point, and a workload that reaches it (L2)."""

from pathlib import Path

import pytest

from tests.faults.sweep.points import UnreadableError, crash_points, unguarded
from tests.faults.sweep.table import POINTS, UNUSED

WITHOUT_POINTS = {
    "storage/postgres/turns.py:read",  # ends a reading; its transaction cannot write
    "storage/sqlite/connection.py:migrate",  # one transaction with its number, before anything is served
    "storage/sqlite/tables.py:commit",  # a restore or a move, offline; either goes on where it was (test_backups, F23)
    "storage/sqlite/tables.py:put",  # the same
    "storage/sqlite/readers.py:_ask",  # ends a reading; a reader's connection cannot write
}


def test_every_crash_point_has_a_row_in_the_sweep_and_every_row_a_point() -> None:
    assert crash_points() == UNUSED.union(*POINTS.values())


def test_no_commit_and_no_send_is_without_a_crash_point_before_and_after_it() -> None:
    assert unguarded() == WITHOUT_POINTS


def test_a_new_commit_a_new_point_and_a_new_send_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text(
        "async def keep(self, is_new):\n"
        "    name = 'first' if is_new else 'second'\n"
        "    await self._writer.turn(name, work)\n"
        "def commit(self):\n"
        "    self.crash_points.reach(f'commit.{name}.before')\n"
        "    self.connection.execute('COMMIT')\n"
    )
    (tmp_path / "hurried.py").write_text("async def hurry(channel):\n    await channel.send([])\n")
    assert crash_points(tmp_path) == {"commit.first.before", "commit.second.before"}
    assert unguarded(tmp_path) == {"store.py:commit", "hurried.py"}


def test_a_point_whose_name_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text("async def keep(self, name):\n    await self._writer.turn(name, work)\n")
    with pytest.raises(UnreadableError):
        crash_points(tmp_path)
