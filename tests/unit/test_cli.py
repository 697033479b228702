"""The command line: keys, versions, and a server that starts, says no clearly, and stops cleanly."""

import ast
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stories.demonstration import Demonstration
from typer.testing import CliRunner, Result

from noroshi import __version__
from noroshi.entrypoints.cli.demonstration.printing import commands
from noroshi.entrypoints.cli.main import COMMANDS, app
from noroshi.entrypoints.cli.remembered import remember

ROOT = Path(__file__).parents[2]
KEY = re.compile(r"nrs_[0-9A-Za-z]{36}")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NOROSHI_")]:
        monkeypatch.delenv(name)


def noroshi(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_the_version_is_printed_alone() -> None:
    assert noroshi("version").stdout == f"{__version__}\n"


def test_a_new_key_is_printed_alone_and_listed_without_its_secret(tmp_path: Path) -> None:
    # RELIABILITY 5.2
    data = ["--data", str(tmp_path / "new")]
    made = noroshi("keys", "create", *data, "--name", "shop", "--scopes", "send,read", "--per-minute", "60")
    assert made.exit_code == 0, made.output
    assert KEY.fullmatch(made.stdout.strip())
    [row] = json.loads(noroshi("keys", "list", *data, "--json").stdout)
    assert (row["name"], row["scopes"], row["per_minute"], row["revoked_at"]) == ("shop", "send,read", 60, None)
    assert row["key_id"] == made.stdout[4:12]
    assert made.stdout.strip() not in noroshi("keys", "list", *data).stdout


def test_a_key_is_revoked_once_and_an_unknown_one_is_said_to_be_unknown(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]
    key = noroshi("keys", "create", *data, "--name", "shop", "--scopes", "admin", "--expires-in", "2").stdout
    assert noroshi("keys", "revoke", key[4:12], *data).exit_code == 0
    [row] = json.loads(noroshi("keys", "list", *data, "--json").stdout)
    assert row["revoked_at"] is not None
    assert row["expires_at"] is not None
    refused = noroshi("keys", "revoke", "nobodys1", *data)
    assert (refused.exit_code, refused.stderr) == (2, "noroshi: there is no live key nobodys1\n")


@pytest.mark.parametrize("scopes", ["", "send,everything", ","])
def test_a_scope_that_does_not_exist_makes_no_key(tmp_path: Path, scopes: str) -> None:
    refused = noroshi("keys", "create", "--data", str(tmp_path), "--name", "shop", "--scopes", scopes)
    assert refused.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_migrate_says_which_schema_the_store_has(tmp_path: Path) -> None:
    done = noroshi("migrate", "--data", str(tmp_path))
    assert (done.exit_code, bool(re.fullmatch(r"schema \d+\n", done.stdout))) == (0, True)


def test_an_unknown_variable_is_one_line_and_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOROSHI_PROT", "80")
    refused = noroshi("migrate")
    assert refused.exit_code == 2
    assert refused.stderr == "noroshi: there is no variable NOROSHI_PROT; did you mean NOROSHI_PORT?\n"


def test_the_key_that_is_kept_for_one_server_is_shown_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(tmp_path, "http://127.0.0.1:1", "nrs_kept")
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        monkeypatch.setenv("NOROSHI_URL", f"http://127.0.0.1:{other.getsockname()[1]}")
        refused = noroshi("users", "list", "--folder", str(tmp_path))
        with pytest.raises(BlockingIOError):
            other.accept()
    assert refused.exit_code == 2
    assert "No key" in refused.stderr and "NOROSHI_KEY" in refused.stderr
    monkeypatch.setenv("NOROSHI_URL", "http://127.0.0.1:1/")
    assert noroshi("users", "list", "--folder", str(tmp_path)).exit_code == 4  # its own is asked, if in vain


def test_the_page_of_the_command_line_names_every_command() -> None:
    table = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8").partition("\n\nThe first six")[0]
    named = {words.split()[0] for words in re.findall(r"`([^`]+)`", table)}
    assert named >= COMMANDS.keys()


def test_a_port_in_use_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        refused = noroshi("serve", "--data", str(tmp_path), "--port", port)
    assert refused.exit_code == 2
    assert refused.stderr == f"noroshi: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_the_demonstration_is_not_shown_to_a_whole_network(tmp_path: Path) -> None:
    refused = noroshi("serve", "--dev", "--host", "0.0.0.0", "--data", str(tmp_path))  # noqa: S104
    assert refused.exit_code == 2
    assert "NOROSHI_UNSAFE=on" in refused.stderr


@pytest.mark.parametrize(
    ("words", "what"), [(("worker",), "noroshi worker"), (("serve", "--workers", "2"), "--workers above 1")]
)
def test_several_processes_on_a_file_are_refused_with_the_reason_and_what_to_do(
    words: tuple[str, ...], what: str, tmp_path: Path
) -> None:
    refused = noroshi(*words, "--data", str(tmp_path))
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"noroshi: {what} needs a store that several processes can share")
    assert "NOROSHI_STORE=postgresql://" in line


