"""The doctor: what it finds, how bad that is, and that it changes nothing and tells no secret."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from noroshi.care.condition import judge_postgres, judge_sqlite, judge_vitals
from noroshi.care.findings import Finding, Level
from noroshi.care.floors import FLOORS, installed, is_at_least
from noroshi.domain.instants import Instant
from noroshi.entrypoints.cli.main import app
from noroshi.storage.signs import PostgresSigns, SqliteSigns, TableSigns
from noroshi.storage.vitals import Vitals

NOW = Instant(1_772_442_000_000_000)
MINUTE = 60_000_000

WELL = Vitals(
    now=NOW,
    unfinished=3,
    oldest={"email.acme.normal": Instant(NOW - 1)},
    requests=1,
    dead_requests=1,
    dead_letters=2,
    leases=1,
    leases_run_out=0,
    paused=[],
    blocked=[],
    marks={},
)
SOUND = PostgresSigns(
    version=150_004,
    settings={
        **dict.fromkeys(("fsync", "full_page_writes", "synchronous_commit", "autovacuum"), "on"),
        "synchronous_standby_names": "",
        "autovacuum_naptime": "1min",
        "max_connections": "100",
    },
    clock_ahead=0.002,
    connections=12,
    oldest_transaction=0.5,
    standbys=0,
    is_standby=False,
    days=98,
    tables=[TableSigns("notifications", 5_000_000, 10_000, 10, NOW)],
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NOROSHI_")]:
        monkeypatch.delenv(name)


def doctor(*words: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *words])


def findings(result: Result) -> dict[str, Finding]:
    """The worst of each subject."""
    ranks = list(Level)
    found = sorted(msgspec.json.decode(result.stdout, type=list[Finding]), key=lambda one: ranks.index(one.level))
    return {one.subject: one for one in found}


def levels(found: list[Finding]) -> dict[str, Level]:
    return {one.subject: one.level for one in found if one.level is not Level.OK}


# versions


@pytest.mark.parametrize(
    ("version", "floor", "is_enough"),
    [
        ("1.10.0", "1.9", True),
        ("0.49.0", "0.49.1", False),
        ("44", "44.0.0", True),
        ("3.51.3.0", "3.51.3", True),
        ("2.0rc1", "2.0", True),
        ("0.0.9", "0.0.27", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, floor: str, is_enough: bool) -> None:
    assert is_at_least(version, floor) is is_enough


def test_nothing_installed_here_is_older_than_is_safe() -> None:  # RELIABILITY 5.4
    found = installed()
    assert {"apsw", "starlette", "msgspec"} <= found.keys()
    assert [name for name, version in found.items() if not is_at_least(version, FLOORS[name])] == []


# the command


def test_a_machine_without_a_store_is_looked_at_and_left_as_it_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    result = doctor("--data", str(data), "--json")
    assert result.exit_code == 0, result.output
    found = findings(result)
    assert (found["store"].level, found["keys"].level, found["channels"].level) == (Level.WARNING,) * 3
    assert "apsw" in found["packages"].text
    assert not data.exists()


def test_a_store_is_described_and_exit_code_0(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "data")]
    assert CliRunner().invoke(app, ["migrate", *data]).exit_code == 0
    result = doctor(*data, "--json")
    assert result.exit_code == 0
    found = findings(result)
    assert {"schema", "unfinished", "leases", "dead letters", "disk", "data folder", "keys"} <= found.keys()
    assert found["keys"].level is Level.OK
    shown = doctor(*data)
    assert shown.exit_code == 0
    assert "unfinished" in shown.stdout


def test_keys_that_others_can_read_are_a_problem_and_exit_code_1(tmp_path: Path) -> None:
    data = tmp_path / "data"
    CliRunner().invoke(app, ["migrate", "--data", str(data)])
    (data / "secrets").chmod(0o644)
    data.chmod(0o777)
    result = doctor("--data", str(data), "--json")
    assert result.exit_code == 1
    found = findings(result)
    assert (found["keys"].level, found["data folder"].level) == (Level.PROBLEM, Level.PROBLEM)
    assert "chmod 700" in found["data folder"].advice


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://shop:geheim@127.0.0.1:1/shop",
        "postgresql://shop:geheim@127.0.0.1:port/shop",
        "postgresql://shop:geheim@/shop?host=/nowhere",
        "postgresql://shop:geheim@127.0.0.1:1/shop?sslmode=geheim-mode",
    ],
)
def test_a_database_out_of_reach_is_a_problem_that_tells_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("NOROSHI_STORE", url)
    result = doctor("--data", str(tmp_path), "--json")
    assert result.exit_code == 1, result.output
    assert findings(result)["store"].level is Level.PROBLEM
    assert ":geheim" not in result.output


def test_unsafe_settings_are_problems_and_a_catcher_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"UNSAFE": "on", "CRASH_AT": "nowhere", "CATCHER": "on", "HOST": "192.0.2.1"}.items():
        monkeypatch.setenv(f"NOROSHI_{name}", value)
    found = findings(doctor("--data", str(tmp_path), "--json"))
    assert found["NOROSHI_UNSAFE"].level is Level.PROBLEM
    assert found["NOROSHI_CRASH_AT"].level is Level.PROBLEM
    assert found["NOROSHI_PUBLIC_URL"].level is Level.WARNING
    assert "the catcher stands in" in found["channels"].text


def test_a_spoilt_file_is_a_problem_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "noroshi.db").write_text("this is no database" * 100)
    result = doctor("--data", str(tmp_path), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[-1]["level"] == "problem"


# what is judged how


def test_a_store_that_is_well_gives_no_warning() -> None:
    assert levels([*judge_vitals(WELL), *judge_postgres(SOUND)]) == {}
    assert levels([*judge_sqlite(SqliteSigns("3.51.3", 1_000, 1_000, "wal"))]) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"oldest": {"sms.acme.normal": NOW - 2 * MINUTE}}, {"sms.acme.normal": Level.WARNING}),
        ({"oldest": {"sms.acme.normal": NOW - 20 * MINUTE}}, {"sms.acme.normal": Level.PROBLEM}),
        ({"oldest": {"sms.acme.normal": NOW - 20 * MINUTE}, "paused": ["everything"]}, {"pauses": Level.WARNING}),
        ({"leases_run_out": 1}, {"leases": Level.WARNING}),
        ({"dead_letters": 5_000}, {"dead letters": Level.WARNING}),
        ({"dead_requests": 5_000}, {"requests": Level.WARNING}),
        ({"blocked": ["acme"]}, {"accounts": Level.WARNING}),
        ({"marks": {"restored": "{}"}}, {"restored": Level.WARNING}),
        ({"marks": {"moving": "x"}}, {"store": Level.PROBLEM}),
    ],
)
def test_what_waits_too_long_or_stands_still_is_told(changes: dict[str, object], expected: dict[str, Level]) -> None:
    assert levels([*judge_vitals(msgspec.structs.replace(WELL, **changes))]) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 130_000}, {"server": Level.PROBLEM}),
        ({"clock_ahead": -3.0}, {"clock": Level.WARNING}),
        ({"clock_ahead": 300.0}, {"clock": Level.PROBLEM}),
        ({"connections": 95}, {"connections": Level.PROBLEM}),
        ({"oldest_transaction": 4_000.0}, {"transactions": Level.WARNING}),
        ({"standbys": 1}, {"replication": Level.WARNING}),
        ({"is_standby": True}, {"replication": Level.PROBLEM}),
        ({"days": 200}, {"days": Level.WARNING}),
        ({"settings": {**SOUND.settings, "fsync": "off"}}, {"fsync": Level.PROBLEM}),
        ({"settings": {**SOUND.settings, "autovacuum": "off"}}, {"autovacuum": Level.PROBLEM}),
        ({"tables": [TableSigns("deliveries", 1, 100, 300_000, None)]}, {"deliveries": Level.WARNING}),
    ],
)
def test_a_server_that_may_lose_or_hinder_is_told_of(changes: dict[str, object], expected: dict[str, Level]) -> None:
    assert levels([*judge_postgres(msgspec.structs.replace(SOUND, **changes))]) == expected


def test_a_log_that_nobody_can_begin_anew_is_told_of() -> None:
    assert levels([*judge_sqlite(SqliteSigns("3.51.3", 1_000, 10**9, "wal"))]) == {"store": Level.WARNING}


# what the commands ask for


@pytest.mark.parametrize(
    "words",
    [
        ["restore"],
        ["restore", "--review", "--resume"],
        ["restore", "--review", "--discard-due"],
        ["restore", "--resume", "--due-before", "2026-03-02T09:00+09:00"],
        ["restore", "--resume", "--discard-due", "--due-before", "yesterday"],
        ["backup"],
        ["move", "--from", "sqlite:///x.db"],
        ["move", "--from", "nonsense", "--to", "postgresql://localhost/x"],
    ],
)
def test_a_command_that_says_too_little_or_too_much_is_refused(tmp_path: Path, words: list[str]) -> None:
    refused = CliRunner().invoke(app, [*words, "--data", str(tmp_path)])
    assert refused.exit_code == 2
    assert "Traceback" not in refused.output
