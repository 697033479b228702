"""How every command begins: options in, settings out, and each error that a person can mend as one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from noroshi.bootstrap import START_ERRORS
from noroshi.settings import Settings, SettingsError, read_settings

CANNOT = 2

_MENDABLE: tuple[type[Exception], ...] = (SettingsError, *START_ERRORS)

DataOption = Annotated[
    Path | None, typer.Option(help="The folder of the store, the keys and the lock (NOROSHI_DATA).", file_okay=False)
]


def gathered_settings(*, host: str | None = None, port: int | None = None, data: Path | None = None) -> Settings:
    """What the options say, else the environment, else noroshi.toml."""
    options = {"host": host, "port": port, "data": data}
    return read_settings(os.environ, {key: str(value) for key, value in options.items() if value is not None})


@contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except _MENDABLE as error:
        typer.echo(f"noroshi: {error}", err=True)
        raise typer.Exit(CANNOT) from error
