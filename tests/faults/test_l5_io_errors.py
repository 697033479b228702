"""L5: a write or a sync fails under the real store and under a real server; after that nothing more is promised."""

import asyncio
import errno
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import Struct

from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.cli.serving import BROKEN
from noroshi.storage.sqlite.writer import CommitGroup
from tests.conftest import ARE_SERVICES_REQUIRED, MISSING_SERVICE
from tests.faults.machinery.caller import NOTIFICATIONS, TEMPLATE, Caller
from tests.faults.machinery.failing_disk import LAUNCH, ORDERS_VARIABLE, SYNC, WRITE, FailingDisk
from tests.faults.machinery.load import Load, contradictions
from tests.faults.machinery.processes import NOROSHI, ServedNoroshi
from tests.faults.machinery.report import publish
from tests.faults.machinery.witness import Witness, WitnessedStore, halves

PEOPLE = 10
REQUESTS = 400
CALLS_BEFORE_THE_FAULT = 40
BEFORE_THE_FAULT = 60
ENDS_WITHIN = 20
LAST_ANSWERS = 500_000
"""Microseconds in which answers to what was committed before the error may still arrive."""

pytestmark = pytest.mark.xdist_group("l5")


class Row(Struct):
    """One row of the report."""

    where: str
    fault: str
    accepted_before: int
    accepted_after: int
    exit_code: str
    lost: int

    def __str__(self) -> str:
        cells = (self.where, self.fault, self.accepted_before, self.accepted_after, self.exit_code, self.lost)
        return f"| {' | '.join(str(cell) for cell in cells)} |"


ROWS: list[Row] = []
HEAD = (
    "| where | what fails | accepted before | accepted after the error | the server ends with | lost |\n"
    "|---|---|---:|---:|---:|---:|"
)


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    yield
    publish("L5", "\n".join([HEAD, *map(str, ROWS)]))


# the store alone


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    with FailingDisk(tmp_path / "orders") as mounted:
        yield mounted


async def fail_under_load(
    path: Path, disk: FailingDisk, fault: str, witness: Witness, *, is_apart: bool = True
) -> WitnessedStore:
    """A store at work whose disk begins to fail, and whose disk is well again after that."""
    life = WitnessedStore(path, witness, random.Random(fault), vfs=disk.name, is_apart=is_apart)
    await life.people()
    working = asyncio.create_task(life.run())
    while witness.calls < CALLS_BEFORE_THE_FAULT:
        await asyncio.sleep(0.01)
    disk.order(fault)
    await working
    disk.order(None)
    return life


@pytest.mark.parametrize("is_apart", [True, False])
@pytest.mark.parametrize("fault", [SYNC, WRITE])
async def test_after_an_error_the_store_never_touches_the_disk_again(
    disk: FailingDisk, tmp_path: Path, fault: str, *, is_apart: bool
) -> None:
    # F3, W29: after a failed fsync a later success lies
    path, witness = tmp_path / "noroshi.db", Witness()
    life = await fail_under_load(path, disk, fault, witness, is_apart=is_apart)
    await asyncio.wait_for(life.is_broken.wait(), 5)
    with pytest.raises(ProblemError, match="store_unavailable"):
        await life.accept()
    await life.store.stop()
    assert (disk.failures, disk.used_after_failure) == (1, 0)
    lost, in_part = look(path, witness)
    ROWS.append(
        Row(
            f"the store, by its VFS, {'on its loop' if is_apart else 'in a thread'}",
            fault,
            len(witness.batches),
            0,
            "",
            len(lost),
        )
    )
    assert (lost, in_part) == ([], [])
    again = WitnessedStore(path, witness, random.Random("again"))
    await again.rescue()
    for act in (again.accept, again.send):
        await act()
    await again.store.stop()
    assert look(path, witness) == ([], [])


async def test_control_a_store_that_tries_again_after_a_failed_sync_is_found_out(
    disk: FailingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitGroup, "_judge", lambda _group, _failure: None)
    witness = Witness()
    life = await fail_under_load(tmp_path / "noroshi.db", disk, SYNC, witness)
    await life.accept()
    await life.store.stop()
    assert disk.used_after_failure > 0


