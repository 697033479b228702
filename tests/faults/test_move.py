"""A move from SQLite to PostgreSQL: killed wherever it is, it goes on and doubles nothing; then the other store sends
what was unfinished, once."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noroshi.care import move as moving
from noroshi.care.errors import CareError
from noroshi.care.opening import opened_tables
from noroshi.domain.marks import Mark
from noroshi.settings import Settings, read_settings
from noroshi.storage.sqlite.tables import SqliteTables
from tests.conformance.whole import contents
from tests.faults.machinery.caller import Caller
from tests.faults.machinery.processes import NotReadyError, ServedNoroshi
from tests.stand_ins.ledger_provider.process import ROOT, LedgerProvider, importing_environment

pytestmark = pytest.mark.xdist_group("move")

PEOPLE = 100
ROUNDS = 3
UNFINISHED = PEOPLE * ROUNDS
STEPS = (1, 2, 7, 20, 31)


def ask_once(caller: Caller) -> str:
    """The batch of one idempotency key."""
    asked = caller.notify(2, "user-1", "user-1", "stranger", channels=["email"], idempotency_key="once")
    return str(asked.fields["batch_id"])


class Seeded:
    """A stopped product on a file with people, templates, history and unfinished deliveries."""

    def __init__(self, data: Path, provider: LedgerProvider) -> None:
        self.provider = provider
        self.served = ServedNoroshi(data, provider.environment)
        with self.served:
            self.key = self.served.create_key()
            self.served.start()
            caller = Caller(self.served.url, self.key)
            caller.seed(PEOPLE, "email")
            everybody = [f"user-{number}" for number in range(PEOPLE)]
            caller.notify(1, *everybody, channels=["email"])
            self.until_mailed(PEOPLE)
            self.once = ask_once(caller)
            caller.call("POST", "/api/v1/pauses", {"kind": "channel", "name": "email"})
            for number in range(ROUNDS):
                caller.notify(10 + number, *everybody, channels=["email"], priority="critical")
            caller.notify(99, "user-0", channels=["email"], scheduled_at="2031-01-01T00:00:00Z")
            assert self.served.stop() == 0
        self.mailed_before = self.mailed().total()

    def settings(self, store: str | None = None) -> Settings:
        store = store or f"sqlite:///{self.served.data / 'noroshi.db'}"
        return read_settings({}, {"data": str(self.served.data), "store": store})

    def mailed(self) -> Counter[str]:
        return Counter(str(message.key) for message in self.provider.taken())

    def until_mailed(self, count: int, within: float = 60) -> None:
        deadline = time.monotonic() + within
        while (there := self.mailed().total()) < count:
            assert time.monotonic() < deadline, f"{there} of {count} were sent"
            time.sleep(0.05)


@pytest.fixture
def seeded(tmp_path: Path) -> Iterator[Seeded]:
    with LedgerProvider(tmp_path / "provider") as provider:
        yield Seeded(tmp_path / "data", provider)


def killed_at(seeded: Seeded, target: str, step: int) -> int:
    words = [str(seeded.served.data), seeded.settings().store, target, str(step)]
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.machinery.killed_move", *words],
        env=importing_environment(),
        cwd=ROOT,
        check=False,
        capture_output=True,
    ).returncode


def move_by_hand(seeded: Seeded, target: str) -> "subprocess.CompletedProcess[str]":
    return seeded.served.command("move", "--from", seeded.settings().store, "--to", target, "--json")


async def marks(settings: Settings) -> set[str]:
    async with opened_tables(settings, is_reader=True) as tables:
        return {name for name, _, _ in await tables.ask("read_marks")}


def test_a_move_killed_again_and_again_arrives_whole_and_sends_the_rest_once(seeded: Seeded, postgres_url: str) -> None:
    before = asyncio.run(contents(seeded.settings()))
    for step in STEPS:
        assert killed_at(seeded, postgres_url, step) == -signal.SIGKILL
    with pytest.raises(NotReadyError, match="half moved"), seeded.served:
        seeded.served.start(NOROSHI_STORE=postgres_url)
    done = move_by_hand(seeded, postgres_url)
    assert done.returncode == 0, done.stderr
    assert all(one["from"] == one["to"] for one in json.loads(done.stdout).values())
    after = asyncio.run(contents(seeded.settings(postgres_url)))
    assert after == before
    assert len(before["notifications"]) >= UNFINISHED + PEOPLE
    with pytest.raises(NotReadyError, match="was moved to another"), seeded.served:
        seeded.served.start()
    serve_the_rest(seeded, postgres_url)


def serve_the_rest(seeded: Seeded, target: str) -> None:
    with seeded.served:
        seeded.served.start(NOROSHI_STORE=target)
        caller = Caller(seeded.served.url, seeded.key)
        assert seeded.mailed().total() == seeded.mailed_before
        (pause,) = caller.call("GET", "/api/v1/pauses").fields["items"]
        assert caller.call("DELETE", f"/api/v1/pauses/{pause['pause_id']}").status == 204
        seeded.until_mailed(seeded.mailed_before + UNFINISHED)
        assert set(seeded.mailed().values()) == {1}
        assert ask_once(caller) == seeded.once
        assert seeded.served.stop() == 0
    assert set(seeded.mailed().values()) == {1}


async def test_interrupted_between_its_last_two_commits_nothing_is_moved_twice(
    seeded: Seeded, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = seeded.settings(), seeded.settings(postgres_url)
    commit = SqliteTables.commit

    async def fail_at_the_end(self: SqliteTables, *statements: tuple[Any, ...]) -> None:
        if statements[0][:2] == ("put_mark", Mark.MOVED):
            raise KeyboardInterrupt
        await commit(self, *statements)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SqliteTables, "commit", fail_at_the_end)
        await moving.move(old, new)
    assert (await marks(old), await marks(new)) == ({Mark.MOVING}, {Mark.ARRIVED})
    async with opened_tables(new, is_reader=False) as tables:  # it was served meanwhile, and sent
        (deliveries,) = [table for table in await tables.list_tables() if table.name == "deliveries"]
        await tables.clear(deliveries)
    assert await moving.move(old, new) == []
    assert await marks(old) == {Mark.MOVED}
    async with opened_tables(new, is_reader=True) as tables:
        assert await tables.count(deliveries) == 0


async def test_a_move_that_is_given_up_leaves_the_file_as_it_was(seeded: Seeded, postgres_url: str) -> None:
    assert killed_at(seeded, postgres_url, 9) == -signal.SIGKILL
    await moving.give_up(seeded.settings())
    with seeded.served:
        seeded.served.start()
        assert seeded.served.stop() == 0
    with pytest.raises(CareError, match="half moved"):  # the file has changed since: it is another move
        await moving.move(seeded.settings(), seeded.settings(postgres_url))


async def test_a_move_refuses_what_it_cannot_do(seeded: Seeded, postgres_url: str, tmp_path: Path) -> None:
    file, database = seeded.settings(), seeded.settings(postgres_url)
    with pytest.raises(CareError, match="from sqlite"):
        await moving.move(database, file)
    missing = read_settings({}, {"data": str(seeded.served.data), "store": f"sqlite:///{tmp_path / 'no.db'}"})
    with pytest.raises(CareError, match="there is no store"):
        await moving.move(missing, database)
    with seeded.served:
        seeded.served.start()
        refused = move_by_hand(seeded, postgres_url)
        assert (refused.returncode, "is served by process" in refused.stderr) == (2, True)
        assert seeded.served.stop() == 0
    assert seeded.served.command("migrate", NOROSHI_STORE=postgres_url).returncode == 0
    async with opened_tables(database, is_reader=False), opened_tables(database, is_reader=True):
        with pytest.raises(CareError, match="2 other connections"):
            await moving.move(file, database)
    words = ("keys", "create", "--name", "x", "--scopes", "read")
    assert seeded.served.command(*words, NOROSHI_STORE=postgres_url).returncode == 0
    refused = move_by_hand(seeded, postgres_url)
    assert (refused.returncode, "api_keys has rows" in refused.stderr) == (2, True)
    (seeded.served.data / "secrets").rename(tmp_path / "secrets")
    with pytest.raises(CareError, match="secrets is missing"):
        await moving.move(file, database)
