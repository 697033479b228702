"""The cradle: what is born there is a process of its own, and is told apart from one that cannot be had by a fork."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.machinery.cradle import Cradle
from tests.faults.machinery.processes import NOROSHI
from tests.stand_ins.ledger_provider.process import importing_environment

MODULE = NOROSHI[-1]


def alone_of(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=importing_environment(), capture_output=True, text=True, check=False)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def cradle() -> Cradle:
    return Cradle()


def test_a_command_says_and_ends_as_it_would_by_itself(cradle: Cradle) -> None:
    for words in (["version"], ["keys", "create"]):  # the second says what is missing
        alone = alone_of(*NOROSHI, *words)
        born = cradle.run(MODULE, words, importing_environment())
        assert (born.returncode, born.stdout, born.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert alone.returncode == 2


def test_its_surroundings_are_its_own(cradle: Cradle, tmp_path: Path) -> None:
    words = ["doctor", "--data", str(tmp_path)]
    wrong = cradle.run(MODULE, words, importing_environment(NOROSHI_PORT="noon"))
    assert wrong.returncode == 2 and "NOROSHI_PORT" in wrong.stderr
    assert "NOROSHI_PORT" not in cradle.run(MODULE, words, importing_environment()).stderr


def test_it_is_killed_alone_and_its_number_stays_its_own_until_it_is_reaped(cradle: Cradle, tmp_path: Path) -> None:
    words = ["serve", "--port", "0", "--data"]
    log = tmp_path / "log"
    one, other = (cradle.bear(MODULE, [*words, str(tmp_path / at)], importing_environment(), log, log) for at in "ab")
    until(lambda: log.exists() and log.read_text().count("serving") == 2)
    assert (os.getsid(one), os.getsid(other)) == (one, other)
    os.kill(one, signal.SIGKILL)
    until(lambda: cradle.end_of(one) is not None)
    assert Path(f"/proc/{one}").exists() and cradle.reap(one) == -signal.SIGKILL
    assert not Path(f"/proc/{one}").exists() and cradle.end_of(other) is None
    os.killpg(other, signal.SIGTERM)
    assert cradle.reap(other) == 0


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ((sys.executable, "-m", "tests.stand_ins.stub_product"), {}),
        ((sys.executable, "-c", "print()"), {}),
        (NOROSHI, {"LD_PRELOAD": "libfiu.so"}),
        (NOROSHI, {"PYTHONPATH": "/elsewhere"}),
    ],
)
def test_what_must_be_so_from_the_first_moment_is_not_born(
    cradle: Cradle, command: tuple[str, ...], more: dict[str, str]
) -> None:
    assert cradle.can_bear(NOROSHI, importing_environment())
    assert not cradle.can_bear(command, importing_environment(**more))


def test_it_is_gone_with_whoever_began_it() -> None:
    script = (
        "from tests.faults.machinery.cradle import Cradle\n"
        "from tests.stand_ins.ledger_provider.process import importing_environment\n"
        f"cradle = Cradle()\nprint(cradle.run({MODULE!r}, ['version'], importing_environment()).stdout)\n"
        "print(cradle._process.pid, flush=True)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    pid = int(alone_of(sys.executable, "-c", script).stdout.split()[-1])
    command = Path(f"/proc/{pid}/cmdline")
    until(lambda: not command.exists() or not command.read_bytes())
