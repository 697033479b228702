"""The table: rows in; lines for a terminal, or a page for the documentation, out."""

from collections.abc import Sequence

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

NOTES = (
    "Ratios are medians of the pairs' ratios and are what is judged; rates are this machine's, on this day.",
    "Pacing, the 429 and the 503 limits are raised. Accepting (B1) and addressing (B2) have sending paused.",
    "B1 calls carry an idempotency key and other data each; B2 has two clients.",
    "B7: personalised text and HTML, four connections each; the peer renders with Jinja2 and sends a tenth as many.",
    "B8: from the commit of a round on; onlookers and server share the machine, as with the bare fan-out.",
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


def page(rows: Sequence[Row], machine: str, day: str) -> str:
    """docs/benchmarks.md, whole."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench-full` with `--publish`; `bench/` says how each figure is taken.",
        "",
        f"{day}: {machine}.",
        "",
        "| " + " | ".join(_COLUMNS.values()) + " |",
        "|" + "---|" * len(_COLUMNS),
        *("| " + " | ".join(getattr(row, name) for name in _COLUMNS) + " |" for row in rows),
        "",
        *(f"- {note}" for note in NOTES),
    ]
    return "\n".join(lines) + "\n"


def _style(verdict: str) -> str:
    if verdict.startswith(("MISSED", "WRONG", "FAILED")):
        return "red"
    if verdict.startswith("REFUSED"):
        return "yellow"
    return "green" if verdict.endswith("met") else ""
