"""`noroshi send`: people, a template and data in; what became of each, watched as it happens, out."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from noroshi.client import Noroshi
from noroshi.client.answers import BatchStatus, Notification
from noroshi.client.following import is_moving
from noroshi.domain.requests import AcceptedAnswer
from noroshi.entrypoints.cli.connecting import ask, first
from noroshi.entrypoints.cli.explaining import why
from noroshi.entrypoints.cli.options import FAILED, NOT_NOW, FolderOption, JsonOption
from noroshi.entrypoints.cli.reading import read_attachment, read_data, read_lines, read_moment
from noroshi.entrypoints.cli.showing import console, print_json, print_table, status_text

_SHOWN = 50


class Sending(Struct, frozen=True):
    """What is known when the command ends; `status` is None if nobody waited."""

    accepted: AcceptedAnswer
    status: BatchStatus | None
    notifications: list[Notification]


def send(
    template: Annotated[str, typer.Option("--template", "-t", help="Which template.")],
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="A person's id; may be given often.")] = None,
    users_from: Annotated[
        Path | None, typer.Option(help="A file with one id a line; `-` is standard input.", allow_dash=True)
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="name=text, name:=JSON, a JSON object or @file; may be given often."),
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option("--channel", "-c", help="Only this channel; may be given often.")
    ] = None,
    category: Annotated[str | None, typer.Option(help="transaction, marketing, social, ...")] = None,
    priority: Annotated[str | None, typer.Option(help="critical, high, normal or low.")] = None,
    at: Annotated[str | None, typer.Option(help="When to send: 2026-03-02T09:00+09:00.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="When it is too late to send.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key within a day sends nothing a second time.")
    ] = None,
    attach: Annotated[
        list[Path] | None, typer.Option(help="A file that goes with the e-mail; may be given often.")
    ] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to watch what becomes of it; 0: none.")] = 30,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Send a notification, and watch what becomes of it."""
    user_ids = [*(user or ()), *(read_lines(users_from) if users_from is not None else ())]
    if not user_ids:
        raise typer.BadParameter("name somebody: --user ID, or --users-from FILE")
    request: dict[str, Any] = {
        "data": read_data(fields or ()),
        "channels": channel or None,
        "category": category,
        "priority": priority,
        "scheduled_at": read_moment(at, "--at"),
        "expires_at": read_moment(expires_at, "--expires-at"),
        "idempotency_key": idempotency_key,
        "attachments": [read_attachment(path) for path in attach or ()],
    }
    patience = timedelta(seconds=wait)

    async def work(noroshi: Noroshi) -> Sending:
        accepted = await noroshi.send(user_ids, template, **request)
        status = await _watch(noroshi, accepted, patience, is_quiet=json) if patience else None
        found = await first(_SHOWN, lambda cursor, limit: _page(noroshi, accepted.batch_id, cursor, limit))
        return Sending(accepted, status, found)

    sending = ask(folder, work)
    if json:
        print_json(sending)
    else:
        _print(sending)
    raise typer.Exit(_code(sending))


async def _page(noroshi: Noroshi, batch_id: str, cursor: str | None, limit: int) -> Any:
    return await noroshi.batch(batch_id, cursor=cursor, limit=limit)


async def _watch(noroshi: Noroshi, accepted: AcceptedAnswer, patience: timedelta, *, is_quiet: bool) -> BatchStatus:
    """A bar while it moves; a batch that is scheduled for later is looked at once."""
    screen = console(is_for_errors=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    status = await noroshi.batch_status(accepted.batch_id)
    if accepted.status == "scheduled":
        return status
    with Progress(*columns, console=screen, disable=is_quiet or not screen.is_terminal, transient=True) as progress:
        task = progress.add_task("sending", total=status.total)
        async for status in noroshi.follow(accepted.batch_id, patience):
            progress.update(task, total=status.total, completed=status.total - status.pending)
    return status


def _print(sending: Sending) -> None:
    accepted = sending.accepted
    rows = [
        (one.user_id, one.channel, status_text(one.status), why(one), Text(one.notification_id, "dim"))
        for one in sending.notifications
    ]
    status, seen = sending.status, {one.user_id for one in sending.notifications}
    if status is not None and status.total > len(rows):
        rows.append(("...", "", Text(""), f"and {status.total - len(rows)} more", Text("")))
    rows += [
        (one.user_id, "", Text("not told", "yellow"), one.code, Text(""))
        for one in accepted.rejections
        if one.user_id not in seen
    ]
    columns = ("user", "channel", "status", "why", "notification")
    print_table(columns, rows, empty="Nothing is decided yet.", whole=("status", "notification"))
    console().print(f"noroshi explain {accepted.batch_id}", style="bold")


def _code(sending: Sending) -> int:
    status = sending.status
    if status is None:
        return 0
    if status.failed:
        return FAILED
    return NOT_NOW if is_moving(status) and sending.accepted.status != "scheduled" else 0
