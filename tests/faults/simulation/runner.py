"""Many seeds: a range and a bug to plant (or none) go in, spread over processes; verdicts and their sum come out.

A seed means the same everywhere only where sets of strings have one order: the processes run with PYTHONHASHSEED=0.
"""

import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from unittest.mock import patch

import structlog
from msgspec import Struct, field

from tests.faults.machinery.reckoning import Word
from tests.faults.simulation.evidence import Violation
from tests.faults.simulation.mutants import MUTANTS
from tests.faults.simulation.windows import LEAST, WINDOWS
from tests.faults.simulation.world import Verdict, World

_CHUNK = 25
_SMALL_CHUNK = 4
"""For a search that ends at the first finding: what is begun is also finished."""

_SHOWN = 5
_QUIET = structlog.make_filtering_bound_logger(50)


class Total(Struct):
    """The sum over many seeds."""

    seeds: int = 0
    failed: list[Verdict] = field(default_factory=list)
    windows: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    crashes: int = 0
    shutdowns: int = 0
    copies: int = 0
    bound: int = 0
    steps: int = 0

    def add(self, verdict: Verdict) -> None:
        self.seeds += 1
        if verdict.violations:
            self.failed.append(verdict)
        for name in ("windows", "words", "reached"):
            getattr(self, name).update(getattr(verdict, name))
        for name in ("crashes", "shutdowns", "copies", "bound", "steps"):
            setattr(self, name, getattr(self, name) + getattr(verdict, name))


def run_seed(seed: int, mutant: str | None = None, *, is_told: bool = False) -> Verdict:
    """One world. Whatever breaks the simulation itself is a finding too: a bug may show in many ways."""
    with _silent(), MUTANTS[mutant].plant() if mutant else nullcontext():
        world = World(seed, _print if is_told else None)
        try:
            return world.run()
        except Exception:
            world.verdict.violations.append(Violation("simulation", traceback.format_exc(limit=-6)))
            return world.verdict


def verdicts(seeds: Sequence[int], mutant: str | None = None, workers: int = 2) -> Iterator[Verdict]:
    """In the order of the seeds; whoever has seen enough may stop asking."""
    size = _CHUNK if mutant is None else _SMALL_CHUNK
    chunks = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    with patch.dict(os.environ, PYTHONHASHSEED="0"), ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        waiting = [pool.submit(_run_chunk, chunk, mutant) for chunk in chunks]
        try:
            for future in waiting:
                yield from future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def run_all(seeds: Sequence[int], workers: int = 2) -> Total:
    total = Total()
    for verdict in verdicts(seeds, workers=workers):
        total.add(verdict)
    return total


def render_total(total: Total) -> str:
    """What is printed and published of a run."""
    figures = (
        f"{total.seeds:,} seeds, {total.crashes:,} crashes and {total.shutdowns:,} shutdowns; "
        f"{sum(total.words.values()):,} messages; {total.copies:,} copies, {total.bound:,} excused by lost answers."
    )
    words = [
        f"| {' | '.join(Word)} | verdict |",
        "|" + "---:|" * len(Word) + "---|",
        f"| {' | '.join(f'{total.words[word]:,}' for word in Word)} | {'NOT sound' if total.failed else 'sound'} |",
    ]
    windows = ["| window | what the crash hit | times |", "|---|---|---:|"]
    windows += [f"| {name} | {what} | {total.windows[name]:,} |" for name, what in WINDOWS.items()]
    return "\n".join([figures, "", *words, "", *windows])


def render_failures(failed: Sequence[Verdict]) -> str:
    lines = [f"{len(failed)} seeds failed."]
    for verdict in failed[:_SHOWN]:
        first = verdict.violations[0]
        lines.append(f"seed {verdict.seed}: {first.invariant}: {first.text}")
        lines.append(f"    replay: python -m tests.faults.simulation --seed {verdict.seed} --verbose")
    return "\n".join(lines)


def missed_windows(total: Total) -> list[str]:
    return [f"{name}: {total.windows[name]} times" for name in WINDOWS if total.windows[name] < LEAST]


def _run_chunk(seeds: Sequence[int], mutant: str | None) -> list[Verdict]:
    return [run_seed(seed, mutant) for seed in seeds]


@contextmanager
def _silent() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=_QUIET)
    try:
        yield
    finally:
        structlog.configure(**before)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
