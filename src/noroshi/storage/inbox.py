"""StoredInbox: drafts in, numbered and sealed entries out, and what people do with them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from noroshi.domain.addressing import LedgerRow
from noroshi.domain.deliveries import Settlement
from noroshi.domain.ids import NotificationId, TenantId, new_batch_id
from noroshi.domain.inbox import EMPTY, Filled, InboxEntry, InboxFilter, InboxHead, Marked, News, Owner
from noroshi.domain.instants import Instant
from noroshi.ports.sealer import Sealer
from noroshi.storage.addressing import write_ledger
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns, as_instant

_FIELD = "inbox"
_FAR = (1 << 63) - 1
_FORGOTTEN_AT_ONCE = 10


async def lock_people(turn: Turn, owners: Iterable[Owner]) -> dict[Owner, bytes]:
    """The data keys of these people, who cannot be removed before the commit; those who are gone are left out."""
    rows = await turn.rows_for("keys_of_people", sorted(set(owners)))
    return {Owner(tenant, user_id): data_key for tenant, user_id, data_key in rows}


async def fill_inboxes(
    turn: Turn, sealer: Sealer, keys: dict[Owner, bytes], drafts: Sequence[tuple[Owner, Settlement]]
) -> list[Filled]:
    """Numbers the drafts of each person in the order given, and keeps them. Every number is taken and used in this
    commit, while the row that counts them is ours."""
    counts = Counter(owner for owner, _ in drafts)
    heads: dict[Owner, InboxHead] = {}
    following: dict[Owner, int] = {}
    for tenant, user_id, *head in await turn.run_many("fill_inbox", [(*o, counts[o]) for o in sorted(counts)]):
        owner = Owner(tenant, user_id)
        heads[owner] = InboxHead(*head)
        following[owner] = heads[owner].last_number - counts[owner] + 1
    rows: list[Row] = []
    filled: dict[Owner, list[NotificationId]] = {owner: [] for owner in heads}
    for owner, settlement in drafts:
        draft, raw = settlement.draft, settlement.key.notification_id
        if draft is None:
            raise ValueError("delivered, and yet nothing to keep")
        sealed = sealer.seal(keys[owner], *owner, _FIELD, draft.content)
        rows.append((*owner, following[owner], raw, draft.category, sealed, settlement.at))
        filled[owner].append(raw)
        following[owner] += 1
    await turn.run_many("put_entry", rows)
    return [Filled(owner, heads[owner], tuple(ids)) for owner, ids in filled.items()]


async def forget_inbox(turn: Turn, tenant: TenantId, user_id: str) -> None:
    """Of a person who is removed: whoever fills the inbox meanwhile waits, and then finds nobody."""
    await turn.run("count_emptied", tenant, user_id)
    await turn.run("empty_inbox", tenant, user_id)


class StoredInbox:
    """Implements ports/inbox.py."""

    def __init__(self, turns: Turns, readings: Readings, sealer: Sealer) -> None:
        self._turns = turns
        self._readings = readings
        self._sealer = sealer

    async def head(self, owner: Owner) -> InboxHead | None:
        row = await self._readings.read(lambda reader: reader.one("head_of_inbox", *owner))
        return None if row is None else _read_head(*row)

    async def page(self, owner: Owner, matching: InboxFilter, before: int | None, limit: int) -> list[InboxEntry]:
        last = _FAR if before is None else before
        asked = (*owner, last, matching.is_archived, matching.is_unread, limit)
        rows = await self._readings.read(lambda reader: reader.rows("page_of_inbox", *asked))
        return [self._read_entry(owner, *row) for row in rows]

    async def after(self, owner: Owner, number: int, limit: int) -> list[InboxEntry]:
        rows = await self._readings.read(lambda reader: reader.rows("entries_after", *owner, number, limit))
        return [self._read_entry(owner, *row) for row in rows]

    async def news(self, asked: Sequence[tuple[Owner, int]], limit: int) -> list[News]:
        return await self._readings.read(lambda reader: self._read_news(reader, dict(asked), limit))

    async def _read_news(self, reader: Statements, asked: dict[Owner, int], limit: int) -> list[News]:
        heads: dict[Owner, InboxHead] = {}
        keys: dict[Owner, bytes] = {}
        for tenant, user_id, data_key, *head in await reader.rows_for("heads_of_inboxes", list(asked)):
            owner = Owner(tenant, user_id)
            heads[owner], keys[owner] = _read_head(*head), data_key
        behind = [(*o, asked[o]) for o, head in heads.items() if 0 < head.last_number - asked[o] <= limit]
        entries: dict[Owner, list[InboxEntry]] = {}
        for tenant, user_id, *row in await reader.rows_for("entries_of_inboxes", behind):
            owner = Owner(tenant, user_id)
            entries.setdefault(owner, []).append(self._read_entry(owner, keys[owner], *row))
        return [News(owner, head, tuple(entries.get(owner, ()))) for owner, head in heads.items()]

    def _read_entry(self, owner: Owner, data_key: bytes, *row: Any) -> InboxEntry:
        number, raw, category, sealed, at, read_at, archived_at = row
        content = self._sealer.open(data_key, *owner, _FIELD, sealed)
        times = as_instant(read_at), as_instant(archived_at)
        return InboxEntry(number, NotificationId(raw), category, content, Instant(at), *times)

    async def mark(self, owner: Owner, number: int, *, is_archived: bool) -> Marked | None:
        async def work(turn: Turn) -> Marked | None:
            held = await turn.one("hold_inbox", *owner)
            entry = None if held is None else await turn.one("find_entry", *owner, number)
            if held is None or entry is None:
                return None
            read_at, archived_at = as_instant(entry[2]), as_instant(entry[3])
            if (archived_at if is_archived else read_at) is not None:
                return Marked(number, read_at, archived_at, _read_head(*held))
            if is_archived:
                return Marked(number, read_at, turn.now, await _archive(turn, owner, [entry]))
            return Marked(number, turn.now, archived_at, await _read(turn, owner, [entry]))

        return await self._turns.turn("mark_inbox", work)

    async def read_all(self, owner: Owner, up_to: int, limit: int) -> int:
        async def work(turn: Turn) -> int:
            if await turn.one("hold_inbox", *owner) is None:
                return 0
            entries = await turn.rows("unread_entries", *owner, up_to, limit)
            if entries:
                await _read(turn, owner, entries)
            return len(entries)

        return await self._turns.turn("mark_inbox", work)

    async def forget_before(self, moment: Instant, limit: int) -> int:
        boundary = new_batch_id(moment // 1000, 0)
        return await self._turns.turn("forget_inbox", lambda turn: _forget(turn, boundary, limit))


async def _read(turn: Turn, owner: Owner, entries: Sequence[Row]) -> InboxHead:
    """Reading is what makes a notification OPENED: both are in this commit."""
    await turn.run_many("read_entry", [(turn.now, *owner, entry[0]) for entry in entries])
    opened = await turn.run_many("notification_opened", [(owner.tenant, entry[1]) for entry in entries])
    await write_ledger(turn, [LedgerRow(row[0], row[1], turn.now, "opened", None) for row in opened])
    return await _count(turn, owner, entries)


async def _archive(turn: Turn, owner: Owner, entries: Sequence[Row]) -> InboxHead:
    await turn.run_many("archive_entry", [(turn.now, *owner, entry[0]) for entry in entries])
    return await _count(turn, owner, entries)


async def _count(turn: Turn, owner: Owner, entries: Sequence[Row]) -> InboxHead:
    were_unread = sum(read_at is None and archived_at is None for _, _, read_at, archived_at in entries)
    (head,) = await turn.run_many("count_marked", [(were_unread, *owner)])
    return _read_head(*head)


async def _forget(turn: Turn, boundary: bytes, limit: int) -> int:
    old = await turn.rows("old_entries", boundary, limit)
    if not old:
        return 0
    await turn.rows_for("hold_inboxes", sorted({(tenant, user_id) for tenant, user_id, _ in old}))
    gone = await turn.run_many("forget_entry", old)
    unread = Counter((tenant, user_id) for tenant, user_id, _ in gone)
    unread.subtract((tenant, user_id) for tenant, user_id, was_unread in gone if not was_unread)
    await turn.run_many("count_marked", [(count, *owner) for owner, count in unread.items()])
    return len(gone)


def _read_head(last_number: int | None, unread: int | None, changes: int | None) -> InboxHead:
    if last_number is None or unread is None or changes is None:
        return EMPTY
    return InboxHead(last_number, unread, changes)


class StoredTickets:
    """Implements ports/tickets.py."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def spend(self, tenant: TenantId, ticket: bytes, expires_at: Instant) -> bool:
        async def work(turn: Turn) -> bool:
            await turn.run("forget_tickets", turn.now, _FORGOTTEN_AT_ONCE)
            return await turn.has_changed("spend_ticket", tenant, ticket, expires_at)

        return await self._turns.turn("spend_ticket", work)
