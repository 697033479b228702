"""`make simulate-mutants`: plants each known bug in turn; the simulator must find every one within 2,000 seeds."""

import sys

from tests.faults.machinery.report import publish
from tests.faults.simulation.mutants import MUTANTS
from tests.faults.simulation.runner import verdicts
from tests.faults.simulation.world import Verdict

SEEDS = 2_000


def find(mutant: str, seeds: int = SEEDS) -> Verdict | None:
    """The first world in which the bug shows; None: it was never found."""
    return next((verdict for verdict in verdicts(range(seeds), mutant) if verdict.violations), None)


def render(found: dict[str, Verdict | None]) -> str:
    lines = ["| planted bug | what it does | first seed | found by |", "|---|---|---:|---|"]
    for name, verdict in found.items():
        seed, by = (verdict.seed, _by(verdict)) if verdict is not None else ("**not found**", "")
        lines.append(f"| {name} | {MUTANTS[name].what} | {seed} | {by} |")
    return "\n".join(lines)


def _by(verdict: Verdict) -> str:
    first = verdict.violations[0]
    return f"{first.invariant}: {first.text.splitlines()[0].replace('|', '/')}"


def main() -> int:
    found: dict[str, Verdict | None] = {}
    for name in MUTANTS:
        found[name] = find(name)
        sys.stdout.write(render({name: found[name]}).splitlines()[-1] + "\n")
        sys.stdout.flush()
    publish("L1-mutants", f"Each within {SEEDS:,} seeds.\n\n{render(found)}")
    return any(verdict is None for verdict in found.values())


if __name__ == "__main__":
    sys.exit(main())
