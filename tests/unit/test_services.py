"""The servers that tests stand on: found, shared, killed, started again, and never left behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.services import browser, installation, shared
from tests.services.databases import Databases
from tests.services.fixtures import StartPostgres, skipping
from tests.services.installation import Account, Installation, ServiceMissingError, find_postgres, server_account
from tests.services.postgres import PORTS, installation_in
from tests.services.runs import VARIABLE, is_running, joined_run, new_run, sweep
from tests.services.shared import keep, release, standing
from tests.stand_ins.ledger_provider.process import importing_environment

ASKS_AND_WAITS = """
import os
import signal
from tests.services.runs import joined_run
from tests.services.shared import url_of

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs us in the background turns it off
with joined_run() as run:
    url_of("postgres")
    print(run, (next(run.glob("*/pid"))).read_text(), flush=True)
    input()
"""

CUT_OFF_ALL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
DURABILITY = "SELECT current_setting('fsync'), current_setting('synchronous_commit')"


@pytest.fixture
def installed() -> None:
    with skipping("postgres"), joined_run() as run:
        installation_in(run)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As if this were no test run, and nobody had said where servers are."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("NOROSHI_TEST_POSTGRES", raising=False)
    monkeypatch.setattr(shared, "KEPT", tmp_path / "services")
    yield
    release("postgres")


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def shop(url: str) -> None:
    """Two tables that lean on each other, one of them with a row from the start."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE goods (id serial PRIMARY KEY, name text)")
        connection.execute("CREATE TABLE sold (good int REFERENCES goods, number bigserial)")
        connection.execute("INSERT INTO goods (name) VALUES ('tea')")


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def write(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement)


def test_a_used_database_is_as_its_template_again(postgres_databases: Databases) -> None:
    with postgres_databases.fresh(shop) as url:
        write(url, "INSERT INTO goods (name) VALUES ('rice'); INSERT INTO sold (good) VALUES (1), (2)")
        write(url, "UPDATE goods SET name = 'salt' WHERE id = 1")
    with postgres_databases.fresh(shop) as again:
        assert again == url
        assert rows(again, "SELECT id, name FROM goods") == [(1, "tea")]
        assert rows(again, "SELECT count(*), nextval('sold_number_seq') FROM sold") == [(0, 1)]
        assert rows(again, "INSERT INTO goods (name) VALUES ('rice') RETURNING id") == [(2,)]


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE more (id int)",
        "ALTER TABLE goods ADD COLUMN price int",
        "ALTER TABLE goods SET (fillfactor = 50)",
        "DROP TABLE sold",
        "CREATE INDEX ON goods (name)",
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$",
        CUT_OFF_ALL,
    ],
)
def test_a_database_with_other_changes_than_rows_is_not_used_again(postgres_databases: Databases, change: str) -> None:
    with postgres_databases.fresh(shop) as url:
        write(url, change)
    with postgres_databases.fresh(shop) as other:
        assert other != url
        assert rows(other, "SELECT name FROM goods") == [("tea",)]


def test_two_databases_at_a_time_are_two(postgres_databases: Databases) -> None:
    with postgres_databases.fresh(shop) as one, postgres_databases.fresh(shop) as other:
        write(one, "DELETE FROM goods")
        assert rows(other, "SELECT name FROM goods") == [("tea",)]


def test_connections_that_a_test_forgot_do_not_reach_the_next(postgres_databases: Databases) -> None:
    with postgres_databases.fresh(shop) as url:
        forgotten = psycopg.connect(url)
        forgotten.execute("LOCK goods")
    with postgres_databases.fresh(shop) as again:
        assert rows(again, "SELECT name FROM goods") == [("tea",)]
    with pytest.raises(psycopg.OperationalError):
        forgotten.execute("SELECT 1")


def test_a_database_without_preparation_is_empty(postgres_url: str) -> None:
    assert rows(postgres_url, "SELECT relname FROM pg_class WHERE oid >= 16384") == []


def test_the_shared_server_keeps_what_it_commits(postgres_url: str) -> None:
    # issue 3: the store refuses any other
    assert rows(postgres_url, "SELECT current_setting('fsync'), current_setting('synchronous_commit')") == [
        ("on", "on")
    ]


def test_a_killed_server_comes_back_on_the_same_port_with_all_it_committed(start_postgres: StartPostgres) -> None:
    # F6
    server = start_postgres(log_checkpoints="on")
    url = server.url
    write(url, "CREATE TABLE lives (number serial)")
    for how in (signal.SIGQUIT, signal.SIGKILL, signal.SIGQUIT):
        write(url, "INSERT INTO lives DEFAULT VALUES")
        server.kill(how)
        assert not server.is_running
        server.restart()
    server.restart()
    assert (server.url, server.port in PORTS) == (url, True)
    assert rows(url, "SELECT count(*) FROM lives") == [(3,)]
    assert server.log().count("was not properly shut down") == 3


