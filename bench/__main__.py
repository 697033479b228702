"""The command: names of scenarios in, one table out; exits with 1 if a bar was missed or a count was wrong."""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import apsw
from rich.console import Console

from bench import (
    b01_accept,
    b02_address,
    b03_drain,
    b07_mail,
    b08_streams,
    b09_due,
    b10_idle,
    b11_urgent,
    b14,
    console,
    memory,
)
from bench.counts import WrongCountError
from bench.figures import Row
from bench.postgres import scenarios
from bench.probe import filesystem_of
from bench.run import Run
from bench.server import BenchError
from bench.table import page, print_table

SCENARIOS: dict[str, Callable[[Run], list[Row]]] = {
    "B1": b01_accept.run,
    "B2": b02_address.run,
    "B3": b03_drain.run,
    "B7": b07_mail.run,
    "B8": b08_streams.run,
    "B9": b09_due.run,
    "B10": b10_idle.run,
    "B11": b11_urgent.run,
    "B14": b14.run,
    "console": console.run,
    "memory": memory.run,
    "B1-postgres": scenarios.accept,
    "B2-B3-postgres": scenarios.address_and_drain,
    "workers-postgres": scenarios.second_worker,
}

_PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_QUICK_MINUTES = 15
_LAST_REPEAT = 0.6  # of the quick run's time: what is refused after that is not tried again


def main(arguments: Sequence[str] | None = None) -> int:
    given = _read(arguments)
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="noroshi-bench-", dir=given.work))
    began = time.monotonic()
    rows: list[Row] = []
    try:
        run = Run(folder, is_full=given.full)
        for name in given.scenarios or SCENARIOS:
            minutes = (time.monotonic() - began) / 60
            may_repeat = given.full or minutes < _QUICK_MINUTES * _LAST_REPEAT
            console.print(f"{name} ... ({minutes:.1f} min so far)", highlight=False)
            rows += _measure(name, run, may_repeat=may_repeat)
        machine = _machine(folder, run)
    finally:
        shutil.rmtree(folder)
    print_table(rows, machine, console)
    if given.publish:
        _PAGE.parent.mkdir(exist_ok=True)
        _PAGE.write_text(page(rows, machine, f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")
    return int(any(row.verdict.startswith(("MISSED", "WRONG", "FAILED")) for row in rows))


def _measure(name: str, run: Run, *, may_repeat: bool) -> list[Row]:
    """The scenario's rows; a scenario of which a row was refused is measured once more if there is time."""
    try:
        rows = SCENARIOS[name](run)
        if may_repeat and any(row.verdict.startswith("REFUSED") for row in rows):
            rows = SCENARIOS[name](run)
    except WrongCountError as error:
        return [Row(what=name, population="", figure="", verdict=f"WRONG COUNT: {error}")]
    except BenchError as error:
        return [Row(what=name, population="", figure="", verdict=f"FAILED: {error}")]
    return rows


def _machine(folder: Path, run: Run) -> str:
    size = "the full run" if run.is_full else "the quick run"
    return (
        f"{size}, {run.pairs} pairs, on {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()} (WAL, synchronous=FULL) on {filesystem_of(folder)}, "
        f"load average {os.getloadavg()[1]:.1f}"
    )


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The figures, side by side in one run.")
    parser.add_argument("scenarios", nargs="*", metavar="B1", help=f"of {', '.join(SCENARIOS)}; all if left out")
    parser.add_argument("--full", action="store_true", help="5 pairs and the full numbers")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--work", type=Path, help="a folder on a real disk to work in")
    given = parser.parse_args(arguments)
    strangers = [name for name in given.scenarios if name not in SCENARIOS]
    if strangers:
        parser.error(f"there is no {', '.join(strangers)}; there are {', '.join(SCENARIOS)}")
    return given


if __name__ == "__main__":
    sys.exit(main())
