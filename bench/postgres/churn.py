"""B12, churn on PostgreSQL: a run in; whether the last minutes cost more than the first, and what grew, out.

One `serve` and one `worker` are given requests at a steady rate and send everything, for half an hour
(`NOROSHI_BENCH_MINUTES`). The rate is a share of what the same two drain at most, measured before on another copy. The
first and the last sixth of the time are compared: messages sent a second, and CPU-seconds a message of the product and
the database together; the worse of both ratios is judged. The queue is the table `deliveries` with its indexes, which
every message passes through: it may at its largest be twice as large in the last sixth as in the first.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from statistics import median
from typing import Any, NamedTuple

from msgspec import Struct

from bench.figures import Goal, Row, judge, refusal
from bench.noop import TallyCount
from bench.postgres.counts import check_counts
from bench.postgres.ground import Ground, ground_of
from bench.postgres.population import PgPopulation
from bench.postgres.server import Crew, PgNoroshi, noroshi_on, workers_on
from bench.run import Run
from bench.server import BenchError

SLOW_DOWN = Goal(0.9, 0.95)
GROWTH = Goal(2, 1.5, sign="≤")
SHARE = 0.5
"""Of what is drained at most."""

_MINUTES = "NOROSHI_BENCH_MINUTES"
_WINDOWS = 6
_SAMPLES = 30
"""In a window."""
_RECIPIENTS = 50
_CLIENTS = 8
_DRAINED = 40_000
_SIZES = """
SELECT pg_table_size('deliveries'), pg_indexes_size('deliveries'), pg_database_size(current_database()),
    (SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'noroshi' AND relname = 'deliveries'),
    (SELECT count(*) FROM deliveries)
"""


class Sample(Struct, frozen=True):
    """The state at one moment; messages and CPU-seconds are those since the beginning. Sizes are in bytes."""

    seconds: float
    messages: int
    cpu: float
    table: int = 0
    indexes: int = 0
    database: int = 0
    dead: int = 0
    waiting: int = 0
    probe: float = 1.0

    @property
    def queue(self) -> int:
        return self.table + self.indexes


class Window(NamedTuple):
    """What lies between the first and the last of some samples."""

    samples: Sequence[Sample]

    @property
    def rate(self) -> float:
        return self._messages / (self.samples[-1].seconds - self.samples[0].seconds)

    @property
    def cpu(self) -> float:
        """Microseconds a message."""
        return (self.samples[-1].cpu - self.samples[0].cpu) / self._messages * 1e6

    @property
    def _messages(self) -> int:
        count = self.samples[-1].messages - self.samples[0].messages
        if count <= 0:
            raise BenchError("nothing was sent for a sixth of the time")
        return count

    def most(self, name: str) -> int:
        return max(int(getattr(sample, name)) for sample in self.samples)

    def shown(self) -> str:
        return f"{self.most('table') / 1e6:.1f} MB, indexes {self.most('indexes') / 1e6:.1f} MB"

    def probe(self) -> float:
        return median(sample.probe for sample in self.samples)


def churn(run: Run) -> list[Row]:
    minutes = float(os.environ.get(_MINUTES, "30"))
    with ground_of(run, **pauses_of(minutes)) as ground:
        rate = _most_drained(ground) * SHARE
        with _processes(ground) as (server, crew):
            samples = list(_churn(ground, server, crew, rate, minutes * 60))
            server.wait_until_quiet()
            check_counts(server, is_drained=True)
    held = sum(report.recipients for report in server.reports) / (minutes * 60)
    asked = f"{rate:,.0f} recipients/s asked for ({SHARE:.0%} of what it drains), {held:,.0f} accepted"
    return rows_of(f"P1, {asked}, {samples[-1].messages:,} messages", minutes, samples)


def pauses_of(minutes: float) -> dict[str, str]:
    """A checkpoint and several vacuums in every window, so that each has its share of them: in half an hour these are
    PostgreSQL's own five minutes and one."""
    window = minutes * 60 / _WINDOWS
    return {"checkpoint_timeout": f"{max(30, round(window))}s", "autovacuum_naptime": f"{max(1, round(window / 5))}s"}


