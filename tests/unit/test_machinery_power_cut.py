"""The forgetful disk: what a power cut leaves under each way of syncing."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.faults.machinery.power_cut import ForgetfulDisk, PowerIsOffError

COMMITS = 500
ROW = "x" * 200


@pytest.fixture
def disk() -> Iterator[ForgetfulDisk]:
    with ForgetfulDisk() as mounted:
        yield mounted


def connect(disk: ForgetfulDisk, path: Path, synchronous: str = "FULL", journal: str = "WAL") -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=disk.name)
    connection.pragma("journal_mode", journal)
    connection.pragma("synchronous", synchronous)
    connection.execute("CREATE TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY, filler TEXT)")
    return connection


def commit(connection: apsw.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE; INSERT INTO kept VALUES (?, ?); COMMIT", (number, ROW))


def survivors(disk: ForgetfulDisk, path: Path) -> set[int]:
    connection = apsw.Connection(str(path), vfs=disk.name)
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        if not connection.table_exists("main", "kept"):
            return set()
        return {number for (number,) in connection.execute("SELECT number FROM kept")}
    finally:
        connection.close()


def lost_after(disk: ForgetfulDisk, path: Path, synchronous: str, journal: str = "WAL") -> int:
    connection = connect(disk, path, synchronous, journal)
    for number in range(COMMITS):
        commit(connection, number)
    disk.cut()
    disk.restore()
    return COMMITS - len(survivors(disk, path))


@pytest.mark.parametrize("synchronous", ["FULL", "EXTRA"])
def test_full_loses_no_acknowledged_commit(disk: ForgetfulDisk, tmp_path: Path, synchronous: str) -> None:
    # W3, F2
    assert lost_after(disk, tmp_path / "db", synchronous) == 0


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_control_less_than_full_loses_acknowledged_commits(
    disk: ForgetfulDisk, tmp_path: Path, synchronous: str
) -> None:
    # W3: if nothing is lost here, the disk does not forget
    assert lost_after(disk, tmp_path / "db", synchronous) > 0


def test_a_rollback_journal_needs_its_folder_synced(disk: ForgetfulDisk, tmp_path: Path) -> None:
    # The delete of the journal is the commit, and only EXTRA syncs the folder after it.
    assert lost_after(disk, tmp_path / "extra", "EXTRA", "DELETE") == 0
    assert lost_after(disk, tmp_path / "full", "FULL", "DELETE") == 1


def test_an_uncommitted_transaction_is_gone(disk: ForgetfulDisk, tmp_path: Path) -> None:
    connection = connect(disk, tmp_path / "db")
    commit(connection, 1)
    connection.execute("BEGIN IMMEDIATE; INSERT INTO kept VALUES (2, '')")
    disk.cut()
    disk.restore()
    assert survivors(disk, tmp_path / "db") == {1}


def test_whoever_was_connected_is_refused_at_once_and_for_ever(disk: ForgetfulDisk, tmp_path: Path) -> None:
    connection = connect(disk, tmp_path / "db")
    disk.cut()
    with pytest.raises(PowerIsOffError):
        commit(connection, 1)
    with pytest.raises(apsw.Error):
        apsw.Connection(str(tmp_path / "db"), vfs=disk.name).execute("SELECT 1 FROM kept")
    disk.restore()
    with pytest.raises(apsw.ConnectionClosedError):
        commit(connection, 1)


def test_checkpoints_and_a_second_reader_change_nothing(disk: ForgetfulDisk, tmp_path: Path) -> None:
    writer = connect(disk, tmp_path / "db")
    reader = apsw.Connection(str(tmp_path / "db"), vfs=disk.name)
    for number in range(100):
        commit(writer, number)
        assert reader.execute("SELECT count(*) FROM kept").get == number + 1
        if number % 10 == 0:
            writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE if number % 20 else apsw.SQLITE_CHECKPOINT_FULL)
    disk.cut()
    disk.restore()
    assert survivors(disk, tmp_path / "db") == set(range(100))


def test_a_file_whose_folder_was_not_synced_is_as_before(disk: ForgetfulDisk, tmp_path: Path) -> None:
    connection = connect(disk, tmp_path / "db")
    commit(connection, 1)
    connection.close()
    assert not (tmp_path / "db-wal").exists()
    disk.cut()
    disk.restore()
    assert (tmp_path / "db-wal").exists(), "the delete at the close was not synced"
    assert survivors(disk, tmp_path / "db") == {1}


def test_a_database_that_never_synced_its_folder_does_not_exist(disk: ForgetfulDisk, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "db"), vfs=disk.name)
    connection.execute("PRAGMA synchronous=OFF; CREATE TABLE kept (number)")
    assert (tmp_path / "db").exists()
    disk.cut()
    disk.restore()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_before_the_disk_is_durable(disk: ForgetfulDisk, tmp_path: Path) -> None:
    earlier = apsw.Connection(str(tmp_path / "db"))
    earlier.execute("CREATE TABLE kept (number); INSERT INTO kept VALUES (1)")
    earlier.close()
    later = apsw.Connection(str(tmp_path / "db"), vfs=disk.name)
    later.execute("PRAGMA synchronous=OFF; INSERT INTO kept VALUES (2)")
    disk.cut()
    disk.restore()
    assert survivors(disk, tmp_path / "db") == {1}


def test_the_default_disk_serves_whoever_does_not_choose(tmp_path: Path) -> None:
    with ForgetfulDisk(is_default=True):
        connection = apsw.Connection(str(tmp_path / "db"))
        assert connection.open_vfs.startswith("forgetful-")
    assert apsw.Connection(str(tmp_path / "db")).open_vfs == "unix"


def test_a_cut_in_the_middle_of_a_commit_loses_nothing_acknowledged(disk: ForgetfulDisk, tmp_path: Path) -> None:
    acknowledged: list[int] = []

    def write(connection: apsw.Connection) -> None:
        try:
            while True:
                commit(connection, len(acknowledged))
                acknowledged.append(len(acknowledged))
        except apsw.Error:
            pass

    for round_number in range(5):
        writer = threading.Thread(target=write, args=[connect(disk, tmp_path / "db")])
        enough = len(acknowledged) + 20 * (round_number + 1)
        writer.start()
        while len(acknowledged) < enough:
            time.sleep(0.001)
        disk.cut()
        writer.join()
        disk.restore()
        alive = survivors(disk, tmp_path / "db")
        assert alive >= set(acknowledged)
        # A commit whose answer the cut swallowed may be there.
        assert len(alive) - len(acknowledged) in (0, 1)
        acknowledged = sorted(alive)


def test_two_hundred_cuts_on_a_disk_that_keeps_blocks_by_chance(disk: ForgetfulDisk, tmp_path: Path) -> None:
    # L4: 200 cuts in 30 s
    chance = random.Random(4)
    acknowledged: set[int] = set()
    for cut in range(200):
        connection = connect(disk, tmp_path / "db")
        connection.wal_autocheckpoint(chance.choice([1, 5, 1000]))
        for number in range(chance.randrange(20)):
            commit(connection, 100 * cut + number)
            acknowledged.add(100 * cut + number)
        connection.execute("BEGIN IMMEDIATE; UPDATE kept SET filler = filler || 'y'")
        connection.cache_flush()
        disk.cut()
        disk.restore(chance if cut % 2 else None)
        assert survivors(disk, tmp_path / "db") == acknowledged
    assert disk.cuts == 200
