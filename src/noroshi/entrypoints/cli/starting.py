"""How every command begins: options in, settings out, and each error that a person can mend as one line."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from noroshi.bootstrap import START_ERRORS, Back, opened_back
from noroshi.care.errors import CareError
from noroshi.settings import Settings, SettingsError, read_settings

T = TypeVar("T")

CANNOT = 2

_MENDABLE: tuple[type[Exception], ...] = (CareError, SettingsError, *START_ERRORS)

DataOption = Annotated[
    Path | None, typer.Option(help="The folder of the store, the keys and the lock (NOROSHI_DATA).", file_okay=False)
]


def gathered_settings(
    *, host: str | None = None, port: int | None = None, data: Path | None = None, store: str | None = None
) -> Settings:
    """What the options say, else the environment, else noroshi.toml."""
    options = {"host": host, "port": port, "data": data, "store": store}
    return read_settings(os.environ, {key: str(value) for key, value in options.items() if value is not None})


@contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except _MENDABLE as error:
        typer.echo(f"noroshi: {error}", err=True)
        raise typer.Exit(CANNOT) from error


def with_back(data: Path | None, work: Callable[[Back], Awaitable[T]]) -> T:
    """Does the work on the store, whichever it is; an error that a person can mend is one line."""

    async def opened() -> T:
        async with opened_back(gathered_settings(data=data)) as back:
            return await work(back)

    with one_line_errors():
        return asyncio.run(opened())
