"""Showing: answers in; tables, times and JSON that people and machines read out."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNFOLDED = 200
"""The width of what goes into a file or a pipe: nothing is cut there."""

_COLOURS = {
    "SENT": "green",
    "DELIVERED": "green",
    "OPENED": "green",
    "CLICKED": "green",
    "DEAD_LETTERED": "red",
    "BOUNCED": "red",
    "COMPLAINED": "red",
    "SUPPRESSED": "yellow",
    "CANCELLED": "dim",
    "SCHEDULED": "cyan",
    "RETRYING": "magenta",
}


def console(*, is_for_errors: bool = False) -> Console:
    made = Console(stderr=is_for_errors, highlight=False)
    return made if made.is_terminal else Console(stderr=is_for_errors, highlight=False, width=_UNFOLDED)


def print_json(answer: Any) -> None:
    typer.echo(msgspec.json.encode(answer).decode())


def print_table(
    columns: Sequence[str], rows: Iterable[Iterable[Any]], *, empty: str, whole: Sequence[str] = ()
) -> None:
    """`empty` is said instead of a table without rows. The first column and those named `whole` are ids that people
    copy: they are never cut, however narrow the screen."""
    cells = [[cell if isinstance(cell, Text) else Text(shown(cell)) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        is_whole = place == 0 or name in whole
        widest = max((row[place].cell_len for row in cells), default=0)
        table.add_column(name, min_width=widest if is_whole else None, no_wrap=is_whole, overflow="fold")
    for row in cells:
        table.add_row(*row)
    console().print(table if cells else empty)


def print_facts(facts: Mapping[str, Any]) -> None:
    """What is known of one thing, a line each."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        table.add_row(Text(name, "dim"), Text(shown(value)))
    console().print(table)


def shown(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={shown(item)}" for name, item in value.items())
    return str(value)


def moment(at: datetime) -> str:
    """In the zone of this machine, to the second."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def status_text(status: str) -> Text:
    return Text(status, _COLOURS.get(status, ""))
