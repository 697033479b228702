"""The inbox: what a person was told in-app, numbered without a gap, and what the person has done with it."""

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from noroshi.domain.ids import NotificationId, TenantId
from noroshi.domain.instants import Instant

LONGEST_CONTENT = 16_384
"""Bytes of a content's JSON."""


class InboxContent(Struct, frozen=True, kw_only=True):
    """What a person sees: plain text. `url` is where a click leads, `data` whatever the product wants to find there."""

    title: str | None = None
    body: str
    url: str | None = None
    data: dict[str, Any] = {}


encode_content = msgspec.json.Encoder().encode


class Draft(Struct, frozen=True, array_like=True):
    """An entry that has no number yet. `content` is the JSON text of an InboxContent."""

    user_id: str
    category: str
    content: str


class InboxEntry(Struct, frozen=True, array_like=True):
    """A kept entry. Whoever has seen `number` has seen every lower one of that person."""

    number: int
    notification_id: NotificationId
    category: str
    content: str
    at: Instant
    read_at: Instant | None = None
    archived_at: Instant | None = None


class InboxHead(Struct, frozen=True, array_like=True):
    """`unread` counts what is neither read nor archived; `changes` rises with whatever is done to entries that were
    there before."""

    last_number: int = 0
    unread: int = 0
    changes: int = 0


EMPTY = InboxHead()
"""The inbox of a person who was never told anything."""


class Owner(NamedTuple):
    """Whose inbox it is."""

    tenant: TenantId
    user_id: str


class Filled(Struct, frozen=True, array_like=True):
    """What a commit put into one inbox: these notifications, of which the last has the number `head.last_number`."""

    owner: Owner
    head: InboxHead
    notification_ids: tuple[NotificationId, ...]


class News(Struct, frozen=True, array_like=True):
    """How an inbox stands, and entries of it in the order of their numbers."""

    owner: Owner
    head: InboxHead
    entries: tuple[InboxEntry, ...] = ()


class Marked(Struct, frozen=True, array_like=True):
    """An entry that was read or archived, and how the inbox stands now."""

    number: int
    read_at: Instant | None
    archived_at: Instant | None
    head: InboxHead


class InboxFilter(Struct, frozen=True):
    """Without `is_archived` both kinds are meant."""

    is_archived: bool | None = False
    is_unread: bool = False
