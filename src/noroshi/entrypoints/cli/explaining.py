"""`noroshi explain`: a batch, a notification or a person in; why each did or did not hear, in sentences, out."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from noroshi.client import Noroshi, NoroshiError
from noroshi.client.answers import Batch, Notification, TrailEntry
from noroshi.domain.ids import NotificationId, batch_of, read
from noroshi.domain.ids import show as show_id
from noroshi.entrypoints.cli.connecting import ask, first
from noroshi.entrypoints.cli.options import FolderOption, JsonOption, LimitOption
from noroshi.entrypoints.cli.showing import console, moment, print_json, shown, status_text

_NOT_REPEATED = ("code", "error", "due_at", "started_at", "message_id", "account", "endpoint")
"""Details that are said in a way of their own, or that only machines need."""

_FAILURES = ("failed", "dead_lettered", "outcome_unknown")


def explain(
    what: Annotated[str, typer.Argument(help="The id of a batch, of a notification, or of a person.")],
    limit: LimitOption = 20,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Say why each person did or did not hear."""

    async def work(noroshi: Noroshi) -> Batch | Notification | list[Notification]:
        raw = read(what)
        if raw is not None:
            try:
                return await _by_id(noroshi, raw, limit)
            except NoroshiError as error:
                if error.code != "not_found":
                    raise
        return await first(limit, lambda cursor, count: noroshi.history(what, cursor=cursor, limit=count))

    found = ask(folder, work)
    if json:
        print_json(found)
    elif isinstance(found, Batch):
        console().print(_batch_tree(found))
    elif isinstance(found, Notification):
        console().print(_notification_tree(found))
    else:
        _print_history(what, found)


async def _by_id(noroshi: Noroshi, raw: bytes, limit: int) -> Batch | Notification:
    """Both kinds of id look alike; a batch's ends in zeros."""
    batch_id = batch_of(NotificationId(raw))
    if raw == bytes(batch_id):
        return await noroshi.batch(show_id(batch_id), limit=min(limit, 100))
    return await noroshi.notification(show_id(batch_id), show_id(raw))


def why(notification: Notification) -> str:
    """The end of the trail, in a sentence."""
    return _sentence(notification.trail[-1]) if notification.trail else ""


def _print_history(user_id: str, found: Sequence[Notification]) -> None:
    if not found:
        console().print(f"{user_id} was told nothing yet.", markup=False)
        return
    tree = Tree(Text.assemble((user_id, "bold"), f": the latest {len(found)}"))
    for notification in found:
        _grow(tree, notification)
    console().print(tree)


def _batch_tree(batch: Batch) -> Any:
    tree = Tree(Text.assemble("batch ", (batch.batch_id, "bold"), f" from template {batch.template_id}"))
    for notification in batch.items:
        _grow(tree, notification)
    if batch.next_cursor is not None:
        tree.add(Text("... and more: --limit shows them", "dim"))
    head = [
        f"accepted {moment(batch.created_at)} from {batch.created_by}; {batch.category}, {batch.priority}",
        f"{batch.total_recipients} named, {batch.accepted} told, {batch.rejected} not"
        + (f" ({shown(batch.reasons)})" if batch.reasons else "")
        + (f", {batch.undecided} undecided" if batch.undecided else ""),
    ]
    if batch.attachments:
        head.append("attached: " + ", ".join(f"{one.filename} ({one.size:,} bytes)" for one in batch.attachments))
    if batch.scheduled_at is not None:
        head.append(f"scheduled for {moment(batch.scheduled_at)}")
    if batch.cancelled_at is not None:
        head.append(f"withdrawn {moment(batch.cancelled_at)}")
    return Group(tree, *(Text(line, "dim") for line in head))


def _notification_tree(notification: Notification) -> Tree:
    tree = Tree(Text.assemble("notification ", (notification.notification_id, "bold")))
    _grow(tree, notification)
    return tree


def _grow(tree: Tree, notification: Notification) -> None:
    one = notification
    title = Text.assemble((one.user_id, "bold"), f" on {one.channel}: ", status_text(one.status))
    if one.reason is not None:
        title.append(f" ({one.reason})")
    if one.template_id is not None:
        title.append(f"  {one.template_id} v{one.template_version} {one.template_locale}", "dim")
    branch = tree.add(title)
    for entry in one.trail:
        branch.add(Text.assemble((moment(entry.at), "dim"), "  ", _sentence(entry)))
    if one.due_at is not None and one.status != "SENT":
        branch.add(Text.assemble((moment(one.due_at), "cyan"), "  It is due then."))


def _sentence(entry: TrailEntry) -> str:
    """What happened, with what the provider said and what the sentence leaves out."""
    said = entry.sentence or entry.kind
    words = [str(entry.detail[name]) for name in ("code", "error") if entry.detail.get(name)]
    if entry.kind in _FAILURES and words:
        said += f" The provider said: {', '.join(words)}."
    rest = {name: value for name, value in entry.detail.items() if name not in _NOT_REPEATED and value is not None}
    return f"{said} ({shown(rest)})" if rest else said
