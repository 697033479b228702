"""B8: from committed entries of inboxes to bytes on many streams, against writing one prebuilt buffer to as many.

One entry a person and round. The clock begins when all entries of a round are committed and ends when the last stream
has its own; the onlookers are one process, the same for both sides.
"""

import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import IO, Any

import msgspec
from msgspec import Struct

from bench.cast import TEMPLATE, reachable_users, user_id
from bench.counts import same
from bench.figures import Goal, Measured, Pair, Row, measured, ratio_row
from bench.population import Population, one_number
from bench.run import Run
from bench.server import RAISED, BenchError, Noroshi, free_port, spawn

GOAL = Goal(bar=0.2, aim=0.4)
MEMORY = Goal(bar=20, aim=15, sign="<")

WORST_P99_MS = {2_000: 100}
"""By the number of streams. To 10,000 a bare fan-out alone takes longer than that on two cores: there is no bar."""

_SPARE_FILES = 500
_ROUNDS = 12
_WARM = 2


class Seen(Struct):
    """Of one round: when half, all but a hundredth and all of the streams had their entry; how many each has by now,
    and how many bytes the entry was."""

    p50: float
    p99: float
    last: float
    counts: list[int]
    size: int


class Onlookers:
    """The process that has the streams."""

    def __init__(self, port: int, key: str, paths: list[str]) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = spawn(["bench.stream_client", str(port), key], {}, **pipes)
        self.count = len(paths)
        _say(self._process.stdin, msgspec.json.encode(paths))
        try:
            self._hear()
        except BenchError:
            self.leave()
            raise

    def await_round(self) -> Seen:
        _say(self._process.stdin, b"")
        return msgspec.json.decode(self._hear(), type=Seen)

    def _hear(self) -> bytes:
        return _hear(self._process.stdout, "the process of the onlookers")

    def leave(self) -> None:
        _kill(self._process)


def run(bench: Run) -> list[Row]:
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    rows: list[Row] = []
    for streams in (2_000, 10_000) if bench.is_full else (2_000,):
        lack = lacking_files(streams, most_files)
        rows += _rows(bench, streams) if lack is None else [lack]
    return rows


def _rows(bench: Run, streams: int) -> list[Row]:
    pairs: list[Pair] = []
    kilobytes: list[float] = []
    for _ in range(bench.pairs):
        ours, size, per_stream = _ours(bench, streams)
        pairs.append(Pair(ours, bare_fan_out(streams, size)))
        kilobytes.append(per_stream)
    population = f"P1, {streams:,} streams of as many people, an entry each a round"
    worst = WORST_P99_MS.get(streams)
    row = ratio_row(_what(streams), population, "entries", pairs, GOAL, worst_p99_ms=worst)
    row.limit += f", p99 {median(pair.limit.p99_ms or 0.0 for pair in pairs):.0f} ms"
    return [row, _memory_row(streams, kilobytes)]


def _what(streams: int) -> str:
    return f"B8 entries, {streams:,} streams ÷ bare"


def lacking_files(streams: int, most_files: int) -> Row | None:
    """The row that says why so many streams cannot be opened here; None if they can. Each end is one process."""
    needed = streams + _SPARE_FILES
    if most_files == resource.RLIM_INFINITY or most_files >= needed:
        return None
    why = f"not judged: a process may have {most_files:,} files open here, {needed:,} are needed (`ulimit -Hn`)"
    return Row(what=_what(streams), population=f"P1, {streams:,} streams", figure="", verdict=why)


def _ours(bench: Run, streams: int) -> tuple[Measured, int, float]:
    people = [user_id(number) for number in reachable_users(streams)]
    with bench.copy_of() as population, _holding(population, streams) as (server, output):
        _write_template(server)
        before = server.memory().resident
        onlookers = Onlookers(server.port, population.key, [f"/api/v1/users/{one}/inbox/stream" for one in people])
        try:
            per_stream = (server.memory().resident - before) * 1024 / streams
            rounds = [_tell(server, output, onlookers, people, number) for number in range(_WARM + _ROUNDS)]
            memory = server.memory()
        finally:
            onlookers.leave()
        wanted = streams * len(rounds)
        same("entries kept", one_number(server.reader(), "SELECT count(*) FROM inbox"), wanted=wanted)
        same("notifications delivered", one_number(server.reader(), _DELIVERED), wanted=wanted)
    return _measured(streams, rounds[_WARM:], memory=memory), rounds[-1][1].size, per_stream