def look(path: Path, witness: Witness) -> tuple[list[str], list[str]]:
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return list(witness.lost(connection)), halves(connection)
    finally:
        connection.close()


# a real server


class Fault(Struct):
    """How a server's disk is made to fail: the command that starts it, and what to do to the running one."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    strike: Callable[[int], object]


def by_vfs(folder: Path, fault: str) -> Fault:
    orders = folder / "orders"
    return Fault(f"VFS: {fault}", LAUNCH, {ORDERS_VARIABLE: str(orders)}, lambda _pid: orders.write_text(fault))


def by_libfiu(folder: Path, *points: str) -> Fault:
    """The C library's own calls fail, as they would over a dying disk."""
    if not has_libfiu():
        pytest.skip(f"{MISSING_SERVICE}libfiu (Debian: apt install fiu-utils)")
    pipes = str(folder / "fiu")

    def strike(pid: int) -> None:
        orders = [word for point in points for word in ("-c", f"enable name={point},failinfo={errno.EIO}")]
        subprocess.run(["fiu-ctrl", "-f", pipes, *orders, str(pid)], check=True, timeout=10)

    names = ", ".join(point.rsplit("/", 1)[1] for point in points)
    return Fault(f"libfiu: {names}", ("fiu-run", "-x", "-f", pipes, *NOROSHI), {}, strike)


def has_libfiu() -> bool:
    """Installs it where everything is required and that is possible."""
    if shutil.which("fiu-run") is None and ARE_SERVICES_REQUIRED and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-qq", "-y", "fiu-utils"], capture_output=True, check=False, timeout=120)
    return shutil.which("fiu-run") is not None


FAULTS: dict[str, Callable[[Path], Fault]] = {
    "vfs-sync": lambda folder: by_vfs(folder, SYNC),
    "vfs-write": lambda folder: by_vfs(folder, WRITE),
    "libfiu-sync": lambda folder: by_libfiu(folder, "posix/io/sync/fsync", "posix/io/sync/fdatasync"),
    "libfiu-write": lambda folder: by_libfiu(folder, "posix/io/rw/pwrite", "posix/io/rw/pwrite64"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_server_whose_disk_fails_promises_nothing_more_and_ends(tmp_path: Path, name: str) -> None:
    # F3, W29, I13
    fault = FAULTS[name](tmp_path)
    with ServedNoroshi(tmp_path / "data", {"NOROSHI_CATCHER": "on", **fault.environment}, fault.command) as noroshi:
        key = noroshi.create_key()
        noroshi.start()
        caller = Caller(noroshi.url, key)
        caller.seed(PEOPLE)
        load = Load(noroshi.url, key, bodies(), callers=8)
        posting = asyncio.create_task(load.run(seconds=60))
        while len(accepted(load)) < BEFORE_THE_FAULT:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(fault.strike, noroshi.keeper_pid)
        struck_at = time.time_ns() // 1000
        code = await asyncio.to_thread(noroshi.wait, ENDS_WITHIN)
        answers = accepted(load)
        (tmp_path / "orders").unlink(missing_ok=True)
        await asyncio.to_thread(noroshi.start)
        await posting
        lost = [post.batch_id for post in load.posted.values() if not is_there(caller, post.batch_id)]
        assert noroshi.stop() == 0
    late = [at for at in answers if at > struck_at + LAST_ANSWERS]
    ROWS.append(Row("a server", fault.name, len(answers), len(late), str(code), len(lost)))
    assert code == BROKEN, noroshi.log()
    assert len(answers) < REQUESTS, "everything was accepted before the disk failed"
    assert (late, lost, contradictions(load)) == ([], [], [])


def bodies() -> dict[str, dict[str, Any]]:
    return {
        f"key-{number}": {
            "user_ids": [f"user-{number % PEOPLE}"],
            "template_id": TEMPLATE,
            "priority": "critical",
            "data": {"number": number},
        }
        for number in range(REQUESTS)
    }


def accepted(load: Load) -> list[int]:
    """When each 202 was heard."""
    return [heard.at for post in load.posted.values() for heard in post.heard if heard.status == 202]


def is_there(caller: Caller, batch_id: str | None) -> bool:
    return batch_id is not None and caller.call("GET", f"{NOTIFICATIONS}/{batch_id}/status").status == 200
