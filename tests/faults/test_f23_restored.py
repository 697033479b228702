"""F23: a backup is taken while messages flow, a thousand more are sent, and the backup is restored: nothing is sent
again by itself, and an operator decides what becomes of it (W31)."""

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.faults.machinery.caller import Caller
from tests.faults.machinery.processes import ServedNoroshi
from tests.stand_ins.ledger_provider.process import LedgerProvider

pytestmark = pytest.mark.xdist_group("f23_restored")

PEOPLE = 100
ROUNDS = 10
UNFINISHED = PEOPLE * ROUNDS
EVERYBODY = [f"user-{number}" for number in range(PEOPLE)]
STANDS_STILL = 2.0
"""Seconds in which a server that were to send by itself would have looked for work many times."""

Site = Callable[[str], ServedNoroshi]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LedgerProvider]:
    with LedgerProvider(tmp_path / "provider") as provider:
        yield provider


@pytest.fixture
def site(store: str, provider: LedgerProvider, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """`site("old")`: a product on a store of its own."""
    with ExitStack() as ends:

        def build(name: str) -> ServedNoroshi:
            environment = dict(provider.environment)
            if store == "postgres":
                databases = request.getfixturevalue("postgres_databases")
                environment["NOROSHI_STORE"] = ends.enter_context(databases.fresh())
            return ends.enter_context(ServedNoroshi(tmp_path / name, environment))

        yield build


class Story:
    """What has happened when the backup is restored: everything in it was sent since, except what is due tomorrow."""

    def __init__(self, site: Site, provider: LedgerProvider, tmp_path: Path) -> None:
        self.provider = provider
        self.archive = tmp_path / "backup.zip"
        self.old, self.new = site("old"), site("new")
        self.key = self.old.create_key()
        self.old.start()
        caller = Caller(self.old.url, self.key)
        caller.seed(PEOPLE, "email")
        template = {"channel": "sms", "locale": "ja", "body": "hello {{ number }}"}
        assert caller.call("POST", "/api/v1/templates/greeting", template).status == 201
        reachable = {"email": "user-1@example.com", "phone": "+819012345678"}
        assert caller.call("PUT", "/api/v1/users/user-1", reachable).status == 200
        pause = caller.call("POST", "/api/v1/pauses", {"kind": "channel", "name": "email"}).fields
        self.batches = [
            caller.notify(number, *EVERYBODY, channels=["email"], priority="critical").fields["batch_id"]
            for number in range(ROUNDS)
        ]
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        assert caller.notify(99, "user-0", channels=["email"], scheduled_at=tomorrow).status == 202
        self.back_up_while_messages_flow(caller)
        assert caller.call("DELETE", f"/api/v1/pauses/{pause['pause_id']}").status == 204
        self.until_mailed(UNFINISHED)
        self.old.kill()

    def back_up_while_messages_flow(self, caller: Caller) -> None:
        is_done = threading.Event()
        statuses: list[int] = []

        def post() -> None:
            number = 1000
            while not is_done.is_set():
                number += 1
                answer = caller.notify(number, "user-1", channels=["sms"], priority="critical")
                statuses.append(answer.status)

        posting = threading.Thread(target=post)
        posting.start()
        try:
            done = self.old.command("backup", "--to", str(self.archive), "--json")
        finally:
            is_done.set()
            posting.join()
        assert done.returncode == 0, done.stderr
        assert set(statuses) == {202}
        self.backed_up: dict[str, Any] = json.loads(done.stdout)

    def restore(self) -> dict[str, Any]:
        self.new.data.mkdir()
        shutil.copy(self.old.data / "secrets", self.new.data / "secrets")
        done = self.new.command("restore", "--from", str(self.archive), "--json")
        assert done.returncode == 0, done.stderr
        restored: dict[str, Any] = json.loads(done.stdout)
        return restored

    def serve_without_the_old_pause(self) -> Caller:
        """The restored store has the pause that an operator had set before the backup; it is not what holds it."""
        self.new.start()
        caller = Caller(self.new.url, self.key)
        pauses = caller.call("GET", "/api/v1/pauses").fields["items"]
        assert sorted((one["kind"], one["created_by"] == "restore") for one in pauses) == [
            ("channel", False),
            ("everything", True),
        ]
        for pause in pauses:
            if pause["kind"] == "channel":
                assert caller.call("DELETE", f"/api/v1/pauses/{pause['pause_id']}").status == 204
        return caller

    def mailed(self) -> Counter[str]:
        """How often each notification was taken by the provider."""
        taken = (message for message in self.provider.taken() if message.channel == "email")
        return Counter(str(message.key) for message in taken)

    def until_mailed(self, count: int, within: float = 60) -> None:
        deadline = time.monotonic() + within
        while (there := self.mailed().total()) < count:
            assert time.monotonic() < deadline, f"{there} of {count} were sent"
            time.sleep(0.05)


@pytest.fixture
def story(site: Site, provider: LedgerProvider, tmp_path: Path) -> Story:
    return Story(site, provider, tmp_path)


def test_a_restored_store_sends_nothing_by_itself_and_each_once_when_it_may(story: Story) -> None:  # F23, W31
    restored = story.restore()
    assert restored["tables"] == story.backed_up["tables"]
    caller = story.serve_without_the_old_pause()
    time.sleep(STANDS_STILL)
    assert set(story.mailed().values()) == {1}
    shown = caller.call("GET", "/api/v1/users/user-7").fields
    assert shown["email"] == "user-7@example.com"
    assert set(caller.statuses(story.batches[0]).values()) == {"QUEUED"}
    review = json.loads(story.new.command("restore", "--review", "--json").stdout)
    assert review["due_by_backup"]["deliveries"] + review["claimed"] >= UNFINISHED  # and what just then flowed
    assert review["due_later"] == {"deliveries": 0, "holds": 0, "batches": 1}
    assert review["is_paused"]
    assert story.new.command("restore", "--resume").returncode == 0
    story.until_mailed(2 * UNFINISHED)
    time.sleep(0.5)
    assert set(story.mailed().values()) == {2}
    assert story.new.command("restore", "--resume").returncode == 2
    assert story.new.stop() == 0


def test_what_was_due_by_the_backup_can_be_withdrawn_instead(story: Story) -> None:  # F23, W31
    story.restore()
    caller = story.serve_without_the_old_pause()
    assert caller.notify(5000, "user-2", channels=["email"], priority="critical").status == 202
    done = story.new.command("restore", "--resume", "--discard-due", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["withdrawn"] >= UNFINISHED
    story.until_mailed(UNFINISHED + 1)
    time.sleep(STANDS_STILL)
    assert Counter(story.mailed().values()) == {1: UNFINISHED + 1}
    assert set(caller.statuses(story.batches[3]).values()) == {"CANCELLED"}
    trail = caller.call("GET", "/api/v1/users/user-9/notifications").fields["items"][0]["trail"]
    assert trail[-1]["detail"] == {"code": "restored"}
    review = story.new.command("restore", "--review")
    assert (review.returncode, "not in restored mode" in review.stderr) == (2, True)


@pytest.mark.slow
def test_withdrawn_before_the_server_starts_nothing_of_it_is_ever_sent(story: Story) -> None:  # W31
    story.restore()
    done = story.new.command("restore", "--resume", "--discard-due")
    assert done.returncode == 0, done.stderr
    story.new.start()
    time.sleep(STANDS_STILL)
    assert Counter(story.mailed().values()) == {1: UNFINISHED}
