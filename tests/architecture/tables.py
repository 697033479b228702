"""The tables of docs/, made from the code: `make docs` writes them, and a test holds them to it."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from noroshi.domain.problems import PROBLEMS
from noroshi.domain.states import TERMINAL, TRANSITIONS, Status
from noroshi.entrypoints.api.routes import ROUTES
from noroshi.machine.meter import METRICS
from noroshi.settings import SETTINGS, Setting
from tests.architecture.tree import ROOT

DOCS = ROOT / "docs"
_PLACE = re.compile(r"(?<=<!-- made from the code: make docs -->\n).*?(?=\n<!-- end -->)", re.DOTALL)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _names(row: Setting) -> tuple[str, str]:
    variable = f"`{row.variable}`" if row.has_variable else "-"
    key = f"`{row.key}`" if row.has_key else "-"
    if row.is_secret:
        variable, key = f"{variable}, `{row.variable}_FILE`", f"{key}, `{row.key}_file`"
    return variable, key


def settings_table() -> str:
    rows = []
    for row in SETTINGS:
        default = row.default_text or (f"`{row.default}`" if row.default else "-")
        rows.append((*_names(row), default, row.help))
    return _table(("variable", "in noroshi.toml", "default", "what it does"), rows)


def errors_sections() -> str:
    """A section each, so that a code is a link: docs/errors.md#bad_json."""
    return "\n\n".join(f"### {kind.code}\n{kind.status}. {kind.title} {kind.todo}" for kind in PROBLEMS.values())


def metrics_table() -> str:
    rows = (
        (f"`{row.name}`", row.kind, ", ".join(f"`{label}`" for label in row.labels) or "-", row.help) for row in METRICS
    )
    return _table(("name", "kind", "labels", "what it says"), rows)


def states_table() -> str:
    rows = (
        (
            status.name,
            ", ".join(after.name for after in Status if after in TRANSITIONS[status]) or "-",
            "yes" if status in TERMINAL else "",
        )
        for status in Status
    )
    return _table(("status", "may be followed by", "terminal"), rows)


def routes_table() -> str:
    rows = (
        (
            row.method,
            f"`{row.path}`",
            "-" if row.scope is None else row.scope.value,
            row.summary,
        )
        for row in ROUTES
    )
    return _table(("method", "path", "scope", "what it does"), rows)


MADE: dict[str, Callable[[], str]] = {
    "settings.md": settings_table,
    "errors.md": errors_sections,
    "metrics.md": metrics_table,
    "states.md": states_table,
    "routes.md": routes_table,
}


def written(path: Path) -> str:
    """What the page holds between its marks."""
    found = _PLACE.findall(path.read_text(encoding="utf-8"))
    assert len(found) == 1, f"{path} must have one place for its table"
    return str(found[0])


def write_all() -> None:
    for name, make in MADE.items():
        path = DOCS / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f"\n{written(path)}\n<!-- end", f"\n{make()}\n<!-- end"), encoding="utf-8")


if __name__ == "__main__":
    write_all()
