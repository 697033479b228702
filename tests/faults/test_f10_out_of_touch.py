"""F10: a worker with claims in hand is frozen beyond its leases, or cut off from its database; another takes over, and
when the first one comes back it must know that nothing of it is its own any more."""

import os
import re
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import Struct, structs

from noroshi.domain.instants import Instant, plus
from tests.faults.machinery.caller import Caller
from tests.faults.machinery.cut import CuttableLine
from tests.faults.machinery.kept_store import Row, StoreDatabases
from tests.faults.machinery.reckoning import Reckoning, render, render_problems
from tests.faults.machinery.report import publish
from tests.faults.sweep.fleet import LEASE_SECONDS, Fleet, Member
from tests.faults.sweep.launcher import VARIABLE
from tests.faults.sweep.seeded import seed
from tests.faults.sweep.trial import now
from tests.services.databases import Databases
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = pytest.mark.xdist_group("f10_out_of_touch")

PEOPLE, MESSAGES, AT_ONCE = 60, 120, 10
WARM = 40
"""So many are sent first: by then its connections know their statements. One that goes silent while the driver prepares
a statement within a transaction keeps its locks until the line is found dead (docs/faults.md)."""

PATIENCE = 60
DELAY = timedelta(milliseconds=150)
PACED = {"LEDGER_PROVIDER_MAX_BATCH": "4", "LEDGER_PROVIDER_PER_SECOND": "40"}
"""Whoever has claimed waits for its time to send: the claims in hand that this is about."""

_HISTORY = "SELECT notification_id, status, at FROM notifications ORDER BY notification_id"
_SLACK = timedelta(milliseconds=500)

Fault = Callable[[Member, CuttableLine], None]


class Way(Struct, frozen=True):
    """How a worker goes out of touch and comes back; one that `lives_on` sends until its leases end. `environment`
    and `plants` are the worker's; `sign` is what it counts when it has found out."""

    name: str
    leave: Fault
    come_back: Fault
    lives_on: bool = True
    plants: str = ""
    environment: dict[str, str] = {}
    sign: str = "notification_late_results_total"


FREEZE = Way(
    "frozen beyond its leases, then thawed",
    lambda member, _: os.kill(member.process.pid, signal.SIGSTOP),
    lambda member, _: os.kill(member.process.pid, signal.SIGCONT),
    lives_on=False,
)
IGNORANT = structs.replace(FREEZE, name="control: frozen, and it does not look at its leases", plants="ignores_leases")
FREEZE_IN_CLAIM = Way(
    "frozen in the middle of a claim, then thawed",
    lambda member, _: _until(lambda: _is_frozen(member)),
    FREEZE.come_back,
    lives_on=False,
    plants="freezes_at_crash_points",
    environment={"NOROSHI_CRASH_AT": "commit.claim.before:12", "NOROSHI_UNSAFE": "on"},
    sign="dispatch_errors_total",
)
SILENCE = Way("cut off in silence, then healed", lambda _, line: line.silence(), lambda _, line: line.heal())
RESET = Way("cut off by resets, then healed", lambda _, line: line.reset(), lambda _, line: line.heal())

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
WAYS = (FREEZE, FREEZE_IN_CLAIM, SILENCE, RESET) if IS_FULL else (FREEZE, SILENCE)

_CONTROLS = 3


class NeverError(AssertionError):
    """What was waited for did not happen."""


class Run(Struct, frozen=True):
    """`unsent`: claims in hand at the fault that had not been sent. `too_late`: what the worker sent after its leases
    had ended. `has_changed`: its late results became state."""

    reckoning: Reckoning
    unexplained: int
    unsent: int
    too_late: int
    has_changed: bool


