"""F1: kill -9 of any process of several on one PostgreSQL, at any moment, each restarted at once."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import Struct

from noroshi.domain.pacing import spacing_of
from tests.faults.machinery.kept_store import StoreDatabases
from tests.faults.machinery.reckoning import Reckoning, render, render_crashes, render_problems
from tests.faults.machinery.report import publish
from tests.faults.sweep.fleet import LEASE_SECONDS, Fleet, Member, killed_again_and_again
from tests.faults.sweep.kills import Callers, Plan, bodies, portions
from tests.faults.sweep.launcher import VARIABLE
from tests.faults.sweep.seeded import seed
from tests.services.databases import Databases
from tests.stand_ins.ledger_provider.ledger import largest_second
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = pytest.mark.xdist_group("f1_fleet_kills")

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
DELAY = timedelta(milliseconds=150)
PLAN = Plan(
    kills=300 if IS_FULL else 30, messages=15_000 if IS_FULL else 1_500, lifetime=(0.05, 2.0), max_batch=3, delay=DELAY
)
PER_SECOND = 100
"""The account's pace, over all processes together."""

LATE = 2 * spacing_of(PER_SECOND).burst
"""No more than this is granted ahead: so many may a busy machine send late, together with those whose time it is."""

PORTIONS_A_KILL = 4
RESERVE = 4
"""The load must outlast the kills however long these take: so many times the plan's messages may come, at most."""

RESUMED_WITHIN = timedelta(seconds=LEASE_SECONDS + 10)

FORGETFUL = Plan(kills=6, messages=240, lifetime=(0.1, 0.4), max_batch=3, delay=DELAY)
ALONE = Plan(kills=3, messages=900, lifetime=(0.3, 0.8), max_batch=3, delay=timedelta(seconds=1))


class Run(Struct, frozen=True):
    """`messages`: so many were asked for; `unexplained`: copies of what no killed process had in flight;
    `contradictory`: keys that were answered twice. `resumptions`: how long after the last kill the first of what a
    killed process had in flight was sent again, for each of them; `largest_second`: the most that the provider saw
    within one."""

    plan: Plan
    messages: int
    reckoning: Reckoning
    blamed: Counter[int]
    contradictory: list[str]
    resumptions: list[timedelta]
    largest_second: int

    @property
    def unexplained(self) -> int:
        return self.blamed[-1]


def run(
    plan: Plan,
    folder: Path,
    databases: Databases,
    plants: Sequence[str] | None = None,
    *,
    are_others_spared: bool = False,
) -> Run:
    """The last worker alone is killed where the others are spared: whatever they have in flight stays theirs."""
    seeded = seed(folder / "seeded", plan.people * RESERVE, StoreDatabases(databases))
    environment = {**plan.environment, "LEDGER_PROVIDER_PER_SECOND": str(PER_SECOND)}
    with Fleet(folder, seeded, plants=plants, environment=environment, most_in_flight=plan.most_in_flight) as fleet:
        asyncio.run(_kill_under_load(fleet, plan, fleet.members[-1:] if are_others_spared else fleet.members))
        assert set(fleet.stop_all()) == {0}
        contradictory = [key for key, posted in fleet.posted.items() if posted.is_contradictory]
        resumptions = fleet.resumptions()
        reckoning = fleet.reckon(is_control=plants is not None)
        largest = largest_second(fleet.provider.taken())
        messages = sum(len(posted.body["user_ids"]) for posted in fleet.posted.values())
        return Run(plan, messages, reckoning, fleet.blamed(), contradictory, resumptions, largest)


async def _kill_under_load(fleet: Fleet, plan: Plan, victims: Sequence[Member]) -> None:
    """Every victim dies as often; the load goes on meanwhile, and is answered and drained at the end."""
    chance = random.Random(plan.seed)
    fleet.provider.behave(Conduct(delay=plan.delay))
    callers = Callers(fleet, 600)
    lives = plan.kills // len(victims)
    for member in fleet.members:
        if member not in victims:
            await asyncio.to_thread(member.start)
    killing = [
        asyncio.create_task(
            killed_again_and_again(
                fleet, member, [chance.uniform(*plan.lifetime) for _ in range(lives)], {VARIABLE: ""}
            )
        )
        for member in victims
    ]
    planned = plan.kills * PORTIONS_A_KILL
    requests = bodies(fleet.seeded.people, plan.messages * RESERVE)
    for number, portion in enumerate(portions(requests, planned * RESERVE)):
        if number >= planned and all(task.done() for task in killing):
            break
        callers.begin(portion)
        await asyncio.wait(killing, timeout=plan.lifetime[1] / 8)
    await asyncio.gather(*killing)
    fleet.provider.behave(Conduct())
    await callers.end()
    await asyncio.to_thread(fleet.drain, 120)


def test_kills_of_any_process_lose_nothing_and_double_no_more_than_it_had_in_flight(
    tmp_path: Path, postgres_databases: Databases
) -> None:  # F1, I1-I5, I8, I9
    found = run(PLAN, tmp_path / "product", postgres_databases)
    controls = {
        "202 half a second before the commit": run(
            FORGETFUL, tmp_path / "forgetful", postgres_databases, ["answers_first"]
        ),
        "whoever starts takes every lease for void, and every process has a pace of its own": run(
            ALONE,
            tmp_path / "alone",
            postgres_databases,
            ["thinks_it_is_alone", "paces_alone"],
            are_others_spared=True,
        ),
    }
    _publish(found, controls)
    assert found.reckoning.is_sound, render_problems(found.reckoning)
    assert found.unexplained == 0, "something was sent again that no killed process had in flight"
    assert found.contradictory == []
    assert sum(found.reckoning.words.values()) == found.messages >= PLAN.messages
    assert sum(crash.in_flight > 0 for crash in found.reckoning.crashes) >= PLAN.kills / 2
    assert len(found.resumptions) >= PLAN.kills / 3
    assert max(found.resumptions) <= RESUMED_WITHIN
    assert found.largest_second <= PER_SECOND + LATE
    forgetful, alone = controls.values()
    assert forgetful.reckoning.is_as_expected
    assert alone.unexplained > 0
    assert alone.largest_second > PER_SECOND + LATE


def _publish(found: Run, controls: dict[str, Run]) -> None:
    crashes = found.reckoning.crashes
    *_, alone = controls.values()
    latest = max(found.resumptions, default=timedelta(0)).total_seconds()
    summary = (
        f"{len(crashes)} kills of one `serve` and two `worker` under {found.messages:,} messages: "
        f"{sum(crash.in_flight > 0 for crash in crashes)} with sends in flight. Copies of what no killed process "
        f"had in flight: {found.unexplained}; in the controls "
        f"{', '.join(str(control.unexplained) for control in controls.values())}.\n\n"
        f"What {len(found.resumptions)} of the killed had in flight was sent again by others, the first of it "
        f"{latest:.1f} s after the last kill before that at the latest; leases last {LEASE_SECONDS:.0f} s. "
        f"At a pace of {PER_SECOND} a second the provider saw at most {found.largest_second} in one, "
        f"{alone.largest_second} where each process has a pace of its own."
    )
    runs = {"noroshi": found.reckoning} | {f"control: {name}": one.reckoning for name, one in controls.items()}
    publish("F1", "\n\n".join([summary, render(runs), render_crashes(found.reckoning)]))
