"""Connecting: what a command wants to ask in; the server's answer, or an error that says what to do, out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import typer

from noroshi.client import Noroshi, NoroshiError
from noroshi.client.answers import Page
from noroshi.client.calls import each
from noroshi.client.errors import UNREACHABLE
from noroshi.entrypoints.cli.options import CANNOT, NOT_NOW, gathered_settings
from noroshi.entrypoints.cli.remembered import Remembered, recall
from noroshi.entrypoints.cli.showing import console
from noroshi.settings import SettingsError

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8000"
_COME_BACK = frozenset({429, 503})
_PAGE = 100

_TODO: dict[str, str] = {
    UNREACHABLE: "Start it with `make run` or `noroshi serve`, or set NOROSHI_URL to where it is.",
    "unauthorized": "Set NOROSHI_KEY to a live key; on the server, "
    "`noroshi keys create --name me --scopes send,read,admin` makes one.",
    "forbidden": "Use a key with that scope; on the server, `noroshi keys create` makes one.",
}
"""What to do, said for the command line, where the API's own advice is for callers."""


def ask(data: Path | None, work: Callable[[Noroshi], Awaitable[T]]) -> T:
    """Does the work with a connection to the server; an error is two lines and an exit code."""
    try:
        place = _place(data)
        return asyncio.run(_asked(place, work))
    except NoroshiError as error:
        _tell(error.detail, _TODO.get(error.code, error.todo), error.field)
        is_passing = error.code == UNREACHABLE or error.status in _COME_BACK
        raise typer.Exit(NOT_NOW if is_passing else CANNOT) from error
    except SettingsError as error:
        _tell(f"{error}.", None, None)
        raise typer.Exit(CANNOT) from error


async def _asked(place: Remembered, work: Callable[[Noroshi], Awaitable[T]]) -> T:
    async with Noroshi.connect(place.url, place.key) as noroshi:
        return await work(noroshi)


def _place(data: Path | None) -> Remembered:
    """The key that is kept belongs to the server it was kept for: no other is shown it."""
    settings = gathered_settings(data=data)
    known = recall(settings.data)
    url = settings.url or (known.url if known is not None else DEFAULT_URL)
    kept = known.key if known is not None and known.url.rstrip("/") == url.rstrip("/") else None
    key = settings.key or kept
    if key is None:
        raise NoroshiError("unauthorized", f"No key: none is set, and none is kept in {settings.data} for {url}.", "")
    return Remembered(url, key)


def _tell(what: str, todo: str | None, field: str | None) -> None:
    errors = console(is_for_errors=True)
    where = f"{field}: " if field else ""
    errors.print(f"noroshi: {where}{what}", style="red", markup=False, soft_wrap=True)
    if todo:
        errors.print(f"-> {todo}", markup=False, soft_wrap=True)


async def first(limit: int, page: Callable[[str | None, int], Awaitable[Page[T]]]) -> list[T]:
    """Up to `limit` items of a list, over as many pages as that takes."""
    found: list[T] = []
    items: AsyncIterator[T] = each(lambda cursor: page(cursor, min(limit, _PAGE)))
    async for item in items:
        found.append(item)
        if len(found) == limit:
            break
    return found


def confirm(question: str, *, is_sure: bool) -> None:
    """Asks a person; a script must have said --yes."""
    if not is_sure and not typer.confirm(question):
        raise typer.Exit(CANNOT)
