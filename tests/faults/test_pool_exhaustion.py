"""Connections run out: those of one process, all busy with slow readings, and those of the server."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from noroshi.storage.postgres.store import LOOKERS, WRITERS
from tests.faults.machinery.caller import Caller
from tests.faults.machinery.kept_store import OwnDatabase, StoreDatabases, Stores
from tests.faults.machinery.processes import NotReadyError
from tests.faults.machinery.reckoning import Reckoning, render, render_problems
from tests.faults.machinery.report import publish
from tests.faults.sweep.fleet import Fleet
from tests.faults.sweep.seeded import seed
from tests.services.databases import Databases
from tests.services.fixtures import StartPostgres
from tests.services.postgres import PostgresServer

pytestmark = pytest.mark.xdist_group("pool_exhaustion")

PEOPLE = 20
PATIENCE = 30
DEAD_LETTERS = "/api/v1/dead-letters"
AT_ONCE_SECONDS = 3.0
"""For an accepted call, while readings wait."""

LISTS = max(LOOKERS * 2, WRITERS)
MAX_CONNECTIONS = 30

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'noroshi%' AND wait_event_type = 'Lock'"
_CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'noroshi%'"


@contextlib.contextmanager
def served(
    folder: Path, stores: Stores, workers: int, plants: Sequence[str] | None = None
) -> Iterator[tuple[Fleet, Caller]]:
    seeded = seed(folder / "seeded", PEOPLE, stores)
    with Fleet(folder, seeded, workers=workers, plants=plants) as fleet:
        for member in fleet.members:
            member.start()
        yield fleet, Caller(fleet.noroshi.url, seeded.api_key)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


def reckoned(fleet: Fleet, name: str) -> Reckoning:
    """What was accepted has been sent, once."""
    until(fleet.store.is_drained)
    found = fleet.reckon()
    publish(name, render({"noroshi": found}))
    assert found.is_sound, render_problems(found)
    return found


@contextlib.contextmanager
def waiting_lists(fleet: Fleet, caller: Caller, count: int) -> Iterator[None]:
    """So many lists of dead letters, on as many connections of the process as they can get, wait for a lock; at the
    end they get it, and are answered."""
    with psycopg.connect(fleet.store.place) as holder, ThreadPoolExecutor(LISTS) as readers:
        holder.execute("LOCK TABLE noroshi.dead_letters IN ACCESS EXCLUSIVE MODE")
        asked = [readers.submit(caller.call, "GET", DEAD_LETTERS) for _ in range(LISTS)]
        try:
            with psycopg.connect(fleet.store.place, autocommit=True) as watcher:
                until(lambda: (watcher.execute(_WAITING).fetchone() or (0,))[0] >= count)
            yield
        finally:
            holder.rollback()
        assert all(one.result().status in (200, 503) for one in asked)
        until(lambda: caller.call("GET", DEAD_LETTERS).status == 200)


def test_readings_that_wait_stop_neither_accepting_nor_sending(tmp_path: Path, postgres_databases: Databases) -> None:
    with (
        served(tmp_path, StoreDatabases(postgres_databases), workers=0) as (fleet, caller),
        waiting_lists(fleet, caller, LOOKERS),
    ):
        for number in range(4):
            began = time.monotonic()
            fleet.post(f"request-{number}", fleet.seeded.people[number * 5 : number * 5 + 5], "email")
            assert time.monotonic() - began < AT_ONCE_SECONDS
        assert sum(reckoned(fleet, "pools-process").words.values()) == PEOPLE


def test_lists_that_borrow_the_connections_of_accepting_would_be_found_out(
    tmp_path: Path, postgres_databases: Databases
) -> None:
    """The control of the test above."""
    stores, plants = StoreDatabases(postgres_databases), ["lists_with_the_writers_connections"]
    with served(tmp_path, stores, workers=0, plants=plants) as (fleet, caller), ThreadPoolExecutor(1) as asker:
        with waiting_lists(fleet, caller, WRITERS):
            asked = asker.submit(fleet.post, "request", fleet.seeded.people[:5], "email")
            with pytest.raises(TimeoutError):
                asked.result(AT_ONCE_SECONDS)
        assert asked.result(PATIENCE)


def test_a_server_without_a_connection_to_spare_is_told_and_got_over(
    tmp_path: Path, start_postgres: StartPostgres
) -> None:
    server = start_postgres(max_connections=str(MAX_CONNECTIONS))
    with served(tmp_path, OwnDatabase(server.url), workers=1) as (fleet, caller):
        fleet.post("before", fleet.seeded.people[:5], "email")
        with all_connections_taken(server):
            refused = caller.notify(0, fleet.seeded.people[0], template_id="note", channels=["email"])
            assert (refused.status, refused.fields["code"]) == (503, "store_unavailable")
            for member in fleet.members:
                answer = Caller(member.process.url, None).call("GET", "/readyz")
                assert answer.status == 503 and "the database does not answer" in str(answer.fields["problems"])
            late = fleet.add_worker("late")
            with pytest.raises(NotReadyError) as refusal:
                late.start()
            assert refusal.value.code == 2 and "too many clients" in late.process.log()
        for member in fleet.members[:2]:
            until(lambda: Caller(member.process.url, None).call("GET", "/readyz").status == 200)  # noqa: B023
        fleet.post("after", fleet.seeded.people[5:15], "email")
        assert sum(reckoned(fleet, "pools-server").words.values()) == 15


@contextlib.contextmanager
def all_connections_taken(server: PostgresServer) -> Iterator[None]:
    """Those of the product are cut off, and others are quicker to take their place. A session that is only beginning
    is in no list yet: not before every place is ours can nobody else have one."""
    with contextlib.ExitStack() as held:
        deadline = time.monotonic() + timedelta(seconds=PATIENCE).total_seconds()
        first = held.enter_context(psycopg.connect(server.url, autocommit=True))
        taken = 1
        while taken < MAX_CONNECTIONS:
            assert time.monotonic() < deadline
            first.execute(_CUT_OFF)
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    held.enter_context(psycopg.connect(server.url, autocommit=True))
                    taken += 1
        yield
