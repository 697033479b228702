"""Who may import whom (DESIGN 3)."""

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.architecture.tree import Module, modules

PARTS = {
    "domain": set[str](),
    "ports": {"domain"},
    "machine": {"domain", "ports"},
    "storage": {"domain", "ports"},
    "keeper": {"domain", "ports", "machine", "storage"},
    "insight": {"domain", "ports"},
    "sources": {"domain", "ports"},
    "reservations": {"domain", "ports"},
    "crawler": {"domain", "ports"},
    "flow": {"domain", "ports"},
    "flow.way": {"domain", "ports", "flow"},
    "settings": {"domain", "flow", "storage", "machine", "reservations", "crawler"},
    "bootstrap": {"domain", "ports", "machine", "storage", "flow", "insight", "sources", "reservations", "crawler"}
    | {"settings", "flow.way", "keeper"},
    "care": {"domain", "ports", "machine", "storage", "settings", "bootstrap"},
    "client": {"domain", "ports", "machine", "settings", "bootstrap"},
    "enqueueing": {"domain", "machine"},
    "entrypoints": {"care", "client", "bootstrap", "domain", "ports", "settings", "entrypoints"},
}
"""Part and the parts it may import, beside itself."""

ENTRANCES = {"reservations.cron": {"entrypoints"}}
"""Modules that are started by their name (`python -m`) and that nobody imports: they hand on to the command line."""

APART = ("flow", "storage", "flow.send")
"""The folders in these never import their neighbours: a stage another stage, a store another, a provider another."""


def part_of(name: str) -> str:
    return "flow.way" if name == "flow.way" else name.split(".", maxsplit=1)[0]


def ours(module: Module) -> Iterator[str]:
    """The modules of ours that it imports, without the leading `noroshi.`."""
    known = {one.name for one in modules()}
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.shown}:{node.lineno} is a relative import"
            base = node.module or ""
            if base == "noroshi" or base.startswith("noroshi."):
                base = base.removeprefix("noroshi").removeprefix(".")
                for alias in node.names:
                    inner = f"{base}.{alias.name}".removeprefix(".")
                    yield inner if inner in known else base
        elif isinstance(node, ast.Import):
            yield from (a.name.removeprefix("noroshi.") for a in node.names if a.name.startswith("noroshi."))


def neighbourhood(name: str, folder: str) -> str | None:
    """The package directly in `folder` that a module belongs to; None for modules outside and beside the packages."""
    parts, depth = name.split("."), folder.count(".") + 1
    if not name.startswith(f"{folder}.") or len(parts) < depth + 2:
        return None
    return parts[depth]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_a_part_imports_only_what_the_table_allows(module: Module) -> None:
    part = part_of(module.name)
    if not module.name:
        assert {part_of(name) for name in ours(module)} == {"enqueueing"}, "the package itself offers enqueue alone"
        return
    for name in ours(module):
        other = part_of(name)
        if not name or name == module.name:
            continue
        assert part in PARTS, f"{module.shown}: {part} is not in the table"
        allowed = PARTS[part] | ENTRANCES.get(module.name, set())
        assert other == part or other in allowed, f"{module.shown} may not import noroshi.{name}"
        assert name not in ENTRANCES, f"{module.shown} imports an entrance"
        if part == "settings" and other != "domain":
            assert name.endswith(".settings"), f"{module.shown} may import only the parts' settings, not noroshi.{name}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_neighbours_never_import_each_other(module: Module) -> None:
    for name in ours(module):
        for folder in APART:
            here, there = neighbourhood(module.name, folder), neighbourhood(name, folder)
            assert here is None or there in {None, here}, f"{module.shown} may not import noroshi.{name}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = {module.name: set(ours(module)) - {module.name} for module in modules()}
    settled: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name not in settled:
            for other in sorted(imports.get(name, ())):
                visit(other, (*way, name))
            settled.add(name)

    for name in imports:
        visit(name, ())


@pytest.mark.parametrize(
    "module", [one for one in modules() if one.name.split(".")[0] in {"domain", "ports"}], ids=lambda one: one.name
)
def test_domain_and_ports_use_the_standard_library_and_msgspec_only(module: Module) -> None:
    allowed = {*sys.stdlib_module_names, "msgspec", "noroshi"}
    for node in ast.walk(module.syntax):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] in allowed, f"{module.shown} imports {name}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_imports_stand_at_the_top(module: Module) -> None:
    at_top = {id(node) for node in module.syntax.body}
    is_over = False
    for node in module.syntax.body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        assert not (is_import and is_over), f"{module.shown}:{node.lineno} is an import below other code"
        is_over = is_over or not (is_import or isinstance(node, ast.Expr))
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert id(node) in at_top, f"{module.shown}:{node.lineno} is an import inside something"


def test_whoever_imports_enqueue_loads_no_driver_and_no_server() -> None:
    heavy = ("apsw", "asyncpg", "psycopg", "sqlalchemy", "django", "sqlite3", "starlette", "cryptography", "structlog")
    script = f"import sys; from noroshi import enqueue; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
