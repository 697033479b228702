"""Backups, restores and moves on the command line."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from noroshi.care.backup import back_up
from noroshi.care.copying import Copied, Told
from noroshi.care.move import give_up as give_up_move
from noroshi.care.move import move as move_store
from noroshi.care.restore import Review
from noroshi.care.restore import restore as restore_backup
from noroshi.care.restore import resume as resume_restored
from noroshi.care.restore import review as review_restored
from noroshi.domain.instants import Instant, NaiveTimeError, at, iso, moment_of
from noroshi.entrypoints.cli.options import DataOption, JsonOption, gathered_settings
from noroshi.entrypoints.cli.showing import moment, print_facts
from noroshi.entrypoints.cli.starting import one_line_errors
from noroshi.settings import SettingsError

T = TypeVar("T")

_WIDTH = 100


@contextmanager
def _watched(title: str, *, is_quiet: bool) -> Iterator[Told]:
    """A progress bar on the terminal, beside what is printed."""
    console = Console(stderr=True)
    columns = (TextColumn(f"{title} {{task.description}}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=is_quiet or not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda table, done, whole: progress.update(task, description=table, completed=done, total=whole)


def _run(title: str, work: Callable[[Told], Coroutine[Any, Any, T]], *, is_quiet: bool) -> T:
    with one_line_errors(), _watched(title, is_quiet=is_quiet) as tell:
        return asyncio.run(work(tell))


def _say(answer: Any) -> None:
    typer.echo(msgspec.json.encode(answer, enc_hook=str).decode())


def backup(
    to: Annotated[Path, typer.Option(help="The file to write; it must not be there yet.", dir_okay=False)],
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Also copy DIR/secrets, into FILE.secrets (0600).")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Write the whole store, as it is at this moment, into one file. The server may run."""
    with one_line_errors():
        settings = gathered_settings(data=data)
    done = _run("backing up", lambda tell: back_up(settings, to, tell, with_secrets=with_secrets), is_quiet=json)
    manifest = done.manifest
    if json:
        tables = {kept.table.name: kept.rows for kept in manifest.tables}
        secrets = None if done.secrets is None else str(done.secrets)
        _say(
            {
                "file": str(done.path),
                "bytes": done.bytes,
                "taken_at": iso(manifest.taken_at),
                "schema": manifest.schema,
                "rows": manifest.rows,
                "tables": tables,
                "secrets": secrets,
            }
        )
        return
    keys = "not in it: keep a copy of them apart; without them no address can be read"
    print_facts(
        {
            "backup": f"{done.path} ({done.bytes / 1e6:.1f} MB), read back and found whole",
            "holds": f"{manifest.rows:,} rows in {len(manifest.tables)} tables, schema {manifest.schema}",
            "as of": moment(moment_of(manifest.taken_at)),
            "keys": keys if done.secrets is None else f"{done.secrets}: keep the two files apart",
        }
    )


