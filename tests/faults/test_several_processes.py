"""`serve --workers N` and `worker` as real processes on one PostgreSQL: who sends, who dies, and how they end."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path

import pytest

from noroshi.domain.instants import plus
from tests.faults.machinery.caller import Caller
from tests.faults.machinery.kept_store import StoreDatabase
from tests.faults.machinery.processes import NotReadyError, ServedNoroshi, WorkingNoroshi
from tests.faults.sweep.fleet import SENDER
from tests.faults.sweep.trial import now
from tests.services.fixtures import StartPostgres
from tests.stand_ins.ledger_provider.ledger import copies
from tests.stand_ins.ledger_provider.process import LedgerProvider
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = pytest.mark.xdist_group("several_processes")

PEOPLE = 20
PATIENCE = 30
LEASE = timedelta(seconds=3)
RESUMED_WITHIN = LEASE + timedelta(seconds=10)
WORKER = "the worker"
SLOW = Conduct(delay=timedelta(milliseconds=50))


class Site:
    """Processes on one database and one data folder, and the provider they all send to."""

    def __init__(self, folder: Path, url: str, ends: ExitStack) -> None:
        self.provider = ends.enter_context(LedgerProvider(folder / "ledger"))
        self.store = ends.enter_context(closing(StoreDatabase(url)))
        self._data = folder / "data"
        self._ends = ends
        self._environment = {
            **self.provider.environment,
            "NOROSHI_STORE": url,
            "LEDGER_PROVIDER_MAX_BATCH": "1",
            "LEDGER_PROVIDER_TIMEOUT": "2",
            "NOROSHI_LEASE_MARGIN": f"{LEASE.seconds - 2}",
        }

    def serve(self, *words: str) -> ServedNoroshi:
        return self._started(ServedNoroshi(self._data, self._environment, words=words))

    def work(self, *words: str) -> WorkingNoroshi:
        """Its messages are known by their sender."""
        environment = {**self._environment, SENDER: WORKER}
        return self._started(WorkingNoroshi(self._data, environment, words=words))  # type: ignore[return-value]

    def _started(self, process: ServedNoroshi) -> ServedNoroshi:
        self._ends.enter_context(process).start()
        return process

    def await_sent(self, count: int) -> None:
        until(lambda: len(copies(self.provider.taken())) >= count)


@pytest.fixture
def site(tmp_path: Path, postgres_url: str) -> Iterator[Site]:
    with ExitStack() as ends:
        yield Site(tmp_path, postgres_url, ends)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


def a_caller(noroshi: ServedNoroshi) -> Caller:
    caller = Caller(noroshi.url, noroshi.create_key())
    caller.seed(PEOPLE, "email")
    return caller


def accept(caller: Caller, messages: int) -> None:
    """Urgent ones, which no limit holds back."""
    users = [f"user-{number}" for number in range(PEOPLE)]
    for number in range(messages // PEOPLE):
        assert caller.notify(number, *users, channels=["email"], priority="critical").status == 202


def counted(process: ServedNoroshi, name: str) -> float:
    """A counter of one process, summed over its labels."""
    text = Caller(process.url, None).call("GET", "/metrics").body.decode()
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)))


def attempts_of(process: ServedNoroshi) -> float:
    return counted(process, "provider_attempts_total")


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def servers_of(noroshi: ServedNoroshi) -> set[int]:
    """The children that serve: those whose command line is their parent's."""
    own = Path(f"/proc/{noroshi.pid}/cmdline").read_bytes()
    return {pid for pid in children_of(noroshi.pid) if Path(f"/proc/{pid}/cmdline").read_bytes() == own}


def test_what_one_process_accepts_a_worker_sends_too_and_each_message_once(site: Site) -> None:
    serving, working = site.serve(), site.work("--channels", "email", "--priorities", "critical")
    assert "email.ledger.critical" in working.log() and "email.ledger.low" not in working.log()
    site.provider.behave(SLOW)
    accept(a_caller(serving), 200)
    site.await_sent(200)
    until(lambda: attempts_of(working) + attempts_of(serving) >= 200)  # the last ones are just being answered
    assert attempts_of(working) > 0 and attempts_of(serving) > 0
    assert attempts_of(working) + attempts_of(serving) == len(site.provider.taken()) == 200
    assert working.stop() == serving.stop() == 0


