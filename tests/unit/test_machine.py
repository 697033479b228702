"""Clock, dice and crash points as the machine gives them."""

import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import DIED, EnvCrashPoints, NoCrashPoints
from noroshi.machine.dice import SystemDice


async def test_the_clock_tells_and_waits_by_the_machines_time() -> None:
    clock = SystemClock()
    assert abs(clock.now() / 1e6 - time.time()) < 5
    before = clock.monotonic()
    await clock.sleep(timedelta(milliseconds=20))
    assert clock.monotonic() - before >= 0.015


def test_the_dice_keep_to_their_range() -> None:
    dice = SystemDice()
    assert all(0 <= dice.fraction() < 1 for _ in range(1000))
    assert all(0 <= dice.bits(3) < 8 for _ in range(1000))
    assert len({dice.bits(128) for _ in range(100)}) == 100


def walk(crash_at: str) -> subprocess.CompletedProcess[str]:
    script = (
        "import sys; from noroshi.machine.crash_points import EnvCrashPoints\n"
        "points = EnvCrashPoints(sys.argv[1])\n"
        "for number in range(4):\n"
        "    print(number, flush=True); points.reach('before_commit'); points.reach('after_commit')"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, crash_at]
    return subprocess.run(command, env=paths, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("crash_at", "reached", "code"), [("before_commit", 1, DIED), ("after_commit:3", 3, DIED), ("elsewhere", 4, 0)]
)
def test_a_crash_point_ends_the_process_the_time_it_was_told(crash_at: str, reached: int, code: int) -> None:
    # RELIABILITY L2
    done = walk(crash_at)
    assert (len(done.stdout.split()), done.returncode) == (reached, code)


@pytest.mark.parametrize("wrong", ["name:0", "name:x", "name:-1"])
def test_a_crash_point_that_cannot_be_reached_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="name or name:count"):
        EnvCrashPoints(wrong)


def test_in_service_crash_points_do_nothing() -> None:
    NoCrashPoints().reach("before_commit")