@pytest.mark.parametrize("words", [("--channels", "email,pigeon"), ("--priorities", "urgent"), ("--channels", ",")])
def test_a_worker_for_what_does_not_exist_is_refused(words: tuple[str, str], tmp_path: Path) -> None:
    refused = noroshi("worker", *words, "--data", str(tmp_path))
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"noroshi: {words[0]} takes ")


@pytest.fixture
def demonstration(tmp_path: Path) -> Iterator[Demonstration]:
    started = Demonstration(tmp_path)
    started.start()
    yield started
    started.kill()


def test_a_second_server_is_told_who_has_the_folder_and_the_first_ends_cleanly(demonstration: Demonstration) -> None:
    # DESIGN 8
    refused = noroshi("serve", "--port", "0", "--data", str(demonstration.folder / ".noroshi"))
    assert refused.exit_code == 2
    assert str(demonstration.process.pid) in refused.stderr
    assert demonstration.stop() == 0


def test_the_commands_can_be_pasted() -> None:
    for _, command in commands("http://127.0.0.1:8000", "nrs_x"):
        assert command.startswith("curl -s ")
        assert "\n" not in command
        assert command.count("'") % 2 == 0


def test_serving_loads_neither_the_client_nor_the_tables_of_other_commands() -> None:
    """What a server in service holds in memory is what it needs."""
    script = (
        "import sys; import noroshi.entrypoints.cli.main, noroshi.entrypoints.cli.servers; print(sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(ran.stdout))
    strangers = {
        "pyreqwest",
        "noroshi.client",
        "noroshi.entrypoints.cli.demonstration",
        "noroshi.entrypoints.cli.showing",
    }
    assert loaded & strangers == set()
    assert "noroshi.entrypoints.cli.serving" in loaded


SERVING = {"starlette", "uvicorn", "prometheus_client", "minijinja", "noroshi.flow.way", "noroshi.keeper"}
LATER = {"rich", "better_exceptions", "pygments", "email_validator", "phonenumbers", "asyncpg", "pyreqwest"}
"""What is loaded by the first call that needs it; rich by the first table, not by the logs."""


@pytest.mark.parametrize(
    ("command", "strangers"),
    [("serve", LATER), ("worker", LATER), *((name, LATER | SERVING) for name in ("keys", "migrate", "console"))],
)
def test_a_command_loads_no_more_than_it_needs(command: str, strangers: set[str]) -> None:
    script = (
        "import sys; from noroshi.entrypoints.cli import lazy, main\n"
        f"lazy.Commands(main.COMMANDS)[{command!r}]; print(sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(ran.stdout))
    assert loaded & strangers == set()
    assert "structlog" in loaded, "the logs are there from the start"


def test_the_logs_come_without_rich_and_whoever_draws_a_table_has_it_later() -> None:
    script = (
        "import sys; from noroshi.entrypoints.cli import lazy, main\n"
        "lazy.Commands(main.COMMANDS)['keys']; import rich.console, structlog, gc\n"
        "print(structlog.dev.rich, rich.console.Console.__name__, gc.isenabled())"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "None Console True\n"
