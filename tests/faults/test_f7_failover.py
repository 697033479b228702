"""F7: the primary dies under load and its standby is promoted; the processes know both by one URL."""

import asyncio
import time
from pathlib import Path

import psycopg
import pytest

from noroshi.domain.instants import plus
from tests.faults.machinery.kept_store import OwnDatabase
from tests.faults.machinery.reckoning import Reckoning, render, render_problems
from tests.faults.machinery.report import publish
from tests.faults.sweep.fleet import Fleet
from tests.faults.sweep.kills import Callers, Plan, bodies, portions
from tests.faults.sweep.seeded import seed
from tests.faults.sweep.trial import now
from tests.services.fixtures import StartPostgres
from tests.services.postgres import PostgresServer
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = [pytest.mark.xdist_group("f7_failover"), pytest.mark.slow]

PLAN = Plan(kills=1, messages=2_000, max_batch=3)

_BUSY_SECONDS = 1.0
_IN_STEP = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"


def both(primary: PostgresServer, standby: PostgresServer) -> str:
    """Whichever of the two takes writes."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://postgres:{primary.password}@{hosts}/postgres?target_session_attrs=read-write"


def keep_in_step(primary: PostgresServer) -> None:
    """From now on a commit is answered when the standby has it on its disk."""
    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        while not connection.execute(_IN_STEP).fetchall():
            time.sleep(0.05)


def run(folder: Path, primary: PostgresServer, standby: PostgresServer, *, is_in_step: bool = True) -> Reckoning:
    """A standby that is not in step is switched off before the load, and so has fallen behind."""
    seeded = seed(folder / "seeded", PLAN.people, OwnDatabase(both(primary, standby)))
    if is_in_step:
        keep_in_step(primary)
    else:
        standby.stop()
    with Fleet(folder, seeded, environment=PLAN.environment) as fleet:
        asyncio.run(_fail_over(fleet, primary, standby, has_all=is_in_step))
        assert set(fleet.stop_all()) == {0}
        return fleet.reckon(is_control=not is_in_step)


async def _fail_over(fleet: Fleet, primary: PostgresServer, standby: PostgresServer, *, has_all: bool) -> None:
    fleet.provider.behave(Conduct(delay=PLAN.delay))
    await fleet.start_all()
    callers = Callers(fleet, 120)
    for portion in portions(bodies(fleet.seeded.people, PLAN.messages), 2):
        callers.begin(portion)
        await asyncio.sleep(_BUSY_SECONDS)
    at = now()
    await asyncio.to_thread(primary.kill)
    if not has_all:
        await asyncio.to_thread(standby.start)
    await asyncio.to_thread(standby.promote)
    await asyncio.to_thread(fleet.meet, "fail-over", at, None, plus(now(), PLAN.delay))
    fleet.provider.behave(Conduct())
    await callers.end()
    await asyncio.to_thread(fleet.drain, 120)


def test_a_standby_in_step_takes_over_and_nothing_is_lost(
    tmp_path: Path, start_postgres: StartPostgres
) -> None:  # F7, I1
    first, second = start_postgres(), start_postgres()
    found = run(tmp_path / "product", first, start_postgres(standby_of=first))
    control = run(tmp_path / "behind", second, start_postgres(standby_of=second), is_in_step=False)
    publish("F7", render({"a synchronous standby": found, "control: a standby that is behind": control}))
    assert found.is_sound, render_problems(found)
    assert sum(found.words.values()) == PLAN.messages
    assert control.is_as_expected
