"""Processes as /proc shows them: a process id in; its children, its CPU time and its memory out."""

import os
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """CPU-seconds so far of the server and of the processes it started."""

    server: float
    child: float

    def since(self, before: "Usage") -> "Usage":
        return Usage(self.server - before.server, self.child - before.child)


class Memory(NamedTuple):
    """In MB. `own` is PSS: what is shared with others counts by its share."""

    own: float
    resident: float
    peak: float


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_of(pid: int) -> Usage:
    return Usage(seconds_of(pid), sum(map(seconds_of, children_of(pid))))


def memory_of(pid: int) -> Memory:
    """Of the process and its children together."""
    each = [_memory(one) for one in (pid, *children_of(pid))]
    return Memory(*(sum(column) for column in zip(*each, strict=True)))


def seconds_of(pid: int) -> float:
    """CPU-seconds of a process so far, with those of its children that have ended; none if it has ended itself, for
    then they are its parent's."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(field) for field in fields[11:15]) / _TICK


def _memory(pid: int) -> Memory:
    rollup = _lines(Path(f"/proc/{pid}/smaps_rollup"))
    status = _lines(Path(f"/proc/{pid}/status"))
    return Memory(rollup["Pss"] / 1024, status["VmRSS"] / 1024, status["VmHWM"] / 1024)


def _lines(path: Path) -> dict[str, int]:
    """The lines that are a name and a number of kB."""
    split = (line.split() for line in path.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in split if words[-1] == "kB"}
