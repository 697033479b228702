"""StoredDoubts: of a store that was restored, what may have been sent after its backup was taken."""

from noroshi.domain.addressing import LedgerRow
from noroshi.domain.doubts import Doubts, Waiting
from noroshi.domain.ids import NotificationId, TenantId, new_batch_id
from noroshi.domain.instants import Instant
from noroshi.domain.marks import Mark, Restored
from noroshi.storage.addressing import write_ledger
from noroshi.storage.turns import Readings, Statements, Turn, Turns

_WITHDRAWN = f'{{"code":"{Mark.RESTORED}"}}'


class StoredDoubts:
    """Implements ports/doubts.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def review(self, restored: Restored) -> Doubts:
        return await self._readings.read(lambda reader: _review(reader, restored))

    async def discard_due(self, restored: Restored, before: Instant, limit: int) -> int:
        first_new = _first_new(restored)
        return await self._turns.turn("discard_doubtful", lambda turn: _discard(turn, first_new, before, limit))

    async def resume(self, by: str, *, with_requests: bool) -> None:
        async def work(turn: Turn) -> None:
            if with_requests:
                await turn.run("put_requests_back", Mark.RESTORED)
            await turn.run("remove_pauses_by", by)
            await turn.run("remove_mark", Mark.RESTORED)

        await self._turns.turn("resume_restored", work, is_urgent=True)


def _first_new(restored: Restored) -> bytes:
    """Every id below it came with the backup."""
    return new_batch_id(restored.restored_at // 1000, 0)


async def _review(reader: Statements, restored: Restored) -> Doubts:
    asked = (_first_new(restored), restored.taken_at, restored.restored_at)
    claimed, *deliveries = (await reader.one("review_deliveries", *asked)) or (0, 0, 0, 0)
    holds = (await reader.one("review_holds", *asked)) or (0, 0, 0)
    batches = (await reader.one("review_batches", *asked)) or (0, 0, 0)
    (aside,) = (await reader.one("count_requests_aside", Mark.RESTORED)) or (0,)
    by_backup, by_restore, later = (Waiting(*row) for row in zip(deliveries, holds, batches, strict=True))
    return Doubts(claimed, by_backup, by_restore, later, aside)


async def _discard(turn: Turn, first_new: bytes, before: Instant, limit: int) -> int:
    """Withdraws a page. A batch of which recipients are left to decide is withdrawn whole: what is left of it goes
    when the server starts."""
    deliveries = await turn.rows("doubtful_deliveries", first_new, before, limit)
    holds = await turn.rows("doubtful_holds", first_new, before, limit)
    batches = await turn.rows("doubtful_batches", first_new, before, limit)
    await turn.run_many("discard_delivery", [tuple(row) for row in deliveries])
    await turn.run_many("remove_hold", [tuple(row) for row in holds])
    touched = sorted({(TenantId(row[0]), NotificationId(row[1])) for row in (*deliveries, *holds)})
    ended = await turn.run_many("withdraw_notification", touched)
    await write_ledger(
        turn,
        [LedgerRow(row[0], NotificationId(row[1]), turn.now, "cancelled", _WITHDRAWN) for row in ended],
    )
    for tenant, batch_id in batches:
        await turn.run("begin_cancel", turn.now, tenant, batch_id)
    return len(deliveries) + len(holds) + len(batches)
