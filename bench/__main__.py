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
from tests.services.installation import ServiceMissingError

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
    first_message,
    memory,
)
from bench.counts import WrongCountError
from bench.figures import Row
from bench.postgres import churn, scenarios
from bench.postgres.ground import version
from bench.probe import filesystem_of
from bench.published import Published, publish
from bench.run import Run
from bench.server import BenchError
from bench.table import print_table, store_of

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
    "first-message": first_message.run,
    "B1-postgres": scenarios.accept,
    "B2-B3-postgres": scenarios.address_and_drain,
    "workers-postgres": scenarios.second_worker,
    "B12-postgres": churn.churn,
}

FULL_ONLY = {"B12-postgres"}
"""Left out of the quick run unless named."""

_QUICK_MINUTES = 15
_LAST_REPEAT = 0.6  # of the quick run's time: what is refused after that is not tried again


def main(arguments: Sequence[str] | None = None) -> int:
    given = _read(arguments)
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="noroshi-bench-", dir=given.work))
    began, load = time.monotonic(), os.getloadavg()[1]
    rows: list[Row] = []
    runs: set[str] = set()
    try:
        run = Run(folder, is_full=given.full)
        for name in given.scenarios or scenarios_of(is_full=given.full):
            minutes = (time.monotonic() - began) / 60
            may_repeat = given.full or minutes < _QUICK_MINUTES * _LAST_REPEAT
            console.print(f"{name} ... ({minutes:.1f} min so far)", highlight=False)
            taken = measure(SCENARIOS[name], name, run, may_repeat=may_repeat)
            rows += taken
            if is_skipped(taken):
                continue
            circumstances = _circumstances(store_of(name), run, load)
            runs.add(circumstances)
            if given.publish:
                publish(Published(name, f"{datetime.now(UTC):%Y-%m-%d}", circumstances, taken), list(SCENARIOS))
    finally:
        shutil.rmtree(folder)
    print_table(rows, "\n".join(sorted(runs)), console)
    return int(any(row.verdict.startswith(("MISSED", "WRONG", "FAILED")) for row in rows))


def scenarios_of(*, is_full: bool) -> list[str]:
    """Those of a run that names none."""
    return [name for name in SCENARIOS if is_full or name not in FULL_ONLY]


def measure(scenario: Callable[[Run], list[Row]], name: str, run: Run, *, may_repeat: bool) -> list[Row]:
    """The scenario's rows; one of which a judged row was refused is measured once more if there is time."""
    try:
        rows = scenario(run)
        if may_repeat and any(row.bar and row.verdict.startswith("REFUSED") for row in rows):
            rows = scenario(run)
    except WrongCountError as error:
        return [Row(what=name, population="", figure="", verdict=f"WRONG COUNT: {error}")]
    except BenchError as error:
        return [Row(what=name, population="", figure="", verdict=f"FAILED: {error}")]
    except ServiceMissingError as error:
        return [Row(what=name, population="", figure="", verdict=f"{_SKIPPED}: {error}")]
    return rows


_SKIPPED = "SKIPPED"


def is_skipped(rows: Sequence[Row]) -> bool:
    """Nothing was measured, for lack of a server: what was published before stays."""
    return all(row.verdict.startswith(_SKIPPED) for row in rows)


def _circumstances(store: str, run: Run, load: float) -> str:
    size = "the full run" if run.is_full else "the quick run"
    return (
        f"{size}, {run.pairs} pairs, on {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{_store(store, run)}load average at its start {load:.1f}"
    )


def _store(store: str, run: Run) -> str:
    if store == "SQLite":
        return f"SQLite {apsw.sqlite_lib_version()} (WAL, synchronous=FULL) on {filesystem_of(run.folder)}, "
    if store == "PostgreSQL":
        return f"PostgreSQL {version()} (fsync and synchronous_commit on) on {filesystem_of(run.cluster)}, "
    return ""


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The figures, side by side in one run.")
    every = f"of {', '.join(SCENARIOS)}; all if left out, {', '.join(sorted(FULL_ONLY))} in the full run alone"
    parser.add_argument("scenarios", nargs="*", metavar="B1", help=every)
    parser.add_argument("--full", action="store_true", help="5 pairs and the full numbers")
    parser.add_argument("--publish", action="store_true", help="write the rows into docs/benchmarks.md and its chart")
    parser.add_argument("--work", type=Path, help="a folder on a real disk to work in")
    given = parser.parse_args(arguments)
    strangers = [name for name in given.scenarios if name not in SCENARIOS]
    if strangers:
        parser.error(f"there is no {', '.join(strangers)}; there are {', '.join(SCENARIOS)}")
    return given


if __name__ == "__main__":
    sys.exit(main())
