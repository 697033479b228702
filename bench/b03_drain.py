"""B3: deliveries sent a second, the whole way to a no-op provider that takes 100, against claiming and finishing."""

import time

from bench.counts import WrongCountError, check_counts
from bench.figures import Goal, Measured, Pair, Row, measured, ratio_row
from bench.generator import Report
from bench.population import Population, one_number
from bench.processes import Usage
from bench.raw import claim_and_finish_all
from bench.run import Run
from bench.server import noroshi_on

LANE = "email.noop.normal"
GOAL = Goal(bar=0.3, aim=0.5)


def run(bench: Run) -> list[Row]:
    recipients = int(bench.pick(35_000, 115_000))
    pairs: list[Pair] = []
    count = 0
    for _ in range(bench.pairs):
        with bench.copy_of() as population:
            reports, count = _fill(population, recipients)
            with bench.copy_of(population) as same:
                limit = _claim_and_finish(same, count)
            pairs.append(Pair(_drain(population, reports, count), limit))
    what = "B3 drain, provider taking 100 ÷ raw claim-and-finish"
    return [ratio_row(what, f"P1, {count:,} due deliveries", "deliveries", pairs, GOAL)]


def _fill(population: Population, recipients: int) -> tuple[list[Report], int]:
    """Deliveries that wait, put there by the product itself under a pause, which stays when it stops."""
    with noroshi_on(population) as server:
        server.pause()
        server.load(clients=2, mark="fill", requests=recipients // 5_000, recipients=5_000)
        server.wait_until_decided()
        return server.reports, one_number(server.reader(), "SELECT count(*) FROM deliveries")


def _drain(population: Population, reports: list[Report], count: int) -> Measured:
    with noroshi_on(population) as server:
        server.reports += reports
        server.find_pause()
        used, began = server.cpu(), time.perf_counter()
        server.resume()
        server.wait_until_quiet()
        seconds = time.perf_counter() - began
        ours = measured(count, seconds, usage=server.cpu().since(used), memory=server.memory())
        check_counts(server, is_drained=True)
    return ours


def _claim_and_finish(population: Population, count: int) -> Measured:
    finished, seconds, used = claim_and_finish_all(population, LANE)
    if finished != count:
        raise WrongCountError(f"raw: {finished} finished, not {count}")
    return measured(count, seconds, usage=Usage(used, 0.0))
