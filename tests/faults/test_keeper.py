"""The store's keeper and its server die together, whichever goes first, and the next start finds everything."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from noroshi.entrypoints.cli.serving import BROKEN
from noroshi.storage.sqlite.sql import migrations
from tests.faults.machinery.caller import NOTIFICATIONS, Caller
from tests.faults.machinery.processes import NotReadyError, ServedNoroshi

PEOPLE = 10
SOON = 5.0

HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1)
"""

pytestmark = pytest.mark.xdist_group("keeper")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedNoroshi]:
    with ServedNoroshi(tmp_path / "data", {"NOROSHI_CATCHER": "on"}) as noroshi:
        yield noroshi


def started(noroshi: ServedNoroshi) -> Caller:
    key = noroshi.create_key()
    noroshi.start()
    caller = Caller(noroshi.url, key)
    caller.seed(PEOPLE)
    return caller


def accepted(caller: Caller, count: int) -> list[str]:
    answers = [caller.notify(number, f"user-{number % PEOPLE}", priority="critical") for number in range(count)]
    assert {answer.status for answer in answers} == {202}
    return [answer.fields["batch_id"] for answer in answers]


def are_all_there(caller: Caller, batch_ids: list[str]) -> bool:
    return all(caller.call("GET", f"{NOTIFICATIONS}/{batch_id}/status").status == 200 for batch_id in batch_ids)


def until(holds: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < SOON, "it never came to be"
        time.sleep(0.005)
    return time.monotonic() - began


def is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGBUS])  # the second: a page of the file cannot be read
def test_a_server_whose_keeper_is_killed_ends_as_with_a_broken_disk_and_starts_again(
    served: ServedNoroshi, how: signal.Signals
) -> None:
    # W29
    caller = started(served)
    batch_ids = accepted(caller, 20)
    os.kill(served.keeper_pid, how)
    assert served.wait(SOON) == BROKEN
    assert "keeper_died" in served.log()
    served.start()
    assert are_all_there(caller, batch_ids)
    assert served.stop() == 0


def test_the_keeper_of_a_killed_server_is_gone_at_once_and_the_next_start_need_not_wait(served: ServedNoroshi) -> None:
    # F1
    caller = started(served)
    batch_ids = accepted(caller, 20)
    keeper = served.keeper_pid
    served.kill()
    served.start()
    assert is_over(keeper)
    assert are_all_there(caller, batch_ids)
    assert served.stop() == 0


def test_a_server_that_starts_waits_for_the_keeper_before_it(served: ServedNoroshi) -> None:
    # a keeper that hangs in a disk cannot be killed before it is back: here a process that holds its lock stands for it
    started(served)
    assert served.stop() == 0
    lock = served.data / "keeper.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE) as former:
        assert former.stdout is not None
        former.stdout.readline()
        assert served.start() > 0.5
    assert served.stop() == 0


def test_even_a_keeper_that_cannot_notice_dies_with_its_server(served: ServedNoroshi) -> None:
    # suspended it reads nothing from its line, as in a long call to the disk
    started(served)
    keeper = served.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    assert not is_over(keeper)
    served.kill()
    assert until(lambda: is_over(keeper)) < 1


def test_stop_signals_are_for_the_server_alone(served: ServedNoroshi) -> None:
    # W26: a terminal's Ctrl-C reaches the whole group
    caller = started(served)
    keeper = served.keeper_pid
    for stop in (signal.SIGINT, signal.SIGTERM):
        os.kill(keeper, stop)
    assert are_all_there(caller, accepted(caller, 5))
    assert served.stop() == 0
    assert is_over(keeper)
    assert apsw.Connection(str(served.data / "noroshi.db")).execute("PRAGMA integrity_check").get == "ok"
    assert not (served.data / "noroshi.db-wal").exists(), "it was not closed"


def test_a_store_that_cannot_be_opened_is_told_in_one_line(served: ServedNoroshi) -> None:
    served.create_key()
    connection = apsw.Connection(str(served.data / "noroshi.db"))
    connection.pragma("user_version", migrations()[-1][0] + 1)
    connection.close()
    with pytest.raises(NotReadyError) as error:
        served.start()
    assert error.value.code == 2
    (line,) = [line for line in served.log().splitlines() if line.startswith("noroshi: ")]
    assert "schema" in line
    assert "Traceback" not in served.log()


def test_what_the_keeper_counts_is_in_the_metrics(served: ServedNoroshi) -> None:
    # N16.1
    caller = started(served)
    accepted(caller, 3)
    text = caller.call("GET", "/metrics").body.decode()
    (commits,) = [line for line in text.splitlines() if line.startswith("store_commit_seconds_count")]
    assert float(commits.split()[1]) >= 3
