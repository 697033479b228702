"""B1 to B3 on PostgreSQL against peers on the same server, and what a second worker brings: a run in, rows out."""

import time
from collections.abc import Sequence
from statistics import median

from bench.figures import Goal, Measured, Pair, Row, measured, ratio_row
from bench.generator import Plan
from bench.noop import read_tally
from bench.postgres.counts import check_counts
from bench.postgres.ground import Ground, ground_of
from bench.postgres.queues import Queued
from bench.postgres.server import PgNoroshi, noroshi_on, workers_on
from bench.processes import Usage
from bench.run import Run
from bench.server import Server, begin_load, finish_load, free_port, spawn

CLIENTS = 64
RECIPIENTS = 5_000
WORST_P99_MS = 100.0
COST = Goal(1.2, 1.2, sign="≤")
"""CPU-seconds of a message with two workers ÷ with one."""

_SLOW = "bench.noop:slow_factory"
_FEW_JOBS = 2_000
_IN_FLIGHT = (("NOROSHI_WORKERS", "email.normal=50"),)


def accept(run: Run) -> list[Row]:
    """Durable accept, addressed before the answer, against FastAPI with one INSERT a request."""
    pairs: list[Pair] = []
    with ground_of(run) as ground:
        for number in range(run.pairs):
            seconds = run.pick(5, 15)
            with ground.populations.copy() as stored, noroshi_on(stored, run.folder) as server:
                server.pause()
                server.load(clients=8, mark="warm", requests=300, has_keys=True)
                ours = _accept(ground, server, seconds)
                check_counts(server, is_drained=False)
            with ground.empty_database(f"fastapi_{number}") as url:
                pairs.append(Pair(ours, _insert(ground, url, seconds)))
    what = f"B1 on PostgreSQL: accept, {CLIENTS} clients ÷ FastAPI with one INSERT a request"
    return [ratio_row(what, "P1, sending paused", "requests", pairs, Goal(1, 2), worst_p99_ms=WORST_P99_MS)]


def _accept(ground: Ground, server: PgNoroshi, seconds: float) -> Measured:
    used, database = server.cpu(), ground.database_seconds()
    report = server.load(clients=CLIENTS, mark="c", seconds=seconds, has_keys=True)
    return _measured(
        report.requests,
        report.seconds,
        server.cpu().since(used),
        ground.database_seconds() - database,
        p50_ms=report.p50_ms,
        p99_ms=report.p99_ms,
    )


def _insert(ground: Ground, url: str, seconds: float) -> Measured:
    port = free_port()
    peer = Server(spawn(["bench.postgres.fastapi_insert", str(port), url], {}), port)
    try:
        peer.wait_until_ready()
        key = "nrs_" + 36 * "0"
        finish_load(begin_load(Plan(port=port, key=key, clients=8, mark="warm", requests=300, has_keys=True)))
        used, database = peer.cpu(), ground.database_seconds()
        plan = Plan(port=port, key=key, clients=CLIENTS, mark="c", seconds=seconds, has_keys=True)
        report = finish_load(begin_load(plan))
        return _measured(
            report.requests,
            report.seconds,
            peer.cpu().since(used),
            ground.database_seconds() - database,
            p50_ms=report.p50_ms,
            p99_ms=report.p99_ms,
        )
    finally:
        peer.stop()


def address_and_drain(run: Run) -> list[Row]:
    """Recipients addressed and sent a second, against what pgqueuer and procrastinate enqueue and drain."""
    recipients = int(run.pick(50_000, 100_000))
    count = 0
    addressed: list[Pair] = []
    drained: list[Pair] = []
    beside_in: list[Pair] = []
    beside_out: list[Pair] = []
    with ground_of(run) as ground:
        for _ in range(run.pairs):
            with ground.populations.copy() as stored, noroshi_on(stored, run.folder) as server:
                into, out, count = _fill_and_drain(ground, server, recipients)
            peer = ground.queue("pgqueuer", recipients)
            addressed.append(Pair(into, _enqueued(peer)))
            drained.append(Pair(out, _drained(peer)))
            other = ground.queue("procrastinate", _FEW_JOBS)
            beside_in.append(Pair(into, _enqueued(other)))
            beside_out.append(Pair(out, _drained(other)))
    into_where = f"P1, {recipients:,} recipients, sending paused"
    out_where = f"P1, {count:,} due deliveries"
    address, drain = f"B2 on PostgreSQL: address, {RECIPIENTS:,} a request", "B3 on PostgreSQL: drain"
    few = f"({_FEW_JOBS:,} jobs)"
    return [
        ratio_row(f"{address} ÷ pgqueuer's bulk enqueue", into_where, "recipients", addressed, Goal(0.4, 0.7)),
        ratio_row(
            f"{drain}, provider taking 100 ÷ pgqueuer's no-op drain", out_where, "deliveries", drained, Goal(1.2, 2)
        ),
        ratio_row(f"{address} ÷ procrastinate's batch defer {few}", into_where, "recipients", beside_in, None),
        ratio_row(f"{drain} ÷ procrastinate's no-op drain {few}", out_where, "deliveries", beside_out, None),
    ]


