"""B11: critical messages while low ones drain and requests to 10,000 people are addressed, from POST to provider."""

import time

from bench.cast import reachable_users
from bench.counts import batch_bytes, check_counts
from bench.figures import Goal, Measured, Row, latency_row, measured
from bench.generator import Report, percentile
from bench.noop import read_tally
from bench.run import Run
from bench.server import BenchError, Noroshi, noroshi_on

MESSAGES = 200
GOAL = Goal(bar=250, aim=50, sign="<")

_EVERY = 0.03


def run(bench: Run) -> list[Row]:
    low = int(bench.pick(100_000, 500_000))
    runs: list[Measured] = []
    probes = [bench.probe()]
    for _ in range(bench.pairs):
        runs.append(_measure(bench, low))
        probes.append(bench.probe())
    what = "B11 critical beside low and 10,000-recipient requests, POST to provider, p99"
    return [latency_row(what, f"P1, {low:,} low waiting, {MESSAGES} critical", runs, GOAL, probes)]


def _measure(bench: Run, low: int) -> Measured:
    with bench.copy_of() as population, noroshi_on(population) as server:
        server.pause()
        server.load(clients=2, mark="low", requests=low // 5_000, recipients=5_000, priority="low")
        server.wait_until_decided()
        server.resume()
        flood = server.begin(clients=1, mark="flood", seconds=20, recipients=10_000, priority="low")
        time.sleep(1.5)
        used = server.cpu()
        report = server.load(
            clients=1,
            mark="now",
            requests=MESSAGES,
            priority="critical",
            pause=_EVERY,
            is_traced=True,
            only=reachable_users(MESSAGES),
        )
        usage = server.cpu().since(used)
        server.finish(flood)
        server.wait_until_quiet()
        seconds = _ways(server, report)
        check_counts(server, is_drained=True)
        return measured(
            MESSAGES,
            report.seconds,
            usage=usage,
            generator=report.cpu_seconds,
            memory=server.memory(),
            p50_ms=percentile(seconds, 0.5) * 1000,
            p99_ms=percentile(seconds, 0.99) * 1000,
        )


def _ways(server: Noroshi, report: Report) -> list[float]:
    """Seconds from the POST to the provider of each critical message, all of which low ones must have outlasted."""
    taken = read_tally(server.tally)
    arrived = {this[:13]: moment for this, moment in taken}
    if taken[-1][0][:13] in {batch_bytes(trace.batch_id) for trace in report.traces}:
        raise BenchError("the low messages were gone before the last critical one: nothing was measured")
    return [arrived[batch_bytes(trace.batch_id)] - trace.sent_at for trace in report.traces]
