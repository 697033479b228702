"""StoredHistory: notifications with the trail of decisions that explains each."""

from collections.abc import Sequence
from typing import Any

import msgspec

from noroshi.domain.batches import BatchSummary
from noroshi.domain.ids import BatchId, NotificationId, TenantId, batch_of, last_id_of, new_batch_id
from noroshi.domain.instants import Instant, iso
from noroshi.domain.records import LedgerEntry, NotificationView, StatusCounts
from noroshi.domain.states import Status
from noroshi.storage.batches import read_head, read_progress
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns, as_instant

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_FAR = 1 << 62
_LAST_ID = b"\xff" * 16
_COUNTED_AT_MOST = 100
"""How many notifications a batch may have for a list to show their sums: a hundred such batches are one page."""

_BEFORE_QUEUED = ("deferred", "released")
"""All that the ledger can say of a notification before it is queued. That it was queued is not written there: the
row's own time says it."""


async def read_trails(
    reader: Statements, tenant: TenantId, notifications: Sequence[bytes]
) -> dict[bytes, list[LedgerEntry]]:
    """The ledger of each notification, in order."""
    trails: dict[bytes, list[LedgerEntry]] = {raw: [] for raw in notifications}
    for raw, at, kind, detail in await reader.rows_for("trails", [(tenant, raw) for raw in notifications]):
        trails[raw].append(LedgerEntry(Instant(at), kind, _shown(_decode_object(detail)) if detail else {}))
    return trails


def _shown(detail: dict[str, Any]) -> dict[str, Any]:
    """Instants in a detail as times that people read."""
    return {name: iso(Instant(value)) if name.endswith("_at") else value for name, value in detail.items()}


class StoredHistory:
    """Implements ports/history.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def of_batch(
        self, tenant: TenantId, batch_id: BatchId, after: NotificationId | None, limit: int
    ) -> list[NotificationView]:
        first, last = after or batch_id, last_id_of(batch_id)
        return await self._readings.read(
            lambda reader: _read_views(reader, tenant, "notifications_of_batch", first, last, limit)
        )

    async def of_user(
        self, tenant: TenantId, user_id: str, before: tuple[Instant, NotificationId] | None, limit: int
    ) -> list[NotificationView]:
        at, last = before or (_FAR, _LAST_ID)
        return await self._readings.read(
            lambda reader: _read_views(reader, tenant, "notifications_of_user", user_id, at, last, limit)
        )

    async def find(self, tenant: TenantId, notification_id: NotificationId) -> NotificationView | None:
        before = max(int.from_bytes(notification_id, "big") - 1, 0).to_bytes(16, "big")
        views = await self._readings.read(
            lambda reader: _read_views(reader, tenant, "notifications_of_batch", before, notification_id, 1)
        )
        return views[0] if views else None

    async def list_batches(
        self, tenant: TenantId, before: BatchId | None, after: BatchId | None, limit: int
    ) -> list[BatchSummary]:
        async def read(reader: Statements) -> list[BatchSummary]:
            rows = await reader.rows("list_batches", tenant, before or _LAST_ID, after or b"", limit)
            counts = await _count_small(reader, rows)
            return [
                BatchSummary(read_head(row), read_progress(row), as_instant(row[19]), counts.get(row[1]))
                for row in rows
            ]

        return await self._readings.read(read)

    async def has_user(self, tenant: TenantId, user_id: str) -> bool:
        row = await self._readings.read(lambda reader: reader.one("has_user", tenant, user_id))
        return bool(row and row[0])

    async def make_ready(self) -> None:
        """One table holds every day."""

    async def forget_before(self, moment: Instant, limit: int) -> int:
        boundary = new_batch_id(moment // 1000, 0)
        return await self._turns.turn("forget_history", lambda turn: _forget(turn, boundary, limit))


async def _forget(turn: Turn, boundary: bytes, limit: int) -> int:
    old = await turn.rows("old_notifications", boundary, limit)
    for name in ("forget_message_id", "forget_notification", "forget_ledger", "forget_dead_letters"):
        await turn.run_many(name, old)
    emptied = await turn.rows("old_batches", boundary, limit)
    for name in ("forget_batch", "forget_batch_body", "forget_attachments", "forget_rejections"):
        await turn.run_many(name, emptied)
    return len(old) + len(emptied)


async def _count_small(reader: Statements, batches: list[Row]) -> dict[bytes, StatusCounts]:
    """The counts of those batches that have few notifications, by batch."""
    counts: dict[bytes, StatusCounts] = {}
    asked: list[tuple[TenantId, bytes, bytes]] = []
    for row in batches:
        head, recipients, next_recipient = read_head(row), row[14], row[15]
        if recipients * len(head.channels) <= _COUNTED_AT_MOST:
            counts[head.batch_id] = StatusCounts({}, recipients - next_recipient, head.channels, row[20] >= 2)
            asked.append((head.tenant, head.batch_id, last_id_of(head.batch_id)))
    for raw, channel, status, count in await reader.rows_for("count_statuses_of_batches", asked):
        counts[raw].by_channel[channel, Status(status)] = count
    return counts


async def _read_views(reader: Statements, tenant: TenantId, name: str, *parameters: Any) -> list[NotificationView]:
    rows = await reader.rows(name, tenant, *parameters)
    trails = await read_trails(reader, tenant, [row[1] for row in rows])
    return [_read_view(row, trails[row[1]]) for row in rows]


def _read_view(row: Row, recorded: list[LedgerEntry]) -> NotificationView:
    _, raw, user_id, channel, stored, reason, at, sent_at, tries = row[:9]
    template_id, version, locale, held_until, due_at, is_leased = row[9:]
    status = Status(stored)
    if is_leased and status in (Status.QUEUED, Status.RETRYING):
        status = Status.SENDING
    trail = recorded
    if template_id is not None:  # pinned when it was queued, and kept whatever came after
        place = sum(entry.kind in _BEFORE_QUEUED for entry in recorded)
        trail = [*recorded[:place], LedgerEntry(Instant(at), "queued", {}), *recorded[place:]]
    failures = [entry.detail for entry in recorded if "error" in entry.detail]
    return NotificationView(
        notification_id=NotificationId(raw),
        batch_id=batch_of(NotificationId(raw)),
        user_id=user_id,
        channel=channel,
        status=status,
        reason=reason,
        decided_at=Instant(at),
        sent_at=as_instant(sent_at),
        due_at=as_instant(held_until if held_until is not None else due_at),
        retry_count=max(tries - 1, 0),
        error=str(failures[-1]["error"]) if failures and status is not Status.SENT else None,
        template_id=template_id,
        template_version=version,
        template_locale=locale,
        trail=tuple(trail),
    )