def test_a_server_can_have_settings_of_its_own(start_postgres: StartPostgres) -> None:
    server = start_postgres(fsync="off", synchronous_commit="off")
    assert rows(server.url, "SELECT current_setting('fsync'), current_setting('synchronous_commit')") == [
        ("off", "off")
    ]


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(
    start_postgres: StartPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with joined_run() as run:  # its own: in that of all tests others start servers meanwhile
        with pytest.raises(RuntimeError, match="no_such_setting"):
            start_postgres(no_such_setting="1")
        assert not list(run.glob("postgres-*"))


def test_a_standby_takes_over_with_every_commit_it_confirmed(start_postgres: StartPostgres) -> None:
    # F7
    first = start_postgres()
    standby = start_postgres(standby_of=first)
    with psycopg.connect(first.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        until(lambda: connection.execute("SELECT sync_state FROM pg_stat_replication").fetchall() == [("sync",)])
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
    first.kill()
    standby.promote()
    write(standby.url, "INSERT INTO kept VALUES (2)")
    assert rows(standby.url, "SELECT number FROM kept") == [(1,), (2,)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, None], ids=["killed", "interrupted", "at-its-end"])
def test_no_server_outlives_its_run(installed: None, alone: None, how: signal.Signals | None) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", ASKS_AND_WAITS],
        env=importing_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with run:
        assert run.stdout is not None
        folder, pid = run.stdout.readline().split()
        assert is_running(int(pid), Path(folder))
        if how is None:
            run.communicate("\n")
        else:
            run.send_signal(how)
            run.wait()
    until(lambda: not Path(folder).exists())
    assert not is_running(int(pid), Path(folder))


def test_what_is_kept_between_runs_is_started_once_and_ended_when_asked(installed: None, alone: None) -> None:
    first = keep("postgres")
    assert keep("postgres") == first
    assert shared.url_of("postgres") == first.url
    assert rows(first.url, "SELECT 1") == [(1,)]
    assert release("postgres")
    assert not first.is_alive
    assert not Path(first.run).exists()
    assert not release("postgres")


def test_what_is_remembered_of_a_dead_server_is_swept_away(installed: None, alone: None) -> None:
    first = keep("postgres")
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not first.is_alive)
    second = keep("postgres")
    assert second.pid != first.pid
    assert not Path(first.run).exists()
    assert rows(second.url, "SELECT 1") == [(1,)]


def test_a_process_that_was_given_the_number_of_a_dead_server_is_left_alone(alone: None) -> None:
    run = new_run()
    (run / "postgres-gone").mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (run / "postgres-gone" / "pid").write_text(str(other.pid))
        sweep(run)
        assert not run.exists()
        other.communicate(b"\n")
    assert other.returncode == 0


def test_a_server_that_is_named_is_used_as_it_is(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_TEST_POSTGRES", "postgresql://far.example/away")
    assert shared.url_of("postgres") == "postgresql://far.example/away"
    assert standing("postgres") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_lends_the_server_another_account(start_postgres: StartPostgres) -> None:
    server = start_postgres()
    assert server_account().uid not in {0, None}
    assert Path(f"/proc/{server.pid}").stat().st_uid == server_account().uid
    assert "Uid:\t0" not in Path(f"/proc/{server.pid}/status").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_programs_that_the_other_account_cannot_reach_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text("#!/bin/sh\necho postgres 99\n")
        (tmp_path / name).chmod(0o755)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(installation, "_DEBIAN", tmp_path / "none")
    with pytest.raises(ServiceMissingError, match="Permission denied"):
        installation._installed()


@pytest.mark.parametrize(("version", "is_taken"), [("9.6.24", False), ("13.4", False), ("14.0", True), ("18.4", True)])
def test_a_server_too_old_for_the_tests_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_taken: bool
) -> None:
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(installation, "server_account", Account)
    monkeypatch.setattr(installation, "_DEBIAN", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if is_taken:
        assert installation._installed().binaries == tmp_path
    else:
        with pytest.raises(ServiceMissingError, match="older than"):
            installation._installed()


def test_apt_is_asked_as_root_only_and_starts_no_server_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    drop_in = tmp_path / "createcluster.d" / "noroshi-tests.conf"
    monkeypatch.setattr(installation, "_NO_CLUSTER", drop_in)
    monkeypatch.setattr(installation, "apt_get", lambda *words: asked.append((words[0], drop_in.read_text())))
    monkeypatch.setattr(installation, "_installed", lambda: Installation(tmp_path, Account()))
    monkeypatch.setattr(shutil, "which", lambda _: "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServiceMissingError, match="apt needs root"):
        installation._from_apt()
    assert asked == []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert installation._from_apt().binaries == tmp_path
    assert asked == [("update", "create_main_cluster = off\n"), ("install", "create_main_cluster = off\n")]
    assert not drop_in.exists()


def test_a_machine_without_a_server_says_why_once(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(source: str) -> Callable[[], Installation]:
        def look() -> Installation:
            asked.append(source)
            raise ServiceMissingError(f"not from {source}")

        return look

    for source in ("installed", "from_apt", "from_wheel"):
        monkeypatch.setattr(installation, f"_{source}", refuse(source))
    with joined_run():
        for _ in range(2):
            with pytest.raises(ServiceMissingError, match="not from installed; not from from_apt; not from from_wheel"):
                shared.url_of("postgres")
    assert asked == ["installed", "from_apt", "from_wheel"]
    with pytest.raises(pytest.skip.Exception, match="service missing: postgres: not from"), skipping("postgres"):
        find_postgres()


def test_a_machine_without_a_browser_says_why_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NOROSHI_TEST_CHROMIUM", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServiceMissingError, match=r"no chromium or .* on PATH; apt needs root$"):
        browser.find_chromium.__wrapped__()


@pytest.mark.parametrize(("says", "is_taken"), [("Chromium 156.0", True), ("please install a snap", False)])
def test_a_browser_that_is_none_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, is_taken: bool
) -> None:
    path = tmp_path / "chromium"
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    monkeypatch.setenv("NOROSHI_TEST_CHROMIUM", str(path))
    if is_taken:
        assert browser._installed() == path
    else:
        with pytest.raises(ServiceMissingError, match="--version ended with 0"):
            browser._installed()


def test_a_browser_comes_from_apt_with_letters_for_japanese(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(browser, "apt_get", lambda *words: asked.append(words))
    monkeypatch.setattr(browser, "_installed", lambda: tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert browser._from_apt() == tmp_path
    assert [words[0] for words in asked] == ["update", "install"]
    assert asked[1][-2:] == ("chromium", "fonts-noto-cjk")
