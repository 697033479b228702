"""Every feature exists on every store: a test that runs on one only is on a list, with its reason (issue 3)."""

import re
import subprocess
import sys

from tests.architecture.tree import ROOT
from tests.one_store_only import ONE_STORE_ONLY
from tests.stores import KINDS

SUITES = ("tests/conformance", "tests/stories", "tests/faults")


def kinds_by_test() -> dict[str, set[str]]:
    """Every test of the suites, slow ones too, and the kinds of store among its parameters."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-n", "0", "-p", "no:cacheprovider", *SUITES]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert listed.returncode == 0, listed.stdout[-2000:] + listed.stderr[-2000:]
    found: dict[str, set[str]] = {}
    for test, parameters in re.findall(r"^(tests/[^\[\n]+::[^\[\n]+)(?:\[(.*)\])?$", listed.stdout, re.MULTILINE):
        kinds = {kind for kind in KINDS if re.search(rf"(?:^|-){kind}\b", parameters)}
        found.setdefault(test, set()).update(kinds)
    return found


def rows_of(test: str) -> set[str]:
    """The names by which a test may be on the list."""
    return {test, test.split("::", maxsplit=1)[0]} & ONE_STORE_ONLY.keys()


def test_the_list_names_exactly_the_tests_that_do_not_run_on_every_store() -> None:
    partial = {test for test, kinds in kinds_by_test().items() if kinds != set(KINDS)}
    unnamed = sorted(test for test in partial if not rows_of(test))
    assert not unnamed, f"take the store as a parameter, or name the reason: {unnamed[:20]}"
    assert ONE_STORE_ONLY.keys() == {row for test in partial for row in rows_of(test)}


def test_every_row_of_the_list_has_its_reason() -> None:
    assert all(len(reason) > 20 for reason in ONE_STORE_ONLY.values())
