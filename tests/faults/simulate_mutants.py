"""`make simulate-mutants`: plants each known bug in turn; the simulator must find every one within 2,000 seeds."""

import sys

from tests.faults.machinery.report import publish
from tests.faults.simulation.mutants import MUTANTS
from tests.faults.simulation.runner import verdicts
from tests.faults.simulation.world import Verdict

SEEDS = 2_000

STUMBLES = frozenset({"simulation", "loop", "errors", "callers"})
"""What a planted bug can also cause by being badly planted: a traceback, a loop that runs away, an exception, or one
that a caller is answered with."""


def find(mutant: str, seeds: int = SEEDS) -> Verdict | None:
    """The first world in which the bug breaks an invariant, and nothing else is broken; None: it was never found."""
    return next((verdict for verdict in verdicts(range(seeds), mutant) if _shows(verdict)), None)


def _shows(verdict: Verdict) -> bool:
    return bool(verdict.violations) and not any(one.invariant in STUMBLES for one in verdict.violations)


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
