"""`noroshi serve --dev` as a newcomer runs it: in a folder of its own, with `.venv/bin/noroshi` beside it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.stand_ins.ledger_provider.process import importing_environment
from tests.stores import KINDS, make_schema

MODULE = (sys.executable, "-m", "noroshi.entrypoints.cli.main")
KEY = re.compile(r"(?<=Key: )nrs_[0-9A-Za-z]{36}")
SCRIPT = '#!/bin/sh\nexec "{python}" {words} "$@"\n'


class Demonstration:
    """One product through any number of lives. `text` is what the latest life printed until it had nothing to add."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.environment = importing_environment(
            **{f"NOROSHI_{name.upper()}": value for name, value in settings.items()}, COLUMNS="200"
        )
        self._install()

    def _install(self) -> None:
        for name, words in (("noroshi", " ".join(MODULE[1:])), ("python", "")):
            script = self.folder / ".venv" / "bin" / name
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(SCRIPT.format(python=sys.executable, words=words))
            script.chmod(0o755)

    def start(self, port: int = 0) -> None:
        words = ["serve", "--dev", "--port", str(port), "--data", "./.noroshi"]
        self.process = subprocess.Popen(
            [*MODULE, *words], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if not line.strip() and any("One of each fate" in earlier for earlier in lines):
                break
        self.text = "\n".join(lines)
        self.url = re.search(r"http://127.0.0.1:\d+", self.text)[0]  # type: ignore[index]
        self.key = KEY.search(self.text)[0]  # type: ignore[index]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        with self.process:
            return self.process.wait(20)

    def kill(self) -> None:
        with self.process:
            self.process.kill()

    @property
    def explanations(self) -> dict[str, str]:
        """The fates that were printed: title and command."""
        return {title: command for command, title in re.findall(r"^(.* explain .*?)  # (.*)$", self.text, re.MULTILINE)}

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A script of the docs, with this server's address and key in place of those in the text."""
        told = script.replace("http://127.0.0.1:8000", self.url).replace("nrs_...", self.key)
        return subprocess.run(
            ["/bin/sh", "-eu", "-c", told],
            cwd=self.folder,
            env={**self.environment, "KEY": self.key, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def done(self, script: str) -> str:
        """What the script said; it must have gone well."""
        ran = self.run(script)
        assert ran.returncode == 0, f"{script}\n{ran.stdout}{ran.stderr}"
        return ran.stdout


def blocks(page: Path, language: str, heading: str | None = None) -> Sequence[str]:
    """The code of a page in one language, as it stands there; under one heading, if that is named."""
    text = page.read_text(encoding="utf-8")
    if heading is not None:
        text = re.split(r"^## ", text.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module", params=KINDS, name="store")
def each_store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The settings that put a demonstration on a store of its own."""
    if request.param == "sqlite":
        yield {}
        return
    with request.getfixturevalue("postgres_databases").fresh(make_schema) as url:
        yield {"store": url}


@pytest.fixture(scope="module", name="shown")
def demonstrated(store: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    """One demonstration for all tests of a module and a store: they leave its people as they are."""
    started = Demonstration(tmp_path_factory.mktemp("demonstration"), **store)
    started.start()
    yield started
    started.kill()
