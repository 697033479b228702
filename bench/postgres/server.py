"""Noroshi on PostgreSQL under test: a population in; running processes, what they used, and what they left out."""

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

from bench.noop import TALLY
from bench.postgres.population import PgPopulation
from bench.processes import Usage, cpu_of
from bench.server import RAISED, BenchError, Noroshi, free_port, spawn

_LOOK_EVERY = 0.01
_IS_UNDECIDED = "SELECT EXISTS (SELECT 1 FROM batches WHERE state = 0)::integer"
_LISTENING = """
SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""
_IS_BUSY = "SELECT (EXISTS (SELECT 1 FROM batches WHERE state = 0) OR EXISTS (SELECT 1 FROM deliveries))::integer"


class PgNoroshi(Noroshi):
    """`serve` on a database."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, population: PgPopulation, tally: Path) -> None:
        super().__init__(process, port, population)  # type: ignore[arg-type]  # the same words, another store
        self.stored = population
        self._tally = tally

    @property
    def tally(self) -> Path:
        return self._tally

    def wait_until_decided(self) -> None:
        self._wait_for(_IS_UNDECIDED)

    def wait_until_quiet(self) -> None:
        self._wait_for(_IS_BUSY)

    def _wait_for(self, question: str) -> None:
        with self.stored.connect() as connection:
            while (row := connection.execute(question).fetchone()) is not None and row[0]:
                if self._process.poll() is not None:
                    raise BenchError(f"the server ended with {self._process.returncode}")
                time.sleep(_LOOK_EVERY)


class Crew:
    """Worker processes alone, without `serve`."""

    def __init__(self, stored: PgPopulation, workers: "list[subprocess.Popen[bytes]]") -> None:
        self._stored = stored
        self._workers = workers

    def cpu(self) -> Usage:
        used = [cpu_of(worker.pid) for worker in self._workers]
        return Usage(sum(one.server for one in used), sum(one.child for one in used))

    def wait_until_listening(self, *, beside: int = 0) -> None:
        """A worker listens once it has read the pauses and stands at its lanes; so do those `beside` it."""
        self._wait(_LISTENING, len(self._workers) + beside)

    def wait_until_quiet(self) -> None:
        self._wait(_IS_BUSY, 0)

    def _wait(self, question: LiteralString, wanted: int) -> None:
        with self._stored.connect() as connection:
            while (row := connection.execute(question).fetchone()) is None or row[0] != wanted:
                for worker in self._workers:
                    if worker.poll() is not None:
                        raise BenchError(f"a worker ended with {worker.returncode}")
                time.sleep(_LOOK_EVERY)


@contextmanager
def noroshi_on(population: PgPopulation, folder: Path) -> Iterator[PgNoroshi]:
    """`serve`, started; stopped cleanly at the end."""
    tally = folder / f"tally-{population.database}"
    tally.unlink(missing_ok=True)  # an earlier scenario may have had a database of this name
    port = free_port()
    environment = _environment(population, tally, "bench.noop:factory", ())
    process = spawn(["noroshi.entrypoints.cli.main", "serve", "--port", str(port)], environment)
    server = PgNoroshi(process, port, population, tally)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@contextmanager
def workers_on(
    population: PgPopulation, tally: Path, count: int, *, channel: str, more: Sequence[tuple[str, str]] = ()
) -> Iterator[Crew]:
    environment = _environment(population, tally, channel, more)
    workers = [spawn(["noroshi.entrypoints.cli.main", "worker"], environment) for _ in range(count)]
    try:
        yield Crew(population, workers)
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.wait(60)


def _environment(
    population: PgPopulation, tally: Path, channel: str, more: Sequence[tuple[str, str]]
) -> dict[str, str]:
    return {
        "NOROSHI_DATA": str(population.folder),
        "NOROSHI_STORE": population.url,
        "NOROSHI_LOG_LEVEL": "error",
        "NOROSHI_CHANNELS": channel,
        TALLY: str(tally),
        **RAISED,
        **dict(more),
    }
