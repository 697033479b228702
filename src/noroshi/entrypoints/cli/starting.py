"""How a command on the store begins: options in, an opened store out, and each error a person can mend as one line."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from noroshi.bootstrap.back import Back, opened_back
from noroshi.bootstrap.errors import START_ERRORS
from noroshi.care.errors import CareError
from noroshi.entrypoints.cli.options import CANNOT, gathered_settings
from noroshi.settings import SettingsError

T = TypeVar("T")

_MENDABLE: tuple[type[Exception], ...] = (CareError, SettingsError, *START_ERRORS)


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
