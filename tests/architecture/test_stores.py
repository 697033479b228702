"""Every feature exists on every store: a test that runs on one only is on a list, with its reason (issue 3), and so is
one that the gate runs on one only."""

import re
import subprocess
import sys
from functools import cache

from tests.architecture.tree import ROOT
from tests.one_store_only import IN_THE_FULL_RUN_ONLY, ONE_STORE_ONLY
from tests.stores import KINDS

SUITES = ("tests/conformance", "tests/stories", "tests/faults")


COLLECT = """
import sys, pytest

class Printing:
    def pytest_collection_finish(self, session):
        for item in session.items:
            print("\\n" + ("slow" if item.get_closest_marker("slow") else "gate"), item.nodeid)

sys.exit(pytest.main(sys.argv[1:], plugins=[Printing()]))
"""

Kinds = dict[str, set[str]]


@cache
def kinds_by_test() -> tuple[Kinds, Kinds]:
    """Every test of the suites, and the kinds of store among its parameters: in the full run, and in the gate."""
    words = ["--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider", *SUITES]
    listed = subprocess.run(
        [sys.executable, "-c", COLLECT, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stdout[-2000:] + listed.stderr[-2000:]
    full: Kinds = {}
    gate: Kinds = {}
    pattern = r"^(slow|gate) (tests/[^\[\n]+::[^\[\n]+)(?:\[(.*)\])?$"
    for run, test, parameters in re.findall(pattern, listed.stdout, re.MULTILINE):
        kinds = {kind for kind in KINDS if re.search(rf"(?:^|-){kind}\b", parameters)}
        full.setdefault(test, set()).update(kinds)
        if run == "gate":
            gate.setdefault(test, set()).update(kinds)
    return full, gate


def rows_of(test: str) -> set[str]:
    """The names by which a test may be on the list."""
    return {test, test.split("::", maxsplit=1)[0]} & ONE_STORE_ONLY.keys()


def test_the_list_names_exactly_the_tests_that_do_not_run_on_every_store() -> None:
    full, _ = kinds_by_test()
    partial = {test for test, kinds in full.items() if kinds != set(KINDS)}
    unnamed = sorted(test for test in partial if not rows_of(test))
    assert not unnamed, f"take the store as a parameter, or name the reason: {unnamed[:20]}"
    assert ONE_STORE_ONLY.keys() == {row for test in partial for row in rows_of(test)}


def test_the_second_list_names_exactly_the_files_that_the_gate_runs_on_one_store_only() -> None:
    full, gate = kinds_by_test()
    halved = {test for test, kinds in gate.items() if kinds != full[test]}
    assert IN_THE_FULL_RUN_ONLY.keys() == {test.split("::", maxsplit=1)[0] for test in halved}
    assert {kind for test in halved for kind in gate[test]} == {"sqlite"}


def test_every_row_of_the_lists_has_its_reason() -> None:
    assert all(len(reason) > 20 for reason in (*ONE_STORE_ONLY.values(), *IN_THE_FULL_RUN_ONLY.values()))