def restore(
    source: Annotated[
        Path | None, typer.Option("--from", help="The backup to put into an empty store.", dir_okay=False)
    ] = None,
    review: Annotated[bool, typer.Option("--review", help="Show what may have been sent since the backup.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="End restored mode: sending goes on.")] = False,
    discard_due: Annotated[
        bool, typer.Option("--discard-due", help="With --resume: withdraw what may have been sent already.")
    ] = False,
    due_before: Annotated[
        str | None,
        typer.Option(help="With --discard-due: when the old system stopped; left out: when the backup was taken."),
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Put a backup into an empty store, which then sends nothing until you have decided."""
    if [source is not None, review, resume].count(True) != 1:
        raise typer.BadParameter("say one of --from FILE, --review, --resume")
    if (discard_due and not resume) or (due_before is not None and not discard_due):
        raise typer.BadParameter("--due-before belongs to --discard-due, and that to --resume")
    if source is not None:
        _restore(source, data, json)
    elif review:
        _review(data, json)
    else:
        _resume(data, json, discard_due, due_before)


def _restore(source: Path, data: Path | None, json: bool) -> None:
    with one_line_errors():
        settings = gathered_settings(data=data)
    done = _run("restoring", lambda tell: restore_backup(settings, source, tell), is_quiet=json)
    if json:
        _say({"taken_at": iso(done.restored.taken_at), "tables": {one.table: one.target for one in done.copied}})
        return
    _print_counts(done.copied, "backup", "store")
    typer.echo(
        f"Restored as of {iso(done.restored.taken_at)}. Everything is paused: nothing is sent by itself.\n"
        "Next: `noroshi restore --review`, then `noroshi restore --resume`."
    )


def _review(data: Path | None, json: bool) -> None:
    with one_line_errors():
        found = asyncio.run(review_restored(gathered_settings(data=data)))
    if json:
        _say(
            {
                "taken_at": iso(found.restored.taken_at),
                "restored_at": iso(found.restored.restored_at),
                "is_paused": found.is_paused,
                **_doubts_as_json(found),
            }
        )
        return
    doubts = found.doubts
    table = Table("unfinished in the backup", "deliveries", "held", "undecided batches", "sent since?", box=None)
    for name, row, guess in (
        ("being sent when it was taken", (doubts.claimed, "", ""), "nobody knows"),
        ("enqueued, not yet taken", ("", "", f"{doubts.requests} requests"), "almost certainly"),
        ("due by then", doubts.due_by_backup, "almost certainly"),
        ("due until the restore", doubts.due_by_restore, "if the old system still ran"),
        ("due later", doubts.due_later, "no"),
    ):
        table.add_row(name, *(str(count) for count in row), guess)
    typer.echo(f"backup of {iso(found.restored.taken_at)}, restored {iso(found.restored.restored_at)}")
    Console(width=_WIDTH).print(table)
    typer.echo(
        "`--resume` sends them all. `--resume --discard-due` withdraws the first three rows; with\n"
        "`--due-before TIME`, the time the old system stopped, also what was due until then.\n"
        "Give providers' own reports a look first."
    )
    if not found.is_paused:
        typer.echo("The pause was removed: they are being sent.")


def _doubts_as_json(found: Review) -> dict[str, Any]:
    return {
        name: value if isinstance(value, int) else value._asdict() for name, value in found.doubts._asdict().items()
    }


def _resume(data: Path | None, json: bool, discard_due: bool, due_before: str | None) -> None:
    with one_line_errors():
        settings = gathered_settings(data=data)
        stopped_at = _read_time(due_before)

        async def work() -> int:
            before = stopped_at
            if discard_due and before is None:
                before = (await review_restored(settings)).restored.taken_at
            return await resume_restored(settings, before)

        withdrawn = asyncio.run(work())
    if json:
        _say({"withdrawn": withdrawn})
    else:
        typer.echo(f"Resumed; {withdrawn} withdrawn. Running servers notice within seconds.")


def _read_time(text: str | None) -> Instant | None:
    if text is None:
        return None
    try:
        return at(datetime.fromisoformat(text))
    except (ValueError, NaiveTimeError) as error:
        raise SettingsError(
            f"--due-before must be a time with its offset, 2026-03-02T09:00+09:00, not {text}"
        ) from error


def move(
    source: Annotated[str, typer.Option("--from", help="sqlite:///path/to/noroshi.db")],
    to: Annotated[str, typer.Option(help="postgresql://user:password@host:port/database")] = "",
    give_up: Annotated[
        bool, typer.Option("--give-up", help="Serve the file again; what was moved is not used.")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Move a store from SQLite to PostgreSQL. The server must be stopped; run it again if it was interrupted."""
    with one_line_errors():
        old = gathered_settings(data=data, store=source)
        if give_up:
            asyncio.run(give_up_move(old))
            typer.echo("Given up: the file may be served again.")
            return
        new = replace(old, store=gathered_settings(data=data, store=to).store)
    copied = _run("moving", lambda tell: move_store(old, new, tell), is_quiet=json)
    if json:
        _say({one.table: {"from": one.source, "to": one.target} for one in copied})
        return
    if copied:
        _print_counts(copied, "SQLite", "PostgreSQL")
    typer.echo(
        "Moved; every count is equal. The file stays as it is and is not served any more.\n"
        f"Next: set NOROSHI_STORE to the database and start the server; its keys stay in {old.data}."
    )


def _print_counts(copied: list[Copied], source: str, target: str) -> None:
    table = Table("table", source, target, box=None)
    for one in copied:
        table.add_row(one.table, str(one.source), str(one.target))
    Console().print(table)
