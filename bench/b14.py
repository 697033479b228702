"""B14: rendering against sandboxed Jinja2, as `b14_render` measures it."""

from importlib import import_module
from importlib.util import find_spec

from bench.figures import Goal, Row
from bench.run import Run

GOAL = Goal(bar=4, aim=8)


def run(_bench: Run) -> list[Row]:
    if find_spec("bench.b14_render") is None:
        return [Row(what="B14 render", population="", figure="", verdict="not built here")]
    rows = []
    for found in import_module("bench.b14_render").run():
        ratio = found["ratio"]
        rows.append(
            Row(
                what=found["name"],
                population="no store",
                figure=found["detail"].partition("; bar")[0],
                ratio="" if ratio is None else f"{ratio:.1f}",
                bar="" if ratio is None else f"≥ {GOAL.bar:g}",
                aim="" if ratio is None else f"{GOAL.aim:g}",
                verdict="not judged" if ratio is None else GOAL.verdict(ratio),
            )
        )
    return rows