def test_a_worker_that_is_told_to_stop_leaves_nothing_lost_or_doubled(site: Site) -> None:  # W26, F22
    serving, working = site.serve(), site.work()
    site.provider.behave(SLOW)
    accept(a_caller(serving), 400)
    for _ in range(3):
        until(lambda: attempts_of(working) > 0)
        assert working.stop() == 0
        working.start()
    site.await_sent(400)
    assert len(site.provider.taken()) == 400


def test_what_a_killed_worker_had_claimed_others_send_when_its_leases_end(site: Site) -> None:  # F1, F10, I8
    serving, working = site.serve(), site.work()
    site.provider.behave(SLOW)
    accept(a_caller(serving), 200)
    until(lambda: attempts_of(working) > 0)
    site.provider.await_flight(WORKER)
    killed_at = now()
    working.kill()
    claimed = site.store.unsettled()
    site.await_sent(200)
    own = {entry.key for entry in site.provider.taken() if entry.sender == WORKER}
    flying = {key for key in own if key.notification_id in claimed}
    until(lambda: any(len(copies(site.provider.taken())[key]) > 1 for key in flying))
    again = [entry.at for entry in site.provider.taken() if entry.key in flying and entry.sender != WORKER]
    assert min(again) <= plus(killed_at, RESUMED_WITHIN)
    doubled = len(site.provider.taken()) - 200
    assert doubled <= 16, "more than one lane's workers had in flight"


def test_a_child_that_dies_is_replaced_and_the_port_answers_meanwhile(site: Site) -> None:
    serving = site.serve("--workers", "2")
    until(lambda: len(servers_of(serving)) == 2)
    caller = a_caller(serving)
    victim, other = servers_of(serving)
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in servers_of(serving))
    for _ in range(20):
        assert caller.call("GET", "/healthz").status == 200
    until(lambda: len(servers_of(serving)) == 2)
    assert other in servers_of(serving)
    accept(caller, 100)
    site.await_sent(100)
    children = servers_of(serving)
    assert serving.stop() == 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_children_whose_parent_was_killed_end_by_themselves(site: Site) -> None:
    serving = site.serve("--workers", "2")
    until(lambda: len(servers_of(serving)) == 2)
    children = servers_of(serving)
    serving.kill()
    until(lambda: not [pid for pid in children if Path(f"/proc/{pid}").exists()])


def test_what_is_wrong_is_said_once_however_many_processes_were_asked_for(tmp_path: Path) -> None:
    nowhere = {"NOROSHI_STORE": "postgresql://nobody:secret-word@127.0.0.1:1/nothing"}
    with ServedNoroshi(tmp_path / "data", nowhere, words=["--workers", "3"]) as serving:
        with pytest.raises(NotReadyError) as refused:
            serving.start()
        assert refused.value.code == 2
        assert serving.log().count("noroshi: the database cannot be reached") == 1
        assert "Traceback" not in serving.log() and "secret-word" not in serving.log()


def test_readiness_names_a_database_that_is_gone_and_work_goes_on_when_it_is_back(
    tmp_path: Path, start_postgres: StartPostgres
) -> None:
    server = start_postgres()
    with ExitStack() as ends:
        site = Site(tmp_path, server.url, ends)
        serving, working = site.serve(), site.work()
        caller = a_caller(serving)
        server.stop()
        for process in (serving, working):
            began = time.monotonic()
            answer = Caller(process.url, None).call("GET", "/readyz")
            assert answer.status == 503 and "the database does not answer" in str(answer.fields["problems"])
            assert time.monotonic() - began < 5
        server.start()
        until(lambda: Caller(working.url, None).call("GET", "/readyz").status == 200)
        accept(caller, 40)
        until(lambda: sum(counted(process, "notification_sent_total") for process in (serving, working)) == 40)
        server.stop()
        assert working.stop() == serving.stop() == 0  # nothing is under way: there is nothing to wait for
