"""The table: rows in; lines for a terminal, or a page for the documentation, out."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table

from bench.figures import Row

_COLUMNS = {
    "what": "what",
    "population": "population",
    "figure": "figure",
    "limit": "limit in the same run",
    "ratio": "ratio",
    "spread": "spread",
    "bar": "bar",
    "aim": "aim",
    "verdict": "verdict",
    "p50": "p50 ms",
    "p99": "p99 ms",
    "cpu": "CPU µs a unit: server / child / generator or database",
    "peak": "peak RSS MB",
}
_WIDEST = 220
_STORES = ("SQLite", "PostgreSQL", "Without a store")
_WITHOUT_A_STORE = {"B14"}
_HEAD = """# Benchmarks

Each ratio is one of two measurements taken in turns in one run: the product, and the same work without any decision,
or a peer's. The ratio is what is judged; rates are those of one machine on one day. Every row says by its number which
[run](#runs) it is from; `bench/` says how it is taken.

```sh
make bench                                   # the quick size, in a quarter of an hour
make bench-full B=--publish                  # the full size, in hours; writes this page and its chart
make bench-full B="--publish B12-postgres"   # a part of it: the rows of the others stay as they are
```

![Every judged ratio with its bar and its aim; the numbers stand in the tables below](pictures/benchmarks.svg)
"""

NOTES = (
    "Ratios are medians of the pairs' ratios.",
    "Pacing, the 429 and the 503 limits are raised. Accepting (B1) and addressing (B2) have sending paused.",
    "B1 calls carry an idempotency key and other data each; B2 has two clients.",
    "B1: both servers are loaded in turns, a second each in the quick run; its bar is for 64 clients.",
    "B7: personalised text and HTML, four connections each; the peer renders with Jinja2 and sends a tenth as many.",
    "B7: smtp-source sends one text without rendering or keeping anything, letters as large as ours, unpipelined.",
    "B8: from the commit of a round on; onlookers and server share the machine, as with the bare fan-out.",
    "B8: p99 is that of the slowest round. To 10,000 streams the bare fan-out alone takes over 100 ms: no bar there.",
    "B12: its limit is its own first sixth; `NOROSHI_BENCH_MINUTES` shortens it. Kills are in the fault report.",
    "A tenth of P1 has the category off and a fiftieth is suppressed: these are decided, recorded and not sent to.",
    "After each measurement the counts were exact: accepted = stored, sent once each, none lost, none doubled.",
    "The limit of a latency is one durable 4 kB write and one loopback call; its ratio is of the p50.",
)


def print_table(rows: Sequence[Row], machine: str, console: Console) -> None:
    table = Table(title=machine, title_justify="left", show_lines=True)
    for title in _COLUMNS.values():
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(getattr(row, name) for name in _COLUMNS), style=_style(row.verdict))
    wide = console if console.width >= _WIDEST else Console(width=_WIDEST)
    wide.print(table)
    for note in NOTES:
        wide.print(f"- {note}", highlight=False)


class Taken(Protocol):
    """The rows of one scenario, and the run that they are from."""

    @property
    def scenario(self) -> str: ...
    @property
    def day(self) -> str: ...
    @property
    def run(self) -> str: ...
    @property
    def rows(self) -> Sequence[Row]: ...


def store_of(scenario: str) -> str:
    """The heading that its rows stand under."""
    sqlite, postgres, without = _STORES
    if scenario in _WITHOUT_A_STORE:
        return without
    return postgres if scenario.endswith("-postgres") else sqlite


def by_store(published: Sequence[Taken]) -> dict[str, list[Taken]]:
    """Under their headings, of which none is empty."""
    found = {store: [one for one in published if store_of(one.scenario) == store] for store in _STORES}
    return {store: those for store, those in found.items() if those}


def page(published: Sequence[Taken]) -> str:
    """docs/benchmarks.md, whole; the same for the same rows."""
    runs = sorted({_run_of(one) for one in published})
    lines = [_HEAD]
    for store, those in by_store(published).items():
        lines += [f"## {store}", *_table(those, runs), ""]
    lines += ["## Runs", *(f"{number}. {run}" for number, run in enumerate(runs, start=1)), ""]
    lines += ["## Notes", *(f"- {note}" for note in NOTES)]
    return "\n".join(lines) + "\n"


def _run_of(taken: Taken) -> str:
    return f"{taken.day}: {taken.run}."


def _table(published: Sequence[Taken], runs: list[str]) -> Iterator[str]:
    yield _line([*_COLUMNS.values(), "run"])
    yield "|" + "---|" * (len(_COLUMNS) + 1)
    for taken in published:
        number = str(runs.index(_run_of(taken)) + 1)
        for row in taken.rows:
            yield _line([*(getattr(row, name) for name in _COLUMNS), number])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _style(verdict: str) -> str:
    if verdict.startswith(("MISSED", "WRONG", "FAILED")):
        return "red"
    if verdict.startswith("REFUSED"):
        return "yellow"
    return "green" if verdict.endswith("met") else ""
