"""The server that all contestants share: a run in; a PostgreSQL of our own with P1 in it, and room for peers, out."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import sql
from tests.services.installation import find_postgres
from tests.services.postgres import PostgresServer, running_postgres

from bench.postgres.population import PgPopulations
from bench.postgres.queues import Queued
from bench.processes import children_of, seconds_of
from bench.run import Run
from bench.server import BenchError, spawn

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
"""What any handbook says for a machine of this size; fsync and synchronous_commit stay on."""


class Ground:
    def __init__(self, server: PostgresServer, run: Run) -> None:
        self._server = server
        self.run = run
        self.populations = PgPopulations(server.url, run.population)

    def database_seconds(self) -> float:
        """CPU-seconds of the database so far, with those of connections that have ended."""
        of_children = sum(seconds_of(child) for child in children_of(self._server.pid))
        return of_children + seconds_of(self._server.pid)

    @contextmanager
    def empty_database(self, name: str) -> Iterator[str]:
        """The URL of a database for a peer."""
        quoted = sql.Identifier(name)
        with psycopg.connect(self._server.url, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(quoted))
            try:
                yield f"{self._server.url.rpartition('/')[0]}/{name}"
            finally:
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(quoted))

    def queue(self, name: str, jobs: int) -> Queued:
        """A peer's figures for so many jobs."""
        with self.empty_database(f"peer_{name}") as url:
            process = spawn(["bench.postgres.queues", name, url, str(jobs)], {}, stdout=subprocess.PIPE)
            output: Any = process.communicate()[0]
        if process.returncode:
            raise BenchError(f"{name} failed: see above")
        queued = msgspec.json.decode(output, type=Queued)
        if (queued.done, queued.left) != (jobs, 0):
            raise BenchError(f"{name} did {queued.done} of {jobs} jobs, {queued.left} are left")
        return queued


def version() -> str:
    """Of the server's program."""
    return find_postgres().run("postgres", "--version").split()[2]


@contextmanager
def ground_of(run: Run, **settings: str) -> Iterator[Ground]:
    """One server a scenario: its pages are its own. `settings` are instead of those above."""
    with running_postgres(**{**SETTINGS, **settings}) as server:  # type: ignore[arg-type]  # names of settings
        run.cluster = server.cluster
        yield Ground(server, run)
