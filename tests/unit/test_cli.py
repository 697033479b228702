"""The command line: keys, versions, and a server that starts, says no clearly, and stops cleanly."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner, Result

from noroshi import __version__
from noroshi.entrypoints.cli.demonstration import demonstration_commands
from noroshi.entrypoints.cli.main import app

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


class Demonstration:
    """A server in a process of its own; made when it has printed its last command, so it listens."""

    def __init__(self, data: Path) -> None:
        words = ["serve", "--dev", "--port", "0", "--data", str(data)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "noroshi.entrypoints.cli.main", *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.strip())
            if len(lines) > 2 and lines[-2] == "# Why it arrived":
                break
        self.text = "\n".join(lines)
        self.url = re.search(r"http://127.0.0.1:\d+", self.text)[0]  # type: ignore[index]
        self.key = KEY.search(self.text)[0]  # type: ignore[index]


@pytest.fixture
def demonstration(tmp_path: Path) -> Iterator[Demonstration]:
    started = Demonstration(tmp_path)
    with started.process:
        yield started
        started.process.kill()


def test_the_printed_commands_work_and_the_server_ends_cleanly(demonstration: Demonstration, tmp_path: Path) -> None:
    # DESIGN 8
    assert [command for _, command in demonstration_commands(demonstration.url, demonstration.key)] == [
        line for line in demonstration.text.splitlines() if line.startswith("curl ")
    ]
    headers = {"Authorization": f"Bearer {demonstration.key}"}
    with urlopen(Request(f"{demonstration.url}/api/v1/users/hanako", headers=headers)) as answer:  # noqa: S310
        assert json.load(answer)["user_id"] == "hanako"
    refused = noroshi("serve", "--port", "0", "--data", str(tmp_path))
    assert refused.exit_code == 2
    assert str(demonstration.process.pid) in refused.stderr
    demonstration.process.send_signal(signal.SIGTERM)
    assert demonstration.process.wait(20) == 0


def test_the_commands_can_be_pasted() -> None:
    for _, command in demonstration_commands("http://127.0.0.1:8000", "nrs_x"):
        assert command.startswith("curl -s ")
        assert "\n" not in command
        assert command.count("'") % 2 == 0
