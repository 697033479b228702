"""L3: kill -9 under load, again and again on one data folder; the provider's own ledger says what became of it all."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import Struct

from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.reckoning import Reckoning, render, render_problems
from tests.faults.machinery.report import publish, section
from tests.faults.sweep.kills import Kill, Plan, kill_under_load, render_kills
from tests.faults.sweep.seeded import seed
from tests.faults.sweep.trial import Trial

pytestmark = pytest.mark.xdist_group("l3_kills")

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
PLANS = {
    "sqlite": Plan(kills=500, messages=200_000, max_batch=20) if IS_FULL else Plan(kills=30, messages=5_000),
    "postgres": Plan(kills=100, messages=40_000, max_batch=20) if IS_FULL else Plan(kills=10, messages=1_500),
}

FORGETFUL = Plan(kills=4, messages=400)
SLOW_TO_SETTLE = Plan(kills=4, messages=600, lifetime=(1.0, 1.8), max_batch=2, delay=timedelta(milliseconds=20))


class Run(Struct, frozen=True):
    """`blamed` are the copies by the kill that explains them; `contradictory` the keys that were answered twice."""

    plan: Plan
    kills: list[Kill]
    reckoning: Reckoning
    blamed: Counter[int]
    contradictory: list[str]


def run(plan: Plan, folder: Path, store: Stores, plants: Sequence[str] | None = None) -> Run:
    seeded = seed(folder / "seeded", plan.people, store)
    with Trial(
        folder, seeded, plants=plants, environment=plan.environment, most_in_flight=plan.most_in_flight
    ) as trial:
        kills = asyncio.run(kill_under_load(trial, plan))
        assert trial.noroshi.stop() == 0
        contradictory = [key for key, posted in trial.posted.items() if posted.is_contradictory]
        return Run(plan, kills, trial.reckon(is_control=plants is not None), trial.blamed(), contradictory)


def test_kills_under_load_lose_nothing_and_double_no_more_than_was_in_flight(tmp_path: Path, store: Stores) -> None:
    # L3, F1, I1-I5
    plan = PLANS[store.kind]
    found = run(plan, tmp_path / "product", store)
    controls = {
        "202 half a second before the commit": run(FORGETFUL, tmp_path / "forgetful", store, ["answers_first"]),
        "outcomes two seconds in memory": run(SLOW_TO_SETTLE, tmp_path / "slow", store, ["settles_late"]),
    }
    _publish(section("L3", store.kind), found, controls)
    assert found.reckoning.is_sound, render_problems(found.reckoning)
    assert found.blamed[-1] == 0, "something was sent again that was not in flight at any kill"
    assert found.contradictory == []
    assert sum(found.reckoning.words.values()) == plan.messages
    assert sum(kill.in_flight > 0 for kill in found.kills) >= plan.kills * 2 / 3
    assert sum(kill.is_amid_commits for kill in found.kills) >= plan.kills / 3
    assert all(control.reckoning.is_as_expected for control in controls.values())


def _publish(name: str, found: Run, controls: dict[str, Run]) -> None:
    kills = found.kills
    summary = (
        f"{len(kills)} kills under {found.plan.messages:,} messages: "
        f"{sum(kill.in_flight > 0 for kill in kills)} with sends in flight, "
        f"{sum(kill.is_amid_commits for kill in kills)} with a commit group unanswered, "
        f"{sum(kill.kept > 0 for kill in kills)} of them with one that was committed. "
        f"At 95 % fewer than {3 / found.plan.messages:.2%} of messages are lost."
    )
    runs = {"noroshi": found.reckoning} | {f"control: {name}": one.reckoning for name, one in controls.items()}
    publish(name, "\n\n".join([summary, render(runs), render_kills(kills, found.reckoning, found.blamed)]))
