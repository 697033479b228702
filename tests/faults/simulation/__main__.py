"""`python -m tests.faults.simulation`: a seed in, its story out; or a range of seeds in, their sum out."""

import argparse
import os
import sys
import time

from tests.faults.simulation.mutants import MUTANTS
from tests.faults.simulation.runner import render_failures, render_total, run_all, run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one world")
    parser.add_argument("--verbose", action="store_true", help="tell its story")
    parser.add_argument("--mutant", choices=MUTANTS, help="with this bug planted")
    parser.add_argument("--seeds", type=int, default=2_000, help="how many worlds, without --seed")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    if chosen.seed is None:
        return _run_many(range(chosen.first, chosen.first + chosen.seeds), chosen.workers)
    _fix_hash_seed()
    verdict = run_seed(chosen.seed, chosen.mutant, is_told=chosen.verbose)
    for violation in verdict.violations:
        sys.stdout.write(f"{violation.invariant}: {violation.text}\n")
    sys.stdout.write(f"seed {chosen.seed}: {'FAILED' if verdict.violations else 'sound'}, digest {verdict.digest}\n")
    return bool(verdict.violations)


def _run_many(seeds: range, workers: int) -> int:
    began = time.perf_counter()
    total = run_all(seeds, workers)
    took = time.perf_counter() - began
    sys.stdout.write(render_total(total) + f"\n\n{took:.0f} s, {took * 1000 * workers / len(seeds):.0f} ms a seed\n")
    if total.failed:
        sys.stdout.write(render_failures(total.failed) + "\n")
    return bool(total.failed)


def _fix_hash_seed() -> None:
    """Begins anew where sets of strings have the order they have in the gate."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "tests.faults.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 - ourselves again


if __name__ == "__main__":
    sys.exit(main())
