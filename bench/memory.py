"""Memory: what all processes of an idle server take, a few seconds after it started."""

import time
from statistics import median

from bench.figures import Goal, Row
from bench.run import Run
from bench.server import noroshi_on

GOAL = Goal(bar=150, aim=90, sign="<")

_SETTLES = 4.0


def run(bench: Run) -> list[Row]:
    found = []
    for _ in range(bench.pairs):
        with bench.copy_of() as population, noroshi_on(population) as server:
            time.sleep(_SETTLES)
            found.append(server.memory())
    own = median(memory.own for memory in found)
    return [
        Row(
            what="memory, all processes, idle (PSS)",
            population="P1, no-op provider",
            figure=f"{own:.0f} MB (RSS {median(memory.resident for memory in found):.0f})",
            bar=GOAL.bar_text(" MB"),
            aim=GOAL.aim_text(" MB"),
            verdict=GOAL.verdict(own),
            peak=f"{max(memory.peak for memory in found):.0f}",
        )
    ]
