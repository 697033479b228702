"""B14: rendering against sandboxed Jinja2, as `b14_render` measures it."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bench.figures import Goal, Row, judge
from bench.run import Run

GOAL = Goal(bar=4, aim=8)


def run(_bench: Run) -> list[Row]:
    if find_spec("bench.b14_render") is None:
        return [Row(what="B14 render", population="", figure="", verdict="not built here")]
    return [_row(found) for found in import_module("bench.b14_render").run()]


def _row(found: dict[str, Any]) -> Row:
    row = Row(what=found["name"], population="no store", figure=found["detail"].partition("; bar")[0])
    if found["ratio"] is not None:
        row.ratio = f"{found['ratio']:.1f}"
        judge(row, found["ratio"], GOAL)
    return row
