"""StoredDeadLetters: what ended without success, replayed or discarded by a person."""

from collections.abc import Sequence
from typing import Any

import msgspec

from noroshi.domain.addressing import LedgerRow
from noroshi.domain.ids import BatchId, EndpointId, NotificationId, TenantId, last_id_of, read
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import read_lane
from noroshi.domain.records import DeadLetter, DeadLetterFilter
from noroshi.storage.addressing import write_ledger
from noroshi.storage.history import read_trails
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns

_FAR = 1 << 62


class StoredDeadLetters:
    """Implements ports/dead_letters.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def list_dead_letters(
        self, tenant: TenantId, matching: DeadLetterFilter, before: int | None, limit: int
    ) -> list[DeadLetter]:
        rows = await self._readings.read(lambda reader: _find(reader, tenant, matching, before, None, limit))
        return [_read_dead_letter(row) for row in rows]

    async def get(self, tenant: TenantId, dead_letter_id: int) -> DeadLetter | None:
        async def ask(reader: Statements) -> DeadLetter | None:
            rows = await _find(reader, tenant, DeadLetterFilter(), None, dead_letter_id, 1)
            if not rows:
                return None
            trail = (await read_trails(reader, tenant, [rows[0][1]]))[rows[0][1]]
            return msgspec.structs.replace(_read_dead_letter(rows[0]), trail=tuple(trail))

        return await self._readings.read(ask)

    async def replay(
        self, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int
    ) -> tuple[int, int]:
        return await self._turns.turn("replay", lambda turn: _replay(turn, tenant, matching, only, by, limit))

    async def discard(self, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int) -> int:
        async def work(turn: Turn) -> int:
            rows = await _find(turn, tenant, matching, None, only, limit)
            await _forget(turn, tenant, rows, "discarded", by)
            return len(rows)

        return await self._turns.turn("discard", work)


async def _find(
    statements: Statements,
    tenant: TenantId,
    matching: DeadLetterFilter,
    before: int | None,
    only: int | None,
    limit: int,
    *,
    is_replay: bool = False,
) -> list[Row]:
    first = last = None
    if matching.batch_id is not None:
        raw = read(matching.batch_id)
        if raw is None:
            return []
        first, last = raw, last_id_of(BatchId(raw))
    return await statements.rows(
        "list_dead_letters",
        *(tenant, _FAR if before is None else before, matching.channel, matching.code, matching.category),
        *(matching.user_id, first, last, only, is_replay, limit),
    )


async def _replay(
    turn: Turn, tenant: TenantId, matching: DeadLetterFilter, only: int | None, by: str, limit: int
) -> tuple[int, int]:
    able = await _find(turn, tenant, matching, None, only, limit, is_replay=True)
    unable = [row for row in await _find(turn, tenant, matching, None, only, limit) if row[6] is None]
    deliveries: list[tuple[Any, ...]] = []
    for row in able:
        _, raw, endpoint_id, lane, user_id, category, template_row, _, _ = row[:9]
        # a person asks for it now: the old expiry no longer binds
        deliveries.append((tenant, raw, endpoint_id, lane, turn.now, user_id, category, template_row, None, turn.now))
    await turn.run_many("put_delivery", deliveries)
    await turn.run_many("requeue_notification", [(tenant, row[1]) for row in able])
    await _forget(turn, tenant, able, "replayed", by)
    return len(able), len(unable)


async def _forget(turn: Turn, tenant: TenantId, rows: Sequence[Row], kind: str, by: str) -> None:
    await turn.run_many("remove_dead_letter", [(tenant, row[0]) for row in rows])
    told = [(NotificationId(row[1]), {"by": by, "endpoint": row[2]} if row[2] else {"by": by}) for row in rows]
    await write_ledger(
        turn, [LedgerRow(tenant, raw, turn.now, kind, msgspec.json.encode(detail).decode()) for raw, detail in told]
    )


def _read_dead_letter(row: Row) -> DeadLetter:
    number, raw, endpoint_id, lane_name, user_id, category, _, _, _, code, error, tries, at = row
    lane = read_lane(lane_name)
    return DeadLetter(
        dead_letter_id=number,
        notification_id=NotificationId(raw),
        endpoint_id=EndpointId(endpoint_id),
        user_id=user_id,
        channel=lane.channel,
        priority=lane.priority,
        category=category,
        code=code,
        error=error,
        tries=tries,
        at=Instant(at),
    )