def run(way: Way, folder: Path, databases: Databases, *, is_control: bool = False) -> Run:
    seeded = seed(folder / "seeded", PEOPLE, StoreDatabases(databases))
    with (
        Fleet(folder, seeded, workers=0, environment=PACED, plants=[]) as fleet,
        CuttableLine(_port(fleet)) as line,
    ):
        fleet.provider.behave(Conduct(delay=DELAY))
        environment = {"NOROSHI_STORE": line.url(fleet.store.place), VARIABLE: way.plants, **way.environment}
        lost, other = fleet.add_worker("lost", **environment), fleet.add_worker("other")
        _leave_all_to(lost, fleet)
        way.leave(lost, line)
        left_at = now()
        spans = timedelta(seconds=LEASE_SECONDS) if way.lives_on else DELAY
        met = fleet.meet(way.name, left_at, lost.sender, plus(left_at, spans + _SLACK))
        unsent = len(met.unsettled - fleet.flying(met))
        other.start()
        _until(fleet.store.is_drained)
        before = fleet.store.rows(_HISTORY)
        way.come_back(lost, line)
        _until(lambda: _counts(lost, way.sign))
        assert lost.process.stop() == other.process.stop() == 0
        return _reckoned(fleet, lost, plus(left_at, spans + _SLACK), unsent, before, is_control=is_control)


def _leave_all_to(worker: Member, fleet: Fleet) -> None:
    """Accepted by a server that is gone; the worker alone sends, and has more in hand than it may send yet."""
    fleet.serving.start()
    people = fleet.seeded.people
    for number in range(MESSAGES // AT_ONCE):
        first = number * AT_ONCE % PEOPLE
        fleet.post(f"request-{number}", people[first : first + AT_ONCE], "email")
    assert fleet.serving.process.stop() == 0
    worker.start()

    def has_claims_in_hand() -> bool:
        taken = {entry.key.notification_id for entry in fleet.taken() if entry.sender == worker.sender}
        return len(taken) >= WARM and len(fleet.store.unsettled() - taken) > AT_ONCE // 2

    _until(lambda: has_claims_in_hand() or _is_frozen(worker))


def _reckoned(
    fleet: Fleet, lost: Member, leases_end: Instant, unsent: int, before: list[Row], *, is_control: bool
) -> Run:
    too_late = sum(entry.sender == lost.sender and entry.at > leases_end for entry in fleet.taken())
    has_changed = fleet.store.rows(_HISTORY) != before
    reckoning = fleet.reckon(is_control=is_control)
    return Run(reckoning, fleet.blamed()[-1], unsent, too_late, has_changed)


def _port(fleet: Fleet) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+)/", fleet.store.place)
    assert found is not None
    return int(found[1])


def _is_frozen(member: Member) -> bool:
    return "State:\tT" in Path(f"/proc/{member.process.pid}/status").read_text()


def _counts(member: Member, name: str) -> bool:
    try:
        text = Caller(member.process.url, None).call("GET", "/metrics").body.decode()
    except OSError:
        return False
    return re.search(rf"^{name}(?:{{.*}})? [1-9]", text, re.MULTILINE) is not None


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise NeverError("it never came about")
        time.sleep(0.02)


def test_a_worker_that_was_out_of_touch_sends_nothing_that_is_no_longer_its_own(
    tmp_path: Path, postgres_databases: Databases
) -> None:  # F10, F16, W9, I3
    runs = {way.name: run(way, tmp_path / str(number), postgres_databases) for number, way in enumerate(WAYS)}
    control: Run | None = None
    for attempt in range(_CONTROLS):  # whether it holds claims when its time is up is chance
        try:
            control = run(IGNORANT, tmp_path / f"control-{attempt}", postgres_databases, is_control=True)
        except NeverError:  # it had nothing left to be late with
            continue
        if control.too_late > 0 and control.unexplained > 0:
            break
    assert control is not None, "the control was never late with anything: it proves nothing"
    _publish(runs, control)
    for name, found in runs.items():
        assert found.reckoning.is_sound, f"{name}: {render_problems(found.reckoning)}"
        assert found.unsent > 0 or name == FREEZE_IN_CLAIM.name
        assert found.unexplained == 0 and found.too_late == 0 and not found.has_changed, name
        assert sum(found.reckoning.words.values()) == MESSAGES
    assert control.too_late > 0 and control.unexplained > 0


def _publish(runs: dict[str, Run], control: Run) -> None:
    shown = {**runs, IGNORANT.name: control}
    lines = [
        "| run | unsent claims in hand | sent by it after its leases | unexplained copies |",
        "|---|---:|---:|---:|",
    ]
    lines += [f"| {name} | {one.unsent} | {one.too_late} | {one.unexplained} |" for name, one in shown.items()]
    publish("F10", "\n\n".join([render({name: one.reckoning for name, one in shown.items()}), "\n".join(lines)]))
