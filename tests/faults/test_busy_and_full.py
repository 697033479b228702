"""F4 and F5: the disk is full, another process holds the lock, a reader does not go away; nothing accepted is lost."""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from noroshi.domain.problems import ProblemError
from noroshi.machine.ballast import Ballast
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.storage.sqlite import connection as connections
from noroshi.storage.sqlite import loop_writer, writer
from noroshi.storage.sqlite import store as stores
from noroshi.storage.sqlite.readers import ThreadReaders
from noroshi.storage.sqlite.writer import CommitGroup, Job
from tests.faults.machinery.caller import NOTIFICATIONS, Caller
from tests.faults.machinery.failing_disk import FULL, LAUNCH, ORDERS_VARIABLE, FailingDisk
from tests.faults.machinery.load import Load, contradictions
from tests.faults.machinery.processes import NOROSHI, ServedNoroshi
from tests.faults.machinery.report import publish
from tests.faults.machinery.witness import Witness, WitnessedStore, halves

MEGABYTE = 1_000_000
LARGE = "x" * 50_000
LOG_LIMIT = 64 * MEGABYTE

pytestmark = pytest.mark.xdist_group("l5")

ROWS: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    yield
    publish("full", "\n".join(["| what | what came of it |", "|---|---|", *ROWS]))


def look(path: Path, witness: Witness) -> tuple[list[str], list[str]]:
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return list(witness.lost(connection)), halves(connection)
    finally:
        connection.close()


# F4: the disk is full


async def fill(life: WitnessedStore, disk: FailingDisk) -> ProblemError:
    """Accepts until the disk, which is full from now on, has no room left in its log either."""
    disk.order(FULL)
    for _ in range(10_000):
        try:
            await life.accept()
        except ProblemError as problem:
            return problem
    raise AssertionError("it was never full")


@pytest.mark.parametrize("is_apart", [True, False])
async def test_a_full_disk_is_told_to_the_caller_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_apart: bool
) -> None:
    # F4, W28, I13: the log is moved into a file that cannot grow, too
    monkeypatch.setattr(writer, "_CHECKPOINT_PAGES", 100)
    path, witness = tmp_path / "noroshi.db", Witness()
    with FailingDisk(tmp_path / "orders") as disk:
        life = WitnessedStore(path, witness, random.Random("full"), vfs=disk.name, is_apart=is_apart)
        await life.people()
        for _ in range(20):
            await life.accept()
            await life.send()
        problem = await fill(life, disk)
        assert (problem.kind.code, problem.retry_after is not None) == ("store_unavailable", True)
        with pytest.raises(ProblemError):
            await life.send()
        assert not life.is_broken.is_set()
        disk.order(None)
        for _ in range(20):
            await life.accept()
            await life.send()
        await life.store.stop()
    assert look(path, witness) == ([], [])


async def test_control_a_store_that_hides_a_full_disk_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hide(group: CommitGroup, _jobs: list[Job], _failure: Exception) -> None:
        if group.connection.in_transaction:
            group.connection.execute("ROLLBACK")

    monkeypatch.setattr(CommitGroup, "_fail", hide)
    path, witness = tmp_path / "noroshi.db", Witness()
    with FailingDisk(tmp_path / "orders") as disk:
        life = WitnessedStore(path, witness, random.Random("hidden"), vfs=disk.name)
        await life.people()
        disk.order(FULL)
        for _ in range(20):
            await life.accept()
        disk.order(None)
        await life.store.stop()
    assert look(path, witness)[0]


def test_an_index_of_the_log_that_cannot_grow_is_a_full_disk_and_no_broken_one(tmp_path: Path) -> None:
    # SQLite calls it an I/O error
    told: list[str] = []
    connection = connections.open_connection(str(tmp_path / "noroshi.db"))
    group = CommitGroup(connection, SystemClock(), NullMeter(), NoCrashPoints(), lambda: told.append("full"))
    for code, is_broken in ((apsw.SQLITE_IOERR_SHMSIZE, False), (apsw.SQLITE_IOERR_FSYNC, True)):
        group._judge(apsw.exception_for(code))
        assert group.is_broken == is_broken
    assert told == ["full"]
    group.close()


