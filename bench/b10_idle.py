"""B10: one message at a time through an idle server, from the POST until the catcher's row can be read by another.

The row is watched from outside, over a second connection to the file, every tenth of a millisecond: the server is
asked nothing meanwhile.
"""

import socket
import time

import apsw

from bench.cast import reachable_users
from bench.counts import WrongCountError
from bench.figures import Goal, Measured, Row, latency_row, measured
from bench.generator import Plan, percentile, requests_of
from bench.population import one_number
from bench.run import Run
from bench.server import BenchError, Noroshi, noroshi_on

MESSAGES = 300
P50 = Goal(bar=10, aim=3, sign="<")
P99 = Goal(bar=50, aim=10, sign="<")

_LOOK_EVERY = 0.0001
_REST = 0.02
_LONGEST = 10.0


def run(bench: Run) -> list[Row]:
    runs: list[Measured] = []
    probes = [bench.probe()]
    for _ in range(bench.pairs):
        runs.append(_measure(bench))
        probes.append(bench.probe())
    what = "B10 idle, POST to caught, p50 / p99"
    return [latency_row(what, f"P1, catcher, {MESSAGES} messages one at a time", runs, P99, probes, p50=P50)]


def _measure(bench: Run) -> Measured:
    with bench.copy_of() as population, noroshi_on(population, channel="catcher") as server:
        _send_each(server, 20, "warm")
        used = server.cpu()
        seconds = _send_each(server, MESSAGES, "idle")
        ours = measured(
            MESSAGES,
            sum(seconds),
            usage=server.cpu().since(used),
            memory=server.memory(),
            p50_ms=percentile(seconds, 0.5) * 1000,
            p99_ms=percentile(seconds, 0.99) * 1000,
        )
        found = server.reader().execute("SELECT count(*), count(DISTINCT notification_id) FROM caught").fetchall()[0]
        if found != (MESSAGES + 20, MESSAGES + 20):
            raise WrongCountError(f"caught: {found}, not {MESSAGES + 20}")
    return ours


def _send_each(server: Noroshi, count: int, mark: str) -> list[float]:
    plan = Plan(port=server.port, key=server.population.key, clients=1, mark=mark, only=reachable_users(count))
    build = requests_of(plan)
    seconds: list[float] = []
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            seconds.append(_send_one(connection, server.reader(), build(number)))
            time.sleep(_REST)
    return seconds


def _send_one(connection: socket.socket, reader: apsw.Connection, request: bytes) -> float:
    before = _latest(reader)
    began = time.perf_counter()
    connection.sendall(request)
    while _latest(reader) == before:
        if time.perf_counter() - began > _LONGEST:
            raise BenchError("nothing was caught")
        time.sleep(_LOOK_EVERY)
    seconds = time.perf_counter() - began
    if not connection.recv(65_536).startswith(b"HTTP/1.1 202"):
        raise BenchError("the message was not accepted")
    return seconds


def _latest(reader: apsw.Connection) -> int:
    return one_number(reader, "SELECT max(caught_id) FROM caught WHERE tenant = 1")
