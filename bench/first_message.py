"""From nothing to the first message: `git clone`, `make run`, the printed `curl` pasted, until the message is seen.

Packages come from where pip gets them on this machine: first with a cache of its own that is empty, then with the same
one filled. What is cloned is the last commit.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench.counts import batch_bytes, same
from bench.figures import Goal, Row
from bench.run import Run
from bench.server import BenchError, free_port

GOALS = {"packages not cached": Goal(4, 2, sign="≤"), "packages cached": Goal(2, 1, sign="≤")}
"""In minutes, in the order in which the cache fills."""

_ROOT = Path(__file__).parent.parent
_LONGEST = 600.0
_ENDS_WITHIN = 30.0
_LOOK_EVERY = 0.1
_OURS = ("NOROSHI_", "MAKE", "MFLAGS", "PIP_NO_CACHE_DIR", "PIP_FIND_LINKS", "PYTHONPATH", "VIRTUAL_ENV")
"""What a newcomer's shell does not have set, and this one may have."""


class Sent(Struct):
    batch_id: str


class Message(Struct):
    notification_id: str


class Caught(Struct):
    items: list[Message]


def run(bench: Run) -> list[Row]:
    minutes: dict[str, list[float]] = {title: [] for title in GOALS}
    for number in range(int(bench.pick(1, 3))):
        cache = bench.folder / f"packages-{number}"
        for place, title in enumerate(GOALS):
            minutes[title].append(_first_message(bench.folder / f"clone-{number}-{place}", cache) / 60)
    return [_row(title, minutes[title]) for title in GOALS]


def _row(title: str, minutes: list[float]) -> Row:
    middle, goal = median(minutes), GOALS[title]
    return Row(
        what=f"first message after git clone, {title}",
        population="the demonstration of `make run`, the printed curl",
        figure=f"{middle:.2f} minutes",
        spread=f"±{(max(minutes) - min(minutes)) / 2 / middle:.0%}" if len(minutes) > 1 else "",
        bar=goal.bar_text(" minutes"),
        aim=goal.aim_text(" minutes"),
        verdict=goal.verdict(middle),
    )


def _first_message(clone: Path, cache: Path) -> float:
    """In seconds."""
    began = time.monotonic()
    cloned = subprocess.run(["git", "clone", "--quiet", _ROOT, clone], capture_output=True, text=True, check=False)
    if cloned.returncode != 0:
        raise BenchError(f"git clone: {cloned.stderr.strip()}")
    with _demonstration(clone, cache) as commands:
        send, look = commands
        batch = batch_bytes(msgspec.json.decode(_pasted(send), type=Sent).batch_id)
        while not (seen := _seen(look, batch)):
            if time.monotonic() - began > _LONGEST:
                raise BenchError("the first message was not seen")
            time.sleep(_LOOK_EVERY)
        seconds = time.monotonic() - began
        same("first messages seen", seen, wanted=1)
    return seconds


def _seen(look: str, batch: bytes) -> int:
    found = msgspec.json.decode(_pasted(look), type=Caught)
    return sum(batch_bytes(one.notification_id) == batch for one in found.items)


def _pasted(command: str) -> bytes:
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"curl ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


@contextmanager
def _demonstration(clone: Path, cache: Path) -> Iterator[list[str]]:
    """`make run` in a process group of its own, which ends with it; the two commands that it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environment = {**kept, "NOROSHI_PORT": str(free_port()), "PIP_CACHE_DIR": str(cache)}
    printed = clone.with_suffix(".printed")
    with printed.open("wb") as output:
        made = subprocess.Popen(
            ["make", "run"],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield _commands(made, printed)
    finally:
        _end(made)


def _commands(made: "subprocess.Popen[bytes]", printed: Path) -> list[str]:
    deadline = time.monotonic() + _LONGEST
    while time.monotonic() < deadline:
        found = commands_in(printed.read_text(encoding="utf-8"))
        if len(found) == 2:
            return found
        if made.poll() is not None:
            break
        time.sleep(_LOOK_EVERY)
    raise BenchError(f"make run printed no commands to paste: {printed.read_text(encoding='utf-8')[-2000:]}")


def commands_in(printed: str) -> list[str]:
    """Those to send and to see what arrived, as far as they are printed: a line ends before it is pasted."""
    whole = printed.rpartition("\n")[0].splitlines()
    return [line for line in whole if line.startswith("curl ")][:2]


def _end(made: "subprocess.Popen[bytes]") -> None:
    """All of its group: what `make` started may end after it."""
    _signal(made, signal.SIGTERM)
    if _is_gone(made):
        return
    _signal(made, signal.SIGKILL)
    _is_gone(made)
    raise BenchError("make run did not stop when asked")


def _signal(made: "subprocess.Popen[bytes]", number: int) -> bool:
    """Whether there was anybody to hear it."""
    try:
        os.killpg(made.pid, number)
    except ProcessLookupError:
        return False
    return True


def _is_gone(made: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + _ENDS_WITHIN
    while made.poll() is None or _signal(made, 0):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY)
    return True