def test_a_reader_that_cannot_be_opened_is_known_at_the_start(tmp_path: Path) -> None:
    # and not when the second one is first needed, under load, with no file left to open
    connections.open_connection(str(tmp_path / "noroshi.db")).close()
    places = [tmp_path / "noroshi.db", tmp_path / "nowhere" / "noroshi.db"]
    with pytest.raises(apsw.CantOpenError):
        ThreadReaders(lambda: connections.open_connection(str(places.pop(0)), is_reader=True), SystemClock())


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("a small disk of its own can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_server(caller: Caller, accepted: list[str]) -> dict[str, Any]:
    """Posts until it is refused; answers the refusal."""
    for number in range(10_000):
        answer = caller.notify(
            number, f"user-{number % 10}", filler=LARGE, priority="critical", idempotency_key=f"key-{number}"
        )
        if answer.status != 202:
            assert "retry-after" in answer.headers, answer
            return {"status": answer.status, **answer.fields}
        accepted.append(answer.fields["batch_id"])
    raise AssertionError("it was never full")


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)


def test_on_a_full_disk_what_was_accepted_is_finished_and_room_is_enough_to_go_on(tmp_path: Path) -> None:
    # F4, W28: accepted = present
    accepted: list[str] = []
    with (
        small_disk(tmp_path / "disk", "8m") as folder,
        ServedNoroshi(folder / "data", {"NOROSHI_CATCHER": "on"}) as noroshi,
    ):
        key = noroshi.create_key()
        noroshi.start()
        caller = Caller(noroshi.url, key)
        caller.seed(10)
        (folder / "filler").write_bytes(bytes(3 * MEGABYTE))
        refusal = fill_server(caller, accepted)
        assert (refusal["status"], refusal["code"]) == (503, "store_unavailable")
        before = len(accepted)
        until(lambda: all(is_sent(caller, batch_id) for batch_id in accepted))
        assert caller.call("GET", "/readyz").status == 503
        assert caller.notify(-1, "user-0").status == 503
        (folder / "filler").unlink()
        until(lambda: caller.call("GET", "/readyz").status == 200)
        answer = caller.notify(-2, "user-0", priority="critical", idempotency_key="last")
        accepted.append(answer.fields["batch_id"])
        until(lambda: is_sent(caller, accepted[-1]))
        assert noroshi.stop() == 0
        connection = apsw.Connection(str(folder / "data" / "noroshi.db"))
        present = connection.execute("SELECT count(*) FROM batches").get
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        assert halves(connection) == []
        connection.close()
    ROWS.append(f"| 8 MB disk filled | {before} accepted, {before} present and sent; 503 until there was room again |")
    assert present == len(accepted)


def is_sent(caller: Caller, batch_id: str) -> bool:
    statuses: dict[str, int] = caller.call("GET", f"{NOTIFICATIONS}/{batch_id}/status").fields["statuses"]
    return statuses == {"DELIVERED": 1}


def test_a_server_whose_store_cannot_grow_refuses_and_goes_on_when_it_can(tmp_path: Path) -> None:
    # F4 where nobody may mount a disk
    orders, accepted = tmp_path / "orders", list[str]()
    environment = {"NOROSHI_CATCHER": "on", ORDERS_VARIABLE: str(orders)}
    with ServedNoroshi(tmp_path / "data", environment, LAUNCH) as noroshi:
        key = noroshi.create_key()
        noroshi.start()
        caller = Caller(noroshi.url, key)
        caller.seed(10)
        orders.write_text(FULL)
        refusal = fill_server(caller, accepted)
        assert (refusal["status"], refusal["code"]) == (503, "store_unavailable")
        orders.unlink()
        until(lambda: caller.notify(-1, "user-0", priority="critical").status == 202)
        until(lambda: all(is_sent(caller, batch_id) for batch_id in accepted))
        assert noroshi.stop() == 0


def test_ballast_goes_when_the_disk_is_full_and_comes_back_with_room(tmp_path: Path) -> None:
    # W28
    with small_disk(tmp_path / "disk", "4m") as folder:
        ballast = Ballast(folder, SystemClock())
        assert not ballast.is_short
        assert (folder / "ballast").stat().st_blocks * 512 >= 4 * 2**20 // 20
        with contextlib.suppress(OSError):
            (folder / "filler").write_bytes(bytes(5 * MEGABYTE))
        ballast.let_go()
        ballast.let_go()
        assert ballast.is_short
        assert not (folder / "ballast").exists()
        (folder / "filler").unlink()
        until(lambda: not ballast.is_short)
        assert (folder / "ballast").exists()


# F5: others use the file, too

HOLDER = """
import apsw, sys, time
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(5000)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
"""


