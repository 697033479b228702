"""`noroshi dead-letters`: what ended without success, listed, shown, sent again or put aside."""

from typing import Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from noroshi.client import Noroshi
from noroshi.client.answers import DeadLetter, Discarded, Replayed
from noroshi.entrypoints.cli.connecting import ask, confirm, first
from noroshi.entrypoints.cli.options import FolderOption, JsonOption, LimitOption, YesOption
from noroshi.entrypoints.cli.showing import console, moment, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="What ended without success.")

NumberArgument = Annotated[int, typer.Argument(help="As `dead-letters list` shows it.", metavar="NUMBER")]
SomeNumber = Annotated[int | None, typer.Argument(help="Only this one.", metavar="[NUMBER]")]
Channel = Annotated[str | None, typer.Option(help="Only of this channel.")]
Code = Annotated[str | None, typer.Option(help="Only with this code.")]
Category = Annotated[str | None, typer.Option(help="Only of this category.")]
User = Annotated[str | None, typer.Option(help="Only to this person.")]
BatchOption = Annotated[str | None, typer.Option(help="Only of this batch.")]
Every = Annotated[bool, typer.Option("--all", help="All there are.")]


@app.command("list")
def list_dead_letters(
    channel: Channel = None,
    code: Code = None,
    category: Category = None,
    user: User = None,
    batch: BatchOption = None,
    limit: LimitOption = 50,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show dead letters, newest first."""
    matching = _filter(channel, code, category, user, batch)
    found: list[DeadLetter] = ask(
        folder,
        lambda noroshi: first(
            limit, lambda cursor, count: noroshi.dead_letters(cursor=cursor, limit=count, **matching)
        ),
    )
    if json:
        print_json(found)
        return
    rows = [
        (one.dead_letter_id, one.at, one.user_id, one.channel, one.category, one.code, one.error, one.tries)
        for one in found
    ]
    columns = ("number", "at", "user", "channel", "category", "code", "error", "tries")
    print_table(columns, rows, empty="There are no dead letters.")


@app.command()
def show(number: NumberArgument, folder: FolderOption = None, json: JsonOption = False) -> None:
    """Show a dead letter with its trail."""
    letter = ask(folder, lambda noroshi: noroshi.dead_letter(number))
    if json:
        print_json(letter)
        return
    title = f"dead letter {number}: {letter.user_id} on {letter.channel}, {letter.code} after {letter.tries} tries"
    tree = Tree(Text(title, "bold"))
    for entry in letter.trail:
        tree.add(Text.assemble((moment(entry.at), "dim"), "  ", entry.sentence or entry.kind))
    if letter.error:
        tree.add(Text(f"The provider said: {letter.error}", "red"))
    console().print(tree)
    console().print(f"noroshi dead-letters replay {number}", style="bold")


@app.command()
def replay(
    number: SomeNumber = None,
    channel: Channel = None,
    code: Code = None,
    category: Category = None,
    user: User = None,
    batch: BatchOption = None,
    every: Every = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Send one again, or all that match."""
    matching = _filter(channel, code, category, user, batch)
    _check(number, matching, every=every)

    async def work(noroshi: Noroshi) -> Replayed:
        if number is not None:
            return await noroshi.replay(number)
        return await noroshi.replay_all(**matching, all=every or None)

    done = ask(folder, work)
    if json:
        print_json(done)
        return
    left = f"; {done.untouched} have nothing to be sent to" if done.untouched else ""
    console().print(f"{done.replayed} sent again{left}.")


@app.command()
def discard(
    number: SomeNumber = None,
    channel: Channel = None,
    code: Code = None,
    category: Category = None,
    user: User = None,
    batch: BatchOption = None,
    every: Every = False,
    yes: YesOption = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Put one aside for good, or all that match."""
    matching = _filter(channel, code, category, user, batch)
    _check(number, matching, every=every)
    confirm("Discard for good? They cannot be sent again.", is_sure=yes)

    async def work(noroshi: Noroshi) -> Discarded:
        if number is not None:
            await noroshi.discard(number)
            return Discarded(1, is_complete=True)
        return await noroshi.discard_all(**matching, all=every or None)

    done = ask(folder, work)
    if json:
        print_json(done)
    else:
        console().print(f"{done.discarded} discarded.")


def _filter(
    channel: str | None, code: str | None, category: str | None, user: str | None, batch: str | None
) -> dict[str, str | None]:
    return {"channel": channel, "code": code, "category": category, "user_id": user, "batch_id": batch}


def _check(number: int | None, matching: dict[str, str | None], *, every: bool) -> None:
    named = [number is not None, any(value is not None for value in matching.values()), every]
    if named.count(True) != 1:
        raise typer.BadParameter("say a NUMBER, or which by --channel, --code, --category, --user, --batch, or --all")
