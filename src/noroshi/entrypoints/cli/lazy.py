"""Commands by name in, the one that is asked for out: the others are not even imported."""

import gc
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from msgspec import Struct
from typer.core import TyperGroup

_FOLDER = __package__
_TRACEBACK_PAINTERS = ("rich", "better_exceptions")


class Row(Struct, frozen=True):
    """`place` is `module:function`, or `module:app` for a command with commands; `panel` is its part of the help."""

    place: str
    panel: str


class Commands(MutableMapping[str, Any]):
    """Names at once, commands on first use: whoever serves does not carry what those who ask need, nor the reverse."""

    def __init__(self, rows: dict[str, Row]) -> None:
        self._rows = rows
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _command(name, self._rows[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def load(place: str) -> Any:
    """What is called `package.module:attribute`."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """What is loaded stays: to look through it for garbage would take a tenth of the start."""
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_collecting:
            gc.enable()


def load_logs() -> None:
    """structlog would bring rich and 80 modules with it, for tracebacks that our logs never show (I12); it does without
    where rich is not installed, which is what it is told here. A sixth of the start."""
    if "structlog" in sys.modules:
        return
    hidden = {name: sys.modules.get(name) for name in _TRACEBACK_PAINTERS}
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: "there is no such module"
    try:
        import_module("structlog")
    finally:
        for name, module in hidden.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _command(name: str, row: Row) -> Any:
    with _nothing_collected():
        found = load(f"{_FOLDER}.{row.place}")
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        found = alone
    command: Any = typer.main.get_command(found)
    command.name, command.rich_help_panel = name, row.panel
    return command


def group_of(rows: dict[str, Row]) -> type[TyperGroup]:
    """The class of a group that has these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = Commands(rows)

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's way to ask
            return list(rows)

    return LazyGroup
