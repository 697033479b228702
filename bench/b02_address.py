"""B2: recipients addressed a second, 5,000 a request, against inserting the very same rows without any decision."""

import time

from bench.counts import check_counts
from bench.figures import Goal, Measured, Pair, Row, measured, ratio_row
from bench.processes import Usage
from bench.raw import Written, insert_all, read_written
from bench.run import Run
from bench.server import noroshi_on

RECIPIENTS = 5_000
CLIENTS = 2
GOAL = Goal(bar=0.3, aim=0.5)


def run(bench: Run) -> list[Row]:
    recipients = int(bench.pick(50_000, 100_000))
    pairs: list[Pair] = []
    for _ in range(bench.pairs):
        ours, written, commits = _address(bench, recipients)
        with bench.copy_of() as population:
            seconds, used = insert_all(population, written, commits)
        pairs.append(Pair(ours, measured(recipients, seconds, usage=Usage(used, 0.0))))
    what = f"B2 address, {RECIPIENTS:,} recipients a request ÷ raw insert"
    return [ratio_row(what, f"P1, {recipients:,} recipients, sending paused", "recipients", pairs, GOAL)]


def _address(bench: Run, recipients: int) -> tuple[Measured, Written, int]:
    """From the first byte until everyone is decided; and what was written, in how many commits."""
    with bench.copy_of() as population:
        with noroshi_on(population) as server:
            server.pause()
            used, commits, began = server.cpu(), server.commits(), time.perf_counter()
            report = server.load(clients=CLIENTS, mark="many", requests=recipients // RECIPIENTS, recipients=RECIPIENTS)
            server.wait_until_decided()
            seconds = time.perf_counter() - began
            # The generator starts up first; an answer that came before all was decided ends later than the last one.
            seconds = report.seconds if report.accepted + report.rejected == recipients else seconds
            ours = measured(
                recipients,
                seconds,
                usage=server.cpu().since(used),
                generator=report.cpu_seconds,
                memory=server.memory(),
            )
            commits = server.commits() - commits
            check_counts(server, is_drained=False)
        return ours, read_written(population), int(commits)
