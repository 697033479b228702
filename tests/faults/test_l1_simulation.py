"""Layer 1: two thousand worlds in virtual time, crashed and reopened, and the controls that show the check can fail."""
# layer 1

import pytest

from tests.faults.machinery.report import publish
from tests.faults.simulate_mutants import find
from tests.faults.simulation.runner import (
    Total,
    missed_windows,
    render_failures,
    render_total,
    run_all,
    verdicts,
)

SEEDS = range(2_000)
NIGHTLY = range(2_000, 100_000)

pytestmark = pytest.mark.xdist_group("l1")


def assert_sound(total: Total) -> None:
    assert not total.failed, render_failures(total.failed)
    assert not missed_windows(total), f"hit too seldom: {missed_windows(total)}"


def test_two_thousand_worlds_lose_nothing_and_double_only_what_a_crash_excuses() -> None:
    # I1-I6, I8, I9; W1, W2, W4, W9-W13, W16, W26, W27
    total = run_all(SEEDS)
    print(render_total(total))
    publish("L1", render_total(total))
    assert_sound(total)


@pytest.mark.slow
def test_a_night_of_worlds_loses_nothing_either() -> None:
    assert_sound(run_all(NIGHTLY))


def test_the_same_seed_is_the_same_world() -> None:
    # what a failing seed prints must lead to the same failure
    once = {verdict.seed: verdict.digest for verdict in verdicts(range(40), workers=2)}
    again = {verdict.seed: verdict.digest for verdict in verdicts(range(39, -1, -1), workers=1)}
    assert once == again
    assert len(set(once.values())) == len(once)


@pytest.mark.parametrize("mutant", ["settle without fencing", "idempotency row in its own commit"])
def test_a_planted_bug_is_found(mutant: str) -> None:
    # the control: `make simulate-mutants` plants all ten
    assert find(mutant, seeds=400) is not None