_DELIVERED = "SELECT count(*) FROM notifications WHERE tenant = 1 AND channel = 'in_app' AND status = 61"


def _tell(
    server: Noroshi, output: IO[bytes], onlookers: Onlookers, people: list[str], number: int
) -> tuple[float, Seen]:
    """One request to everybody; when its entries were committed, and when they came."""
    body = {"user_ids": people, "template_id": TEMPLATE, "channels": ["in_app"], "data": {"order": f"round-{number}"}}
    status, text = server.ask("POST", "/api/v1/notifications", server.population.key, msgspec.json.encode(body))
    if status != 202:
        raise BenchError(f"the round was answered with {status}: {text!r}")
    seen = onlookers.await_round()
    same("entries on every stream", *seen.counts, wanted=number + 1)
    return float(_hear(output, "the server")), seen


def bare_fan_out(streams: int, size: int) -> Measured:
    """The limit: a buffer of so many bytes, written to so many streams."""
    port = free_port()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = spawn(["bench.bare_streams", str(port), str(size)], {}, **pipes)
    try:
        _hear(server.stdout, "the bare server")
        onlookers = Onlookers(port, "", ["/"] * streams)
        try:
            rounds = [_write(server, onlookers, number) for number in range(_WARM + _ROUNDS)]
        finally:
            onlookers.leave()
    finally:
        _kill(server)
    return _measured(streams, rounds[_WARM:])


def _write(server: "subprocess.Popen[bytes]", onlookers: Onlookers, number: int) -> tuple[float, Seen]:
    time.sleep(0.05)
    _say(server.stdin, b"")
    seen = onlookers.await_round()
    same("buffers on every stream", *seen.counts, wanted=number + 1)
    return float(_hear(server.stdout, "the bare server")), seen


def _measured(streams: int, rounds: list[tuple[float, Seen]], **more: Any) -> Measured:
    seconds = sum(seen.last - began for began, seen in rounds)
    p50 = median(seen.p50 - began for began, seen in rounds) * 1000
    p99 = max(seen.p99 - began for began, seen in rounds) * 1000
    return measured(streams * len(rounds), seconds, p50_ms=p50, p99_ms=p99, **more)


@contextmanager
def _holding(population: Population, streams: int) -> Iterator[tuple[Noroshi, IO[bytes]]]:
    environment = {
        "NOROSHI_DATA": str(population.folder),
        "NOROSHI_LOG_LEVEL": "error",
        "BENCH_STREAMS": str(streams),
        "NOROSHI_INBOX_STREAMS": str(streams * 2),
        **RAISED,
    }
    port = free_port()
    process = spawn(["bench.held_streams", "serve", "--port", str(port)], environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    server = Noroshi(process, port, population)
    try:
        server.wait_until_ready()
        yield server, process.stdout
    finally:
        server.stop()


def _write_template(server: Noroshi) -> None:
    for locale in ("en", "ja"):
        body = {"channel": "in_app", "locale": locale, "title": "Order {{ order }}", "body": "Dear {{ user.name }}"}
        path = f"/api/v1/templates/{TEMPLATE}"
        status, _ = server.ask("POST", path, server.population.key, msgspec.json.encode(body))
        if status != 201:
            raise BenchError(f"the template was answered with {status}")


def _memory_row(streams: int, kilobytes: list[float]) -> Row:
    each = median(kilobytes)
    return Row(
        what=f"B8 memory of a stream, {streams:,} idle",
        population="RSS of the server, after ÷ before",
        figure=f"{each:.1f} kB",
        bar=MEMORY.bar_text(" kB"),
        aim=MEMORY.aim_text(" kB"),
        verdict=MEMORY.verdict(each),
    )


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """With its pipes."""
    with process:
        process.kill()


def _say(pipe: IO[bytes] | None, line: bytes) -> None:
    assert pipe is not None
    pipe.write(line + b"\n")
    pipe.flush()


def _hear(pipe: IO[bytes] | None, whose: str) -> bytes:
    assert pipe is not None
    line = pipe.readline().strip()
    if not line:
        raise BenchError(f"{whose} ended without a word: see above")
    return line
