"""Sizes, names, and the things that only the machine may do (DESIGN 3, 5.6; STYLE 20)."""

import ast
import re
from pathlib import Path

import pytest

from noroshi.machine.logs import ALLOWED_FIELDS
from noroshi.machine.meter import METRICS, MetricKind
from tests.architecture.tree import ROOT, Module, modules, python_files

MOST_LINES = 600
MOST_FUNCTION_LINES = 60

NEVER_IN_A_CLASS = {"Manager", "Helper", "Helpers", "Util", "Utils", "Service", "Processor", "Handler", "Abstract"}
NEVER_AT_ITS_END = {"Base", "Data", "Info"}
NEVER_A_VERB = {"process", "handle", "manage", "perform", "execute"}
NEVER_A_MODULE = {"utils", "util", "helpers", "helper", "common", "managers", "misc"}

ONLY_IN_MACHINE = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "sleep"},
    "asyncio": {"sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "os": {"urandom"},
    "uuid": {"uuid1", "uuid4"},
    "random": {"*"},
    "secrets": {"*"},
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_keep_to_their_size(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            assert lines <= MOST_FUNCTION_LINES, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_names_say_what_a_thing_is(module: Module) -> None:
    assert not set(module.name.split(".")) & NEVER_A_MODULE
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.ClassDef):
            words = re.findall(r"[A-Z][a-z0-9]*", node.name)
            assert not set(words) & NEVER_IN_A_CLASS, f"{module.shown}:{node.lineno} {node.name}"
            assert not words or words[-1] not in NEVER_AT_ITS_END, f"{module.shown}:{node.lineno} {node.name}"
        elif isinstance(node, Function):
            verb = node.name.strip("_").split("_")[0]
            assert verb not in NEVER_A_VERB, f"{module.shown}:{node.lineno} {node.name}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_every_module_says_in_a_sentence_what_it_is(module: Module) -> None:
    assert (ast.get_docstring(module.syntax) or "").rstrip().endswith("."), f"{module.shown} lacks its sentence"


@pytest.mark.parametrize(
    "module", [one for one in modules() if not one.name.startswith("machine")], ids=lambda module: module.name
)
def test_only_the_machine_asks_for_time_and_chance(module: Module) -> None:
    # DESIGN 5.6
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Import):
            used = [(alias.name, "*") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            used = [(node.module or "", alias.name) for alias in node.names]
            used += [(node.module or "", "*")]
        elif isinstance(node, ast.Attribute):
            used = [(ast.unparse(node.value).split(".")[-1], node.attr)]
        else:
            continue
        for name, member in used:
            is_theirs = member in ONLY_IN_MACHINE.get(name, ())
            assert not is_theirs, f"{module.shown}:{node.lineno} uses {name}.{member}: take the Clock or the Dice"


METER_METHODS = {"count": MetricKind.COUNTER, "observe": MetricKind.HISTOGRAM, "gauge": MetricKind.GAUGE}
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_log_lines_are_fixed_texts_with_allowed_fields(module: Module) -> None:
    # I12
    for node in ast.walk(module.syntax):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS):
            continue
        if ast.unparse(node.func.value) not in {"log", "_log", "logger", "_logger", "structlog.get_logger()"}:
            continue
        place = f"{module.shown}:{node.lineno}"
        assert all(isinstance(word, ast.Constant | ast.Name) for word in node.args), f"{place}: the text is made up"
        fields = {keyword.arg for keyword in node.keywords} - {"exc_info"}
        assert fields <= ALLOWED_FIELDS, f"{place}: {fields - ALLOWED_FIELDS} would be dropped"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_what_is_counted_is_a_row_of_the_metrics(module: Module) -> None:
    # N16.1
    rows = {row.name: row for row in METRICS}
    for node in ast.walk(module.syntax):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        kind, name = METER_METHODS.get(node.func.attr), node.args[0]
        if kind is None or not ast.unparse(node.func.value).endswith("meter") or not isinstance(name, ast.Constant):
            continue
        place = f"{module.shown}:{node.lineno} {name.value}"
        assert name.value in rows, f"{place} is not in METRICS"
        row = rows[str(name.value)]
        labels = {keyword.arg for keyword in node.keywords} - {"by", "value"}
        assert (row.kind, set(row.labels)) == (kind, labels), f"{place}: the row says {row.kind} {row.labels}"
