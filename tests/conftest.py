"""What every test run does: the same examples each time, servers that end with it, and honest last lines about what
ran on which store and what was skipped."""

import logging
import os
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from tests.longest_first import place_in_line
from tests.one_store_only import IN_THE_FULL_RUN_ONLY
from tests.services.fixtures import (  # noqa: F401
    chromium_path,
    postgres_databases,
    postgres_server,
    postgres_url,
    start_postgres,
)
from tests.services.runs import joined_run

collect_ignore = ["stand_ins/courier"]
"""What a channel's author writes; it is run where the channel was added (tests/stories/test_adding_a_channel.py)."""

MISSING_SERVICE = "service missing: "
"""How a test says that it needs a server this machine lacks: `pytest.skip("service missing: postgres")`."""

QUICK = ("tests/architecture/", "tests/unit/", "tests/conformance/")
"""Where tests are a part of `make check`, unless they need a server."""

NOTHING_BUT_QUICK = (
    "tests/architecture/test_imports.py",
    "tests/architecture/test_shape.py",
    "tests/unit/test_api_document.py",
)
"""To collect these takes seconds in each worker; a run without the quick tests leaves them alone."""

ARE_SERVICES_REQUIRED = os.environ.get("NOROSHI_REQUIRE_SERVICES") == "1"

# The gate must give the same answer twice; new examples are looked for by `make test-full`.
hypothesis.settings.register_profile("gate", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("full", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile("full" if os.environ.get("NOROSHI_TEST_FULL") == "1" else "gate")


def pytest_configure(config: pytest.Config) -> None:
    """Workers belong to the run of their controller, whose end is the end of every server."""
    ends = ExitStack()
    ends.enter_context(joined_run())
    config.add_cleanup(ends.close)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_without_quick = "not quick" in config.option.markexpr.split(" and ")
    return True if is_without_quick and str(collection_path).endswith(NOTHING_BUT_QUICK) else None


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Generator[None, None, None]:
    """A test that sets up logs must not leave them to the next, whose captured stream is another."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest come first, and groups of tests stay together: pytest-xdist 3.8 notes a group where pytest 9.2 no
    longer looks."""
    items.sort(key=lambda item: place_in_line(item.nodeid))
    for item in items if getattr(config.option, "loadgroup", False) else ():
        group = item.get_closest_marker("xdist_group")
        if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
            item._id = type(item.id).parse(f"{item.nodeid}@{group.args[0]}")


def pytest_itemcollected(item: pytest.Item) -> None:
    """A report says on which store its test ran, also from a worker to its controller."""
    parameters = getattr(item, "callspec", None)
    store = "" if parameters is None else str(parameters.params.get("store", ""))
    if store:
        item.user_properties.append(("store", store))
    if _is_quick(item, store):
        item.add_marker("quick")
    if store == "postgres" and item.nodeid.startswith(tuple(IN_THE_FULL_RUN_ONLY)):
        item.add_marker("slow")


def _is_quick(item: pytest.Item, store: str) -> bool:
    asked: list[str] = getattr(item, "fixturenames", [])
    needs_server = "postgres" in store or any("postgres" in name for name in asked)
    return item.nodeid.startswith(QUICK) and not needs_server


def _reason(report: Any) -> str:
    """Why a report was skipped, without pytest's own word before it."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(text).removeprefix("Skipped: ")


def _insist(report: Any) -> None:
    if ARE_SERVICES_REQUIRED and report.skipped and MISSING_SERVICE in _reason(report):
        report.outcome, report.longrepr = "failed", f"required by NOROSHI_REQUIRE_SERVICES: {_reason(report)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _insist(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _insist(report)
    return report


def _stores(reports: list[Any]) -> dict[str, Counter[str]]:
    """How many tests of each folder ran on each store."""
    counts: dict[str, Counter[str]] = {}
    for report in reports:
        for store in (value for name, value in report.user_properties if name == "store" and report.when == "call"):
            counts.setdefault(Path(report.location[0]).parent.name, Counter())[store] += 1
    return counts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    for folder, counts in sorted(_stores(ran).items()):
        terminalreporter.write_line(f"{folder}: " + ", ".join(f"{counts[one]} on {one}" for one in sorted(counts)))
    if {"not quick", "not slow"} <= set(terminalreporter.config.option.markexpr.split(" and ")):
        left_out = ", ".join(Path(name).stem for name in IN_THE_FULL_RUN_ONLY)
        terminalreporter.write_line(f"on postgres in `make test-full` only: {left_out}")
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.write_line("skipped: " + "; ".join(f"{count} x {why}" for why, count in reasons.items()))
