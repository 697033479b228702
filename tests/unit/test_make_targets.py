"""The gate itself: what is skipped is said, and in CI a missing service is a failure."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
SKIPS = """
import pytest

def test_postgres():
    pytest.skip("service missing: postgres")

def test_mac():
    pytest.skip("needs a Mac")

def test_fine():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text())
    pytester.makepyfile(test_skips=SKIPS)
    pytester.makepyfile(test_module='import pytest\npytest.skip("service missing: kafka", allow_module_level=True)')
    return pytester


def run(project: pytest.Pytester) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", "--continue-on-collection-errors")


def test_every_skip_is_named_with_its_reason_in_one_line(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # DESIGN 8
    monkeypatch.delenv("NOROSHI_REQUIRE_SERVICES", raising=False)
    done = run(project)
    done.assert_outcomes(passed=1, skipped=3)
    line = next(line for line in done.outlines if line.startswith("skipped: "))
    for reason in ("1 x service missing: postgres", "1 x needs a Mac", "1 x service missing: kafka"):
        assert reason in line


def test_where_services_are_required_a_missing_one_fails_and_other_skips_stay(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # DESIGN 8
    monkeypatch.setenv("NOROSHI_REQUIRE_SERVICES", "1")
    done = run(project)
    done.assert_outcomes(passed=1, skipped=1, failed=1, errors=1)
    assert done.ret != 0


def test_ci_runs_the_command_that_the_readme_names() -> None:
    # DESIGN 8
    assert "make test\n" in (ROOT / "README.md").read_text()
    assert "\nmake test " in (ROOT / ".ci" / "run").read_text()
