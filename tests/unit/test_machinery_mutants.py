"""A planted bug counts as found only where an invariant tells of it, not where it merely broke the simulation."""

from collections.abc import Iterator, Sequence

import pytest
from tests.faults import simulate_mutants
from tests.faults.simulate_mutants import STUMBLES, find
from tests.faults.simulation.evidence import Violation
from tests.faults.simulation.world import Verdict


def world(seed: int, *invariants: str) -> Verdict:
    return Verdict(seed, [Violation(name, "text") for name in invariants])


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    found: list[Verdict] = [world(0)]

    def verdicts(_seeds: Sequence[int], _mutant: str) -> Iterator[Verdict]:
        return iter(found)

    monkeypatch.setattr(simulate_mutants, "verdicts", verdicts)
    return found


@pytest.mark.parametrize("stumble", sorted(STUMBLES))
def test_a_world_that_stumbled_finds_nothing(stumble: str, worlds: list[Verdict]) -> None:
    worlds += [world(1, stumble), world(2, "I1", stumble)]
    assert find("any") is None


def test_the_first_world_in_which_an_invariant_breaks_finds_the_bug(worlds: list[Verdict]) -> None:
    worlds += [world(1, "loop"), world(2, "lost"), world(3, "I1")]
    assert find("any") is worlds[2]
