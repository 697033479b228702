"""B1: single sends accepted a second, durable and addressed before the answer, against the same server decoding only.

Each call names one person, other data and an idempotency key. Both servers stand side by side and are loaded in turns,
a second each: the speed of a machine moves within minutes. Sending is paused while accepting is judged, since that is
another figure; one more row, not judged, has it go on.
"""

import time

from bench.counts import check_counts
from bench.figures import Goal, Measured, Pair, Row, joined, latency_row, measured, ratio_row
from bench.generator import Plan
from bench.run import Run
from bench.server import Noroshi, Server, begin_load, decoder, finish_load, noroshi_on

CLIENTS = (8, 64)
GOALS: dict[int, Goal | None] = {8: None, 64: Goal(bar=0.25, aim=0.4)}
WORST_P99_MS = 100.0
UNDER_LOAD = Goal(bar=WORST_P99_MS, aim=WORST_P99_MS, sign="<")

_WARM_UP = 300
_TURNS = 4


def run(bench: Run) -> list[Row]:
    pairs: dict[int, list[Pair]] = {clients: [] for clients in CLIENTS}
    sending: list[Pair] = []
    under_load: list[Measured] = []
    probes = [bench.probe()]
    for _ in range(bench.pairs):
        accepted, crowded = _accept(bench)
        for clients in CLIENTS:
            pairs[clients].append(accepted[clients])
        under_load.append(crowded)
        sending.append(Pair(_accept_and_send(bench), accepted[CLIENTS[-1]].limit))
        probes.append(bench.probe())
    rows = [
        ratio_row(
            f"B1 accept, {clients} clients ÷ decoding only",
            "P1, sending paused",
            "requests",
            pairs[clients],
            GOALS[clients],
            worst_p99_ms=WORST_P99_MS,
        )
        for clients in CLIENTS
    ]
    what = f"B1 accept, {CLIENTS[-1]} clients, beside 10,000-recipient requests back to back"
    rows.append(latency_row(what, "P1, sending paused", under_load, UNDER_LOAD, probes))
    what = f"B1 accept, {CLIENTS[-1]} clients ÷ decoding only, sending goes on"
    rows.append(ratio_row(what, "P1, no-op provider", "requests", sending, None))
    return rows


def _accept(bench: Run) -> tuple[dict[int, Pair], Measured]:
    """By number of clients; and at the highest, while another client sends to 10,000 people at a time."""
    seconds = bench.pick(4, 15)
    with bench.copy_of() as population, noroshi_on(population) as server, decoder() as limit:
        server.pause()
        server.load(clients=8, mark="warm", requests=_WARM_UP, has_keys=True)
        _decode_by(limit, 8, 0.5)
        pairs = {clients: _by_turns(server, limit, clients, seconds) for clients in CLIENTS}
        flood = server.begin(clients=1, mark="flood", seconds=seconds + 1, recipients=10_000)
        time.sleep(0.5)
        crowded = _measure(server, CLIENTS[-1], seconds, "crowd")
        server.finish(flood)
        server.wait_until_decided()
        check_counts(server, is_drained=False)
    return pairs, crowded


def _by_turns(server: Noroshi, limit: Server, clients: int, seconds: float) -> Pair:
    ours: list[Measured] = []
    limits: list[Measured] = []
    for turn in range(_TURNS):
        ours.append(_measure(server, clients, seconds / _TURNS, f"c{clients}-{turn}"))
        limits.append(_decode_by(limit, clients, seconds / _TURNS))
    return Pair(joined(ours), joined(limits))


def _accept_and_send(bench: Run) -> Measured:
    with bench.copy_of() as population, noroshi_on(population) as server:
        server.load(clients=8, mark="warm", requests=_WARM_UP, has_keys=True)
        ours = _measure(server, CLIENTS[-1], bench.pick(4, 15), "sent")
        server.wait_until_quiet()
        check_counts(server, is_drained=True)
    return ours


def _measure(server: Noroshi, clients: int, seconds: float, mark: str) -> Measured:
    before = server.cpu()
    report = server.load(clients=clients, mark=mark, seconds=seconds, has_keys=True)
    return measured(
        report.requests,
        report.seconds,
        usage=server.cpu().since(before),
        generator=report.cpu_seconds,
        memory=server.memory(),
        p50_ms=report.p50_ms,
        p99_ms=report.p99_ms,
    )


def _decode_by(server: Server, clients: int, seconds: float) -> Measured:
    plan = Plan(port=server.port, key="nrs_" + 36 * "0", clients=clients, mark="bare", seconds=seconds, has_keys=True)
    before = server.cpu()
    report = finish_load(begin_load(plan))
    used = server.cpu().since(before)
    return measured(report.requests, report.seconds, usage=used, p50_ms=report.p50_ms, p99_ms=report.p99_ms)
