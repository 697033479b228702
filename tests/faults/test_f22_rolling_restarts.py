"""F22: rolling restarts of all processes under load: each is told to stop, waited for and started again."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from tests.faults.machinery.kept_store import StoreDatabases
from tests.faults.machinery.reckoning import Reckoning, render, render_problems
from tests.faults.machinery.report import publish
from tests.faults.sweep.fleet import Fleet, Member
from tests.faults.sweep.kills import Callers, Plan, bodies, portions
from tests.faults.sweep.seeded import seed
from tests.services.databases import Databases
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = pytest.mark.xdist_group("f22_rolling_restarts")

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
DELAY = timedelta(milliseconds=150)
ROLLING = Plan(kills=100 if IS_FULL else 20, messages=10_000 if IS_FULL else 2_000, max_batch=3, delay=DELAY)
ABRUPT = Plan(kills=4, messages=600, max_batch=3, delay=timedelta(seconds=1))

_BUSY_SECONDS = 0.3


def run(plan: Plan, folder: Path, databases: Databases, *, is_abrupt: bool = False) -> Reckoning:
    """The control is a fleet whose processes are ended as if they knew no shutdown, and none of that is forgiven."""
    seeded = seed(folder / "seeded", plan.people, StoreDatabases(databases))
    with Fleet(folder, seeded, environment=plan.environment, words=["--workers", "2"]) as fleet:
        asyncio.run(_roll(fleet, plan, is_abrupt=is_abrupt))
        assert set(fleet.stop_all()) == {0}
        return fleet.reckon(is_control=is_abrupt)


async def _roll(fleet: Fleet, plan: Plan, *, is_abrupt: bool) -> None:
    fleet.provider.behave(Conduct(delay=plan.delay))
    await fleet.start_all()
    callers = Callers(fleet, 600)
    for number, portion in enumerate(portions(bodies(fleet.seeded.people, plan.messages), plan.kills)):
        callers.begin(portion)
        await asyncio.sleep(_BUSY_SECONDS)
        member = fleet.members[number % len(fleet.members)]
        if is_abrupt:
            await asyncio.to_thread(_kill_amid, fleet, member)
        else:
            await asyncio.to_thread(_restart, member)
    fleet.provider.behave(Conduct())
    await callers.end()
    await asyncio.to_thread(fleet.drain, 120)


def _restart(member: Member) -> None:
    assert member.process.stop() == 0
    member.start()


def _kill_amid(fleet: Fleet, member: Member) -> None:
    """Ends it while the provider holds something of its that is not answered yet."""
    fleet.provider.await_flight(member.sender)
    member.process.kill()
    member.start()


def test_twenty_rolling_restarts_lose_nothing_and_double_nothing(
    tmp_path: Path, postgres_databases: Databases
) -> None:  # F22, W26
    found = run(ROLLING, tmp_path / "product", postgres_databases)
    control = run(ABRUPT, tmp_path / "abrupt", postgres_databases, is_abrupt=True)
    summary = f"{ROLLING.kills} restarts of `serve --workers 2` and two `worker`, in turn."
    runs = {"noroshi": found, "control: kill -9 instead of SIGTERM": control}
    publish("F22", "\n\n".join([summary, render(runs)]))
    assert found.is_sound, render_problems(found)
    assert found.doubled == 0
    assert sum(found.words.values()) == ROLLING.messages
    assert control.is_as_expected
