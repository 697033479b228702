"""The inbox over the API: what a person was told in-app out; what the person has read and put away in."""

from functools import lru_cache
from typing import Annotated, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from noroshi.domain.ids import show
from noroshi.domain.inbox import InboxContent, InboxEntry, InboxFilter, InboxHead, Marked, Owner
from noroshi.domain.instants import iso
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import IdText, Moment, when

READ_AT_ONCE = 500

EntryNumber = Annotated[int, Meta(ge=0, le=2**63 - 1, description="An `entry_id`.")]


class InboxQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    """`archived`: those that were put away instead of those that were not; `unread`: only these."""

    archived: bool = False
    unread: bool = False


class UpToQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`up_to`: what came after that entry was not seen, and stays unread."""

    up_to: EntryNumber | UnsetType = UNSET


class EntryItem(Struct, frozen=True):
    """One notification in an inbox. The `entry_id`s of one person rise without a gap. The content is plain text."""

    entry_id: int
    notification_id: IdText
    category: str
    content: InboxContent
    created_at: Moment
    read_at: Moment | None
    archived_at: Moment | None


class InboxState(Struct, frozen=True):
    """`unread` counts what is neither read nor archived; `changes` rises when entries that were there before were
    read, archived or forgotten."""

    unread: int
    last_entry_id: int
    changes: int


class MarkedAnswer(Struct, frozen=True):
    entry_id: int
    read_at: Moment | None
    archived_at: Moment | None
    unread: int


class ReadAllAnswer(Struct, frozen=True):
    """`read` counts what this call has read."""

    read: int
    unread: int


async def list_inbox(desk: Desk, call: Call[InboxQuery, None]) -> Page[EntryItem]:
    query = call.query
    before = place_in(query.cursor, RowNumber)
    await _head(desk, call.owner)
    matching = InboxFilter(is_archived=query.archived, is_unread=query.unread)
    entries = await desk.inbox.page(call.owner, matching, before, query.limit + 1)
    return page_of(entries, query, lambda entry: entry.number, show_entry)


async def show_unread_count(desk: Desk, call: Call[NoQuery, None]) -> InboxState:
    return show_state(await _head(desk, call.owner))


async def read_entry(desk: Desk, call: Call[NoQuery, None]) -> MarkedAnswer:
    return await _mark(desk, call, is_archived=False)


async def archive_entry(desk: Desk, call: Call[NoQuery, None]) -> MarkedAnswer:
    return await _mark(desk, call, is_archived=True)


async def read_all(desk: Desk, call: Call[UpToQuery, None]) -> ReadAllAnswer:
    owner = call.owner
    head = await _head(desk, owner)
    up_to = head.last_number if call.query.up_to is UNSET else call.query.up_to
    total = page = await desk.inbox.read_all(owner, up_to, READ_AT_ONCE)
    while page == READ_AT_ONCE:
        page = await desk.inbox.read_all(owner, up_to, READ_AT_ONCE)
        total += page
    if total:
        head = await _head(desk, owner)
        desk.inbox_changed(owner, head)
    return ReadAllAnswer(total, head.unread)


_iso = lru_cache(maxsize=128)(iso)
"""What was settled at once came into its inboxes at one and the same moment."""


def show_entry(entry: InboxEntry) -> EntryItem:
    return EntryItem(
        entry_id=entry.number,
        notification_id=show(entry.notification_id),
        category=entry.category,
        content=cast(InboxContent, msgspec.Raw(entry.content)),  # it was written as JSON, and is not taken apart
        created_at=_iso(entry.at),
        read_at=when(entry.read_at),
        archived_at=when(entry.archived_at),
    )


def show_state(head: InboxHead) -> InboxState:
    return InboxState(head.unread, head.last_number, head.changes)


async def _head(desk: Desk, owner: Owner) -> InboxHead:
    head = await desk.inbox.head(owner)
    if head is None:
        raise missing("user")
    return head


async def _mark(desk: Desk, call: Call[NoQuery, None], *, is_archived: bool) -> MarkedAnswer:
    number = call.number("entry_id", "entry")
    marked: Marked | None = await desk.inbox.mark(call.owner, number, is_archived=is_archived)
    if marked is None:
        raise missing("entry")
    desk.inbox_changed(call.owner, marked.head)
    return MarkedAnswer(marked.number, when(marked.read_at), when(marked.archived_at), marked.head.unread)
