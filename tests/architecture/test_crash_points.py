"""Before and after every commit and every outgoing call there is a crash point, and a workload that reaches it (L2)."""

from pathlib import Path

import pytest

from tests.faults.sweep.points import UnreadableError, crash_points, unguarded
from tests.faults.sweep.table import ELSEWHERE, POINTS, UNUSED
from tests.stores import KINDS

WITHOUT_POINTS = {
    "storage/postgres/connection.py:migrate",  # one transaction with its number, before anything is served
    "storage/postgres/days.py:make_days",  # a day is there whole or not, and made again (test_days)
    "storage/postgres/tables.py:commit",  # a restore or a move, offline; goes on where it was (test_backups, F23)
    "storage/postgres/tables.py:finish",  # the same
    "storage/postgres/tables.py:put",  # the same
    "storage/postgres/turns.py:read",  # ends a reading; its transaction cannot write
    "storage/sqlite/connection.py:migrate",  # one transaction with its number, before anything is served
    "storage/sqlite/tables.py:commit",  # a restore or a move, offline; goes on where it was (test_backups, F23)
    "storage/sqlite/tables.py:put",  # the same
    "storage/sqlite/readers.py:_ask",  # ends a reading; a reader's connection cannot write
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_crash_point_of_a_store_has_a_row_in_its_sweep_and_every_row_a_point(kind: str) -> None:
    others = [f"storage/{other}" for other in KINDS if other != kind]
    assert crash_points(without=others) == UNUSED.keys() | ELSEWHERE[kind].keys() | POINTS[kind].keys()


def test_whatever_is_not_swept_has_its_reason() -> None:
    reasons = [*UNUSED.values(), *(reason for rows in ELSEWHERE.values() for reason in rows.values())]
    assert all(len(reason) > 20 for reason in reasons)


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
    (tmp_path / "days.py").write_text(
        "async def make(connection):\n    async with connection.transaction():\n        pass\n"
        "async def look(connection):\n    async with connection.cursor():\n        pass\n"
    )
    (tmp_path / "hurried.py").write_text("async def hurry(channel):\n    await channel.send([])\n")
    assert crash_points(tmp_path) == {"commit.first.before", "commit.second.before"}
    assert unguarded(tmp_path) == {"store.py:commit", "days.py:make", "hurried.py"}


def test_a_turn_of_one_store_is_no_point_of_another(tmp_path: Path) -> None:
    for kind in KINDS:
        (tmp_path / "storage" / kind).mkdir(parents=True)
        (tmp_path / "storage" / kind / "duties.py").write_text(
            f"async def keep(self):\n    await self._turns.turn('of_{kind}', work)\n"
            "def commit(self):\n    self.crash_points.reach(f'commit.{name}.before')\n"
        )
    assert crash_points(tmp_path, without=["storage/postgres"]) == {"commit.of_sqlite.before"}


def test_a_point_whose_name_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text("async def keep(self, name):\n    await self._writer.turn(name, work)\n")
    with pytest.raises(UnreadableError):
        crash_points(tmp_path)
