"""The gate itself: what is skipped is said, and in CI a missing service is a failure."""

import ast
import re
from pathlib import Path

import pytest
from tests.conftest import NOTHING_BUT_QUICK
from tests.longest_first import LONGEST_FIRST
from tests.one_store_only import IN_THE_FULL_RUN_ONLY

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

ON_STORES = """
import pytest

@pytest.fixture(params=["sqlite-inline", "postgres"])
def store(request):
    if request.param == "postgres" and request.function.__name__ == "test_skipped":
        pytest.skip("service missing: postgres")
    return request.param

@pytest.mark.parametrize("number", range(3))
def test_counted(store, number):
    assert number < 2 or store != "postgres"

def test_skipped(store):
    pass

def test_without():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
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


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_ends_with_how_many_tests_ran_on_each_store(project: pytest.Pytester, workers: str) -> None:
    # issue 3
    folder = project.mkdir("conformance")
    (folder / "test_stores.py").write_text(ON_STORES)
    done = project.runpytest_subprocess("-p", "no:cacheprovider", "-n", workers, "conformance")
    assert "conformance: 3 on postgres, 4 on sqlite-inline" in done.outlines


def test_the_longest_tests_come_first_and_the_others_as_they_were(project: pytest.Pytester) -> None:
    for name in ("tests/faults/test_a.py", LONGEST_FIRST[1], LONGEST_FIRST[0], "tests/stories/test_b.py"):
        file = project.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("def test_it(): pass")
    done = project.runpytest_subprocess("-p", "no:cacheprovider", "--collect-only", "-q", "tests")
    found = [line.partition("::")[0] for line in done.outlines if "::" in line]
    assert found == [LONGEST_FIRST[0], LONGEST_FIRST[1], "tests/faults/test_a.py", "tests/stories/test_b.py"]


def test_pip_installs_what_the_locks_name_and_looks_for_nothing_else() -> None:
    """A dependency with an extra would be looked up anew, and found in a release that no lock names."""
    makefile = (ROOT / "Makefile").read_text()
    (pip,) = re.findall(r"^PIP := (.*)$", makefile, re.MULTILINE)
    assert {"--require-hashes", "--no-deps"} <= set(pip.split())
    assert re.findall(r"^\t(.*)-r requirements/\w+\.lock$", makefile, re.MULTILINE) == ["$(PIP) "] * 2
    assert "pip --disable-pip-version-check check" in makefile, "nor may anything be missing in them"


def test_the_gate_keeps_to_that_order_and_every_name_in_it_is_a_file() -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / name).is_file()] == []
    runs = re.findall(r"^\t.*--dist loadgroup.*$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert runs
    assert all("--no-loadscope-reorder" in run for run in runs), "pytest-xdist would put groups of many tests first"


@pytest.mark.parametrize("name", NOTHING_BUT_QUICK)
def test_what_a_run_without_quick_tests_leaves_alone_has_no_others(name: str) -> None:
    syntax = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(syntax) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    asked = {argument.arg for function in functions for argument in function.args.args}
    assert any(function.name.startswith("test_") for function in functions)
    assert not {fixture for fixture in asked if "postgres" in fixture or fixture == "store"}
    assert "slow" not in {node.attr for node in ast.walk(syntax) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize(("wanted", "found"), [("quick and not slow", 1), ("not quick and not slow", 0)])
def test_what_has_nothing_but_quick_tests_is_collected_for_those_alone(
    project: pytest.Pytester, wanted: str, found: int
) -> None:
    file = project.path / NOTHING_BUT_QUICK[0]
    file.parent.mkdir(parents=True)
    file.write_text("print('collected')\ndef test_it(): pass")
    done = project.runpytest_subprocess("-p", "no:cacheprovider", "-s", "-m", wanted, "tests")
    assert done.outlines.count("collected") == found


def test_ci_runs_the_command_that_the_readme_names() -> None:
    # DESIGN 8
    assert "make test\n" in (ROOT / "README.md").read_text()
    assert "\nmake test " in (ROOT / ".ci" / "run").read_text()


def test_the_gate_names_what_it_leaves_to_the_full_run_and_shows_it_at_its_end(project: pytest.Pytester) -> None:
    # issue 3
    done = project.runpytest_subprocess("-p", "no:cacheprovider", "-m", "not quick and not slow", "test_skips.py")
    (line,) = [line for line in done.outlines if line.startswith("on postgres in ")]
    assert line.partition(": ")[2].split(", ") == [Path(name).stem for name in IN_THE_FULL_RUN_ONLY]
    shown = re.search(r"grep -E '(.+)' \"\$log\"", (ROOT / ".ci" / "run").read_text())
    assert shown is not None
    assert re.search(shown[1], line)
    quick = project.runpytest_subprocess("-p", "no:cacheprovider", "-m", "quick and not slow", "test_skips.py")
    assert not [line for line in quick.outlines if line.startswith("on postgres in ")]