def _fill_and_drain(ground: Ground, server: PgNoroshi, recipients: int) -> tuple[Measured, Measured, int]:
    server.pause()
    used, database, began = server.cpu(), ground.database_seconds(), time.perf_counter()
    report = server.load(clients=2, mark="many", requests=recipients // RECIPIENTS, recipients=RECIPIENTS)
    server.wait_until_decided()
    seconds = time.perf_counter() - began
    seconds = report.seconds if report.accepted + report.rejected == recipients else seconds
    into = _measured(recipients, seconds, server.cpu().since(used), ground.database_seconds() - database)
    check_counts(server, is_drained=False)
    count = server.stored.number("SELECT count(*) FROM deliveries")
    used, database, began = server.cpu(), ground.database_seconds(), time.perf_counter()
    server.resume()
    server.wait_until_quiet()
    seconds = time.perf_counter() - began
    out = _measured(count, seconds, server.cpu().since(used), ground.database_seconds() - database)
    check_counts(server, is_drained=True)
    return into, out, count


def _enqueued(peer: Queued) -> Measured:
    return measured(peer.done, peer.enqueue_seconds, usage=Usage(peer.enqueue_cpu, 0.0))


def _drained(peer: Queued) -> Measured:
    return measured(peer.done, peer.drain_seconds, usage=Usage(peer.drain_cpu, 0.0))


def second_worker(run: Run) -> list[Row]:
    """What a second worker process brings: a provider that answers after 50 ms, and one that costs nothing."""
    slow: list[Pair] = []
    quick: list[Pair] = []
    waited = spared = 0
    with ground_of(run) as ground:
        for _ in range(run.pairs):
            waited, one = _work(ground, 1, 10_000, _SLOW, _IN_FLIGHT)
            _, two = _work(ground, 2, 10_000, _SLOW, _IN_FLIGHT)
            slow.append(Pair(two, one))
            spared, one = _work(ground, 1, 40_000, "bench.noop:factory")
            _, two = _work(ground, 2, 40_000, "bench.noop:factory")
            quick.append(Pair(two, one))
    what = "second worker ÷ one, provider answering after 50 ms, 50 in flight per process"
    return [
        ratio_row(what, f"P1, {waited:,} due deliveries", "deliveries", slow, Goal(1.8, 1.95)),
        quick_workers_row(f"P1, {spared:,} due deliveries", quick),
    ]


def quick_workers_row(population: str, pairs: Sequence[Pair]) -> Row:
    """Judged by two bars: two workers are no slower than one, and a message costs them hardly more."""
    row = ratio_row("second worker ÷ one, no-op provider", population, "deliveries", pairs, Goal(1.0, 1.0))
    dearer = median(sum(pair.ours.cpu.values()) / sum(pair.limit.cpu.values()) for pair in pairs)
    row.bar += f", CPU {COST.bar_text('×')}"
    row.ratio += f", CPU {dearer:.2f}×"
    if COST.verdict(dearer) == "MISSED":
        row.miss(f"CPU {dearer:.2f}×")
    return row


def _work(
    ground: Ground, workers: int, recipients: int, channel: str, more: tuple[tuple[str, str], ...] = ()
) -> tuple[int, Measured]:
    """How many there were, and from the first message taken to the last."""
    folder = ground.run.folder
    with ground.populations.copy() as stored:
        with noroshi_on(stored, folder) as server:
            server.pause()
            server.load(clients=2, mark="fill", requests=recipients // RECIPIENTS, recipients=RECIPIENTS)
            server.wait_until_decided()
        count = stored.number("SELECT count(*) FROM deliveries")
        with workers_on(stored, server.tally, workers, channel=channel, more=more) as crew:
            crew.wait_until_listening()
            used, database = crew.cpu(), ground.database_seconds()
            with stored.connect() as connection:
                connection.execute("DELETE FROM pauses")
            crew.wait_until_quiet()
            spent = crew.cpu().since(used), ground.database_seconds() - database
        check_counts(server, is_drained=True)
        times = [at for _, at in read_tally(server.tally)]
        return count, _measured(count, max(times) - min(times), *spent)


def _measured(units: int, seconds: float, used: Usage, database: float, **latency: float) -> Measured:
    plain = measured(units, seconds, usage=used, **latency)  # type: ignore[arg-type]  # p50 and p99 alone
    return Measured(
        rate=plain.rate, p50_ms=plain.p50_ms, p99_ms=plain.p99_ms, cpu={**plain.cpu, "database": database / units * 1e6}
    )
