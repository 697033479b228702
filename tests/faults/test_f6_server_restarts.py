"""F6: the database server dies without a word under load, again and again, and comes back; the processes stay."""

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import Struct

from noroshi.domain.instants import Instant, plus
from tests.faults.machinery.kept_store import OwnDatabase
from tests.faults.machinery.load import Heard
from tests.faults.machinery.reckoning import Reckoning, render, render_crashes, render_problems
from tests.faults.machinery.report import publish
from tests.faults.sweep.fleet import Fleet
from tests.faults.sweep.kills import Callers, Plan, bodies, portions
from tests.faults.sweep.seeded import seed
from tests.faults.sweep.trial import now
from tests.services.fixtures import StartPostgres
from tests.services.postgres import PostgresServer
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = pytest.mark.xdist_group("f6_server_restarts")

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
RESTARTS = Plan(kills=100 if IS_FULL else 20, messages=10_000 if IS_FULL else 2_000, lifetime=(0.1, 0.6), max_batch=3)
FORGETFUL = Plan(kills=3, messages=300, lifetime=(0.1, 0.3), max_batch=3)

RECOVERED_WITHIN = timedelta(seconds=5)
ENDS = (signal.SIGQUIT, signal.SIGKILL)
"""As `pg_ctl stop -m immediate`, and the first process alone."""


class Outage(Struct, frozen=True):
    began_at: Instant
    ended_at: Instant


class Run(Struct, frozen=True):
    """`unanswerable`: what was heard instead of an answer although no outage explains it."""

    outages: list[Outage]
    reckoning: Reckoning
    unexplained: int
    refusals: list[Heard]
    unanswerable: list[Heard]


def run(plan: Plan, folder: Path, server: PostgresServer, plants: Sequence[str] | None = None) -> Run:
    seeded = seed(folder / "seeded", plan.people, OwnDatabase(server.url))
    with Fleet(folder, seeded, plants=plants, environment=plan.environment) as fleet:
        outages = asyncio.run(_restart_under_load(fleet, server, plan))
        assert set(fleet.stop_all()) == {0}, "each has lived through all of it"
        refusals = [heard for one in fleet.posted.values() for heard in one.heard if heard.batch_id is None]
        reckoning = fleet.reckon(is_control=plants is not None)
        return Run(
            outages, reckoning, fleet.blamed()[-1], refusals, [h for h in refusals if not _explained(h, outages)]
        )


async def _restart_under_load(fleet: Fleet, server: PostgresServer, plan: Plan) -> list[Outage]:
    chance = random.Random(plan.seed)
    fleet.provider.behave(Conduct(delay=plan.delay))
    await fleet.start_all()
    callers = Callers(fleet, 600)
    outages: list[Outage] = []
    for portion in portions(bodies(fleet.seeded.people, plan.messages), plan.kills):
        callers.begin(portion)
        await asyncio.sleep(chance.uniform(*plan.lifetime))
        at, by = now(), chance.choice(ENDS)
        await asyncio.to_thread(server.kill, by)
        await asyncio.to_thread(server.start)
        outages.append(Outage(at, now()))
        until = plus(now(), plan.delay)
        await asyncio.to_thread(fleet.meet, f"{by.name} to the server", at, None, until)
    await callers.end()
    fleet.provider.behave(Conduct())
    await asyncio.to_thread(fleet.drain, 120)
    return outages


def _explained(heard: Heard, outages: list[Outage]) -> bool:
    return heard.status == 503 and any(o.began_at <= heard.at <= plus(o.ended_at, RECOVERED_WITHIN) for o in outages)


def test_a_server_that_dies_twenty_times_loses_nothing_that_was_accepted(
    tmp_path: Path, start_postgres: StartPostgres
) -> None:  # F6, I1-I5, I13
    found = run(RESTARTS, tmp_path / "product", start_postgres())
    control = run(FORGETFUL, tmp_path / "forgetful", start_postgres(), ["answers_first"])
    _publish(found, control)
    assert found.reckoning.is_sound, render_problems(found.reckoning)
    assert found.unexplained == 0, "something was sent again that was not in flight when the server died"
    assert found.unanswerable == []
    assert sum(found.reckoning.words.values()) == RESTARTS.messages
    assert control.reckoning.is_as_expected


def _publish(found: Run, control: Run) -> None:
    longest = max((o.ended_at - o.began_at for o in found.outages), default=0) / 1_000_000
    summary = (
        f"{len(found.outages)} deaths of the server under {RESTARTS.messages:,} messages, the longest outage "
        f"{longest:.1f} s: {len(found.refusals):,} calls were answered 503 and asked again, {len(found.unanswerable)} "
        f"of them later than {RECOVERED_WITHIN.seconds} s after an outage. `serve` and both `worker` lived through it."
    )
    runs = {"noroshi": found.reckoning, "control: 202 half a second before the commit": control.reckoning}
    publish("F6", "\n\n".join([summary, render(runs), render_crashes(found.reckoning)]))