def rows_of(population: str, minutes: float, samples: Sequence[Sample]) -> list[Row]:
    length = len(samples) // _WINDOWS
    first, last = Window(samples[: length + 1]), Window(samples[-length - 1 :])
    refused = refusal([first.probe(), last.probe()])
    rows = [_slow_down_row(first, last), _growth_row(first, last, Window(samples))]
    for row in rows:
        row.what = f"B12 on PostgreSQL: {minutes:g} min of churn, {row.what}"
        row.population = population
        row.verdict = refused or row.verdict
    return rows


def _slow_down_row(first: Window, last: Window) -> Row:
    ratio = min(last.rate / first.rate, first.cpu / last.cpu)
    row = Row(
        what="speed of the last sixth ÷ the first",
        population="",
        figure=f"{last.rate:,.0f} messages/s, {last.cpu:,.0f} µs CPU each",
        limit=f"{first.rate:,.0f} messages/s, {first.cpu:,.0f} µs CPU each",
        ratio=f"{ratio:.3f}",
    )
    judge(row, ratio, SLOW_DOWN)
    return row


def _growth_row(first: Window, last: Window, whole: Window) -> Row:
    grown = last.most("queue") / first.most("queue")
    begin, end = whole.samples[0], whole.samples[-1]
    kept = (end.database - begin.database) / max(end.messages - begin.messages, 1) / 1000
    return Row(
        what="queue of the last sixth ÷ the first, at its largest",
        population="",
        figure=f"{last.shown()}; at most {whole.most('dead'):,} dead rows and {whole.most('waiting'):,} waiting;"
        f" all tables grew by {kept:.2f} kB a message",
        limit=first.shown(),
        ratio=f"{grown:.2f}",
        bar=GROWTH.bar_text(),
        aim=GROWTH.aim_text(),
        verdict=GROWTH.verdict(grown),
    )


@contextmanager
def _processes(ground: Ground) -> Iterator[tuple[PgNoroshi, Crew]]:
    with (
        ground.populations.copy() as stored,
        noroshi_on(stored, ground.run.folder) as server,
        workers_on(stored, server.tally, 1, channel="bench.noop:factory") as crew,
    ):
        crew.wait_until_listening(beside=1)
        yield server, crew


def _most_drained(ground: Ground) -> float:
    """Messages a second, as B3 has it, by the processes that will churn."""
    with _processes(ground) as (server, _):
        server.pause()
        server.load(clients=2, mark="fill", requests=_DRAINED // 5_000, recipients=5_000)
        server.wait_until_decided()
        count = server.stored.number("SELECT count(*) FROM deliveries")
        began = time.perf_counter()
        server.resume()
        server.wait_until_quiet()
        seconds = time.perf_counter() - began
        check_counts(server, is_drained=True)
    return count / seconds


def _churn(ground: Ground, server: PgNoroshi, crew: Crew, rate: float, seconds: float) -> Iterator[Sample]:
    plan = {"clients": _CLIENTS, "mark": "churn", "recipients": _RECIPIENTS, "per_second": rate / _RECIPIENTS}
    load = server.begin(seconds=seconds, **plan)
    taken = TallyCount(server.tally)
    began, every = time.monotonic(), seconds / _WINDOWS / _SAMPLES
    used = _used(ground, server, crew)
    while load.poll() is None and time.monotonic() - began < seconds:
        yield Sample(
            seconds=time.monotonic() - began,
            messages=taken.count(),
            cpu=_used(ground, server, crew) - used,
            **_sizes(server.stored),
            probe=_probe(),
        )
        time.sleep(every)
    server.finish(load)


def _used(ground: Ground, server: PgNoroshi, crew: Crew) -> float:
    return sum(server.cpu()) + sum(crew.cpu()) + ground.database_seconds()


def _sizes(stored: PgPopulation) -> dict[str, Any]:
    with stored.connect() as connection:
        row = connection.execute(_SIZES).fetchone()
    assert row is not None
    return dict(zip(("table", "indexes", "database", "dead", "waiting"), row, strict=True))


def _probe() -> float:
    """CPU-seconds of a piece of work that is always the same: what the machine itself has become slower by."""
    used = time.thread_time()
    for _ in range(20):
        sha256(_WORK).digest()
    return time.thread_time() - used


_WORK = bytes(1_000_000)