async def test_a_lock_held_for_four_seconds_makes_requests_wait_and_nothing_else(tmp_path: Path) -> None:
    # F5: no 5xx under a hold of 5 s
    bodies = {
        f"key-{number}": {"user_ids": [f"user-{number % 10}"], "template_id": "greeting", "data": {"number": number}}
        for number in range(40)
    }
    with ServedNoroshi(tmp_path / "data", {"NOROSHI_CATCHER": "on"}, NOROSHI) as noroshi:
        key = noroshi.create_key()
        noroshi.start()
        Caller(noroshi.url, key).seed(10)
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, str(noroshi.data / "noroshi.db"), "4", stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        await holder.stdout.readline()
        held_at = time.monotonic()
        load = Load(noroshi.url, key, bodies, callers=8)
        await load.run(seconds=30)
        waited = time.monotonic() - held_at
        await holder.wait()
        assert noroshi.stop() == 0
    heard = [[one.status for one in post.heard] for post in load.posted.values()]
    ROWS.append(f"| another process holds the lock for 4 s | {len(heard)} requests waited, each was answered 202 |")
    assert heard == [[202]] * len(bodies)
    assert contradictions(load) == []
    assert waited > 3, "nobody had to wait: the lock was not held"


@pytest.mark.parametrize("is_apart", [True, False])
async def test_a_lock_held_longer_than_our_patience_is_503_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_apart: bool
) -> None:
    # F5, I13
    monkeypatch.setattr(stores, "BUSY_PATIENCE_MS", 300)
    monkeypatch.setattr(loop_writer, "_LOOKS", 7)
    path, witness = tmp_path / "noroshi.db", Witness()
    life = WitnessedStore(path, witness, random.Random("busy"), is_apart=is_apart)
    await life.people()
    for _ in range(10):
        await life.accept()
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    for act in (life.accept, life.send):
        began = time.monotonic()
        refused = asyncio.create_task(act())
        read = 0
        while not refused.done():
            await life.store.queue.unfinished()  # whoever only reads is not held up
            read += 1
        with pytest.raises(ProblemError) as refusal:
            await refused
        assert refusal.value.kind.code == "store_unavailable"
        assert refusal.value.retry_after is not None
        assert time.monotonic() - began > 0.25
        assert read > 3
    holder.execute("ROLLBACK")
    holder.close()
    for act in (life.accept, life.send):
        await act()
    assert not life.is_broken.is_set()
    await life.store.stop()
    assert look(path, witness) == ([], [])


async def write_much(life: WitnessedStore, path: Path, megabytes: int) -> tuple[float, int]:
    """The longest that a call took, and the largest that the log was."""
    longest, largest, filler = 0.0, 0, os.urandom(MEGABYTE // 2).hex()
    for _ in range(megabytes):
        began = time.monotonic()
        await life.accept(filler)
        longest = max(longest, time.monotonic() - began)
        largest = max(largest, path.with_name(path.name + "-wal").stat().st_size)
    return longest, largest


async def test_the_log_stays_small_while_our_own_readers_never_rest(tmp_path: Path) -> None:
    # F5: readers that overlap for ever must not keep the log from beginning anew
    path, witness = tmp_path / "noroshi.db", Witness()
    life = WitnessedStore(path, witness, random.Random("readers"))
    await life.people()

    async def read_for_ever() -> None:
        while True:
            await life.store.queue.unfinished()

    readers = [asyncio.create_task(read_for_ever()) for _ in range(4)]
    _, largest = await write_much(life, path, 150)
    for reader in readers:
        reader.cancel()
    await asyncio.wait(readers)
    await life.store.stop()
    ROWS.append(f"| 150 MB written beside readers that never rest | the log's largest size: {largest // MEGABYTE} MB |")
    assert largest < LOG_LIMIT


async def test_a_foreign_reader_that_stays_stops_nobody_and_the_log_shrinks_when_it_goes(tmp_path: Path) -> None:
    # F5: under such a reader no log can begin anew; it holds what is written meanwhile
    path, witness = tmp_path / "noroshi.db", Witness()
    life = WitnessedStore(path, witness, random.Random("reader"))
    await life.people()
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN; SELECT count(*) FROM users")
    longest, grown = await write_much(life, path, 90)
    reader.close(True)
    await write_much(life, path, 20)
    left = path.with_name(path.name + "-wal").stat().st_size
    await life.store.stop()
    ROWS.append(
        f"| 90 MB written under a foreign reader that stays | the log grew to {grown // MEGABYTE} MB, the longest call "
        f"took {longest:.1f} s; {left // MEGABYTE} MB after it had gone |"
    )
    assert grown > LOG_LIMIT, "the reader did not hold the log: this test could not have seen a stall"
    assert longest < 3
    assert left < LOG_LIMIT
    assert look(path, witness) == ([], [])
