"""`noroshi pause` and `noroshi resume`: what to stop, or to go on with, in; what is stopped now out."""

from enum import StrEnum
from typing import Annotated

import typer

from noroshi.client import Noroshi, NoroshiError
from noroshi.client.answers import Pause
from noroshi.client.calls import each
from noroshi.entrypoints.cli.connecting import ask
from noroshi.entrypoints.cli.options import FolderOption, JsonOption
from noroshi.entrypoints.cli.showing import console, print_json, print_table


class Stopped(StrEnum):
    ACCOUNT = "account"
    CHANNEL = "channel"
    CATEGORY = "category"
    EVERYTHING = "everything"


NameArgument = Annotated[str | None, typer.Argument(help="Which one: email, marketing, ...")]


def pause(
    kind: Annotated[Stopped | None, typer.Argument(help="What to stop; left out: shows what is stopped.")] = None,
    name: NameArgument = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Stop sending on a channel, through an account, of a category, or everything. Nothing is lost meanwhile."""

    async def work(noroshi: Noroshi) -> list[Pause]:
        if kind is not None:
            await noroshi.pause(kind, name)
        return await _pauses(noroshi)

    _show(ask(folder, work), json=json)


def resume(
    kind: Annotated[Stopped | None, typer.Argument(help="What to go on with.")] = None,
    name: NameArgument = None,
    every: Annotated[bool, typer.Option("--all", help="End every pause.")] = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Go on with what was paused."""
    if (kind is None) != every:
        raise typer.BadParameter("say what to resume as you paused it, or --all")

    async def work(noroshi: Noroshi) -> list[Pause]:
        meant = [one for one in await _pauses(noroshi) if every or (one.kind, one.name) == (kind, name)]
        if not meant and not every:
            what = kind if name is None else f"{kind} {name}"
            raise NoroshiError("not_found", f"{what} is not paused.", "`noroshi pause` shows what is.")
        for one in meant:
            await noroshi.resume(one.pause_id)
        return await _pauses(noroshi)

    _show(ask(folder, work), json=json)


async def _pauses(noroshi: Noroshi) -> list[Pause]:
    return [one async for one in each(lambda cursor: noroshi.pauses(cursor=cursor))]


def _show(pauses: list[Pause], *, json: bool) -> None:
    if json:
        print_json(pauses)
        return
    rows = [(one.kind, one.name, one.created_at, one.created_by) for one in pauses]
    print_table(("paused", "name", "since", "by"), rows, empty="Nothing is paused.")
    if pauses:
        console().print("`noroshi resume KIND NAME` goes on; what was accepted meanwhile is sent then.")
