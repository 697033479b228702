"""The tables of docs/, made from the code: `make docs` writes them, and a test holds them to it."""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path

from noroshi.domain.channels import CHANNELS, Needs
from noroshi.domain.problems import PROBLEMS
from noroshi.domain.states import TERMINAL, TRANSITIONS, Status
from noroshi.entrypoints.api.routes import ROUTES
from noroshi.flow.send.registry import PROVIDERS
from noroshi.flow.send.settings import provider_settings, settings_of
from noroshi.machine.meter import METRICS
from noroshi.settings import SETTINGS, Setting
from tests.architecture.tree import ROOT

DOCS = ROOT / "docs"
_PLACE = re.compile(r"(?<=<!-- made from the code: make docs -->\n).*?(?=\n<!-- end -->)", re.DOTALL)
_WHICH = re.compile(r"^<!-- channel (\w+) -->$", re.MULTILINE)
_WHOSE = re.compile(r"^<!-- settings of (\w+) -->$", re.MULTILINE)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _names(row: Setting) -> tuple[str, ...]:
    variables = [name for name in row.variables if row.has_variable]
    keys = [row.key] if row.has_key else []
    if row.is_secret:
        variables, keys = [*variables, f"{row.variable}_FILE"], [*keys, f"{row.key}_file"]
        variables += [f"{row.also}_FILE"] if row.also else []
    return tuple(", ".join(f"`{name}`" for name in names) or "-" for names in (variables, keys))


def settings_table() -> str:
    """All but those of the providers, which stand on the pages of their channels."""
    theirs = {row.key for row in provider_settings()}
    return _settings_table(row for row in SETTINGS if row.key not in theirs)


def _settings_table(settings: Iterable[Setting]) -> str:
    rows = []
    for row in settings:
        default = row.default_text or (f"`{row.default}`" if row.default else "-")
        rows.append((*_names(row), default, row.help))
    return _table(("variable", "in noroshi.toml", "default", "what it does"), rows)


def provider_table(provider: str) -> str:
    theirs = {row.key for row in settings_of(PROVIDERS[provider])}
    return _settings_table(row for row in SETTINGS if row.key in theirs) if theirs else "None of its own."


def pages_of_providers() -> dict[str, str]:
    """Each provider that has a page, and the page: it names whose settings stand on it."""
    found = {}
    for page in sorted((DOCS / "channels").glob("*.md")):
        for provider in _WHOSE.findall(page.read_text(encoding="utf-8")):
            found[provider] = str(page.relative_to(DOCS))
    return found


def channel_table(name: str) -> str:
    kind = CHANNELS[name]
    retry, limit = kind.retry, kind.limit
    delays = f"{_seconds(retry.base)}, then {retry.factor} times as long each, {_seconds(retry.longest)} at most"
    rows = (
        ("reaches", _REACHED_BY[kind.needs]),
        ("tried again", f"{retry.retries} times: after {delays}, give or take a half"),
        ("a person gets at most", f"{limit.per_hour} an hour, {limit.per_day} a day, unless preferences say otherwise"),
    )
    return _table(("", ""), rows)


_REACHED_BY = {
    Needs.PHONE: "the person's `phone`",
    Needs.DEVICE: "each active device",
}


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"


def pages_of_channels() -> dict[str, str]:
    """Each channel that has a page of its own because no provider serves it yet, and the page."""
    found = {}
    for page in sorted((DOCS / "channels").glob("*.md")):
        for channel in _WHICH.findall(page.read_text(encoding="utf-8")):
            found[channel] = str(page.relative_to(DOCS))
    return found


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


def decisions_list() -> str:
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    titles = (page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in pages)
    return "\n".join(f"- [{title}]({page.name})" for title, page in zip(titles, pages, strict=True))


MADE: dict[str, Callable[[], str]] = {
    "settings.md": settings_table,
    "errors.md": errors_sections,
    "metrics.md": metrics_table,
    "states.md": states_table,
    "routes.md": routes_table,
    "decisions/README.md": decisions_list,
    **{page: partial(provider_table, provider) for provider, page in pages_of_providers().items()},
    **{page: partial(channel_table, channel) for channel, page in pages_of_channels().items()},
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
