"""Ten bugs that a notification system must not have, each planted in the running product and pulled out again.

Every one is a mistake that published systems have made (RELIABILITY 1.3 and 3). The simulator must find each; one that
it does not find is a hole in the simulator.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from msgspec import Struct
from msgspec.structs import replace

from noroshi.domain.addressing import SliceChanges, SliceFacts
from noroshi.domain.batches import NewBatch
from noroshi.domain.deliveries import Attempt, Claim, Settled, Settlement, Verdict
from noroshi.domain.ids import notification_id
from noroshi.domain.instants import plus
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Judged
from noroshi.flow.dispatch.flights import Flight
from noroshi.flow.dispatch.sending import Sending
from noroshi.ports.batches import Decide
from noroshi.ports.batches import Turn as TurnResult
from noroshi.storage import batches
from noroshi.storage.batches import StoredBatches
from noroshi.storage.queue import StoredQueue
from noroshi.storage.sqlite.sql import SQL
from noroshi.storage.sqlite.writer import SqliteTurn as Turn

Plant = Callable[[], AbstractContextManager[object]]

_CONTENT_WINDOW = timedelta(minutes=-5)


class Mutant(Struct, frozen=True):
    """`plant` holds the bug in place as long as its context lasts."""

    what: str
    plant: Plant


def _mark_before_send() -> AbstractContextManager[object]:
    send = Sending._send

    async def marked(
        self: Sending, flight: Flight, attempts: list[Attempt], claims: list[Claim], judged: list[Judged], alerts: Any
    ) -> None:
        now = self._kit.clock.now()
        early = [Settlement(c.key, c.fence, Verdict.SENT, now, now, None, f"early-{c.fence}") for c in claims]
        await self._kit.queue.settle(early)
        await send(self, flight, attempts, claims, judged, alerts)

    return patch.object(Sending, "_send", marked)


def _settle_without_fencing() -> AbstractContextManager[object]:
    names = ("finish_delivery", "retry_delivery", "release_delivery", "resend_delivery")
    return patch.dict(SQL, {name: SQL[name].replace("fence = ?", "-1 < ?") for name in names})


def _duplicate_without_owner() -> AbstractContextManager[object]:
    """Contents are marked in a commit of their own; then the notifications are kept, unless the mark was there."""
    keep = StoredBatches.keep

    async def marking(
        self: StoredBatches, new: Sequence[NewBatch], room: int, decide: Decide, **more: Any
    ) -> TurnResult:
        owners: dict[tuple[int, str, str], bytes] = {}
        if new:
            owners = await self._turns.turn("mark", lambda turn: _mark_contents(turn, new))

        def decide_by_marks(facts: SliceFacts) -> SliceChanges:
            for batch, position, user_id, _ in facts.candidates:
                for number, channel in enumerate(batch.channels):
                    if owners.get((batch.content_hash, user_id, channel), batch.batch_id) != batch.batch_id:
                        facts.duplicates.add(notification_id(batch.batch_id, position, number))
            return decide(facts)

        return await keep(self, new, room, decide_by_marks, **more)

    return patch.object(StoredBatches, "keep", marking)


async def _mark_contents(turn: Turn, new: Sequence[NewBatch]) -> dict[tuple[int, str, str], bytes]:
    execute = turn.connection.execute
    columns = "hash, user_id, channel, batch_id, at, UNIQUE (hash, user_id, channel)"
    execute(f"CREATE TABLE IF NOT EXISTS content_marks ({columns})")
    execute("DELETE FROM content_marks WHERE at <= ?", (plus(turn.now, _CONTENT_WINDOW),))
    for batch in new:
        for channel in batch.head.channels if batch.head.due_at <= turn.now else ():
            turn.connection.executemany(
                "INSERT OR IGNORE INTO content_marks VALUES (?, ?, ?, ?, ?)",
                [(batch.head.content_hash, user, channel, batch.head.batch_id, turn.now) for user in batch.user_ids],
            )
    marks: Any = execute("SELECT hash, user_id, channel, batch_id FROM content_marks")
    return {tuple(place): batch_id for *place, batch_id in marks}


class _NotYetError(Exception):
    """Rolls a turn back."""


def _commit_after_the_answer() -> AbstractContextManager[object]:
    """What will be decided is worked out and answered; the commit comes a little later."""
    keep = StoredBatches.keep

    async def early(self: StoredBatches, new: Sequence[NewBatch], room: int, decide: Decide, **more: Any) -> TurnResult:
        foreseen: list[TurnResult] = []

        async def foresee(turn: Turn) -> None:
            foreseen.append(await self._keep(turn, new, room, decide))
            raise _NotYetError

        if not new:
            return await keep(self, new, room, decide, **more)
        try:
            await self._turns.turn("foresee", foresee)
        except _NotYetError:
            _leave(keep(self, new, room, decide, **more))
        return foreseen[0]

    return patch.object(StoredBatches, "keep", early)


def _claim_uncounted() -> AbstractContextManager[object]:
    return patch.dict(SQL, claim_delivery=_changed("claim_delivery", "claims = claims + 1", "claims = claims"))


def _sweeper_stopping_at_its_first_page() -> AbstractContextManager[object]:
    expired = StoredQueue.expired

    async def first_page(self: StoredQueue, after: Any, limit: int, *, is_start: bool) -> Any:
        return [] if after is not None else await expired(self, after, limit, is_start=is_start)

    return patch.object(StoredQueue, "expired", first_page)


@contextmanager
def _retry_kept_in_memory() -> Any:
    """The row sleeps in a state that nobody looks for; a task in memory is to wake it."""
    settle = StoredQueue.settle

    async def sleeping(self: StoredQueue, settlements: Sequence[Settlement], alerts: Sequence[Alert] = ()) -> Settled:
        settled = await settle(self, settlements, alerts)
        for one in settlements:
            if one.verdict is Verdict.RETRY and one.key not in settled.late:
                _leave(_wake(self, one))
        return settled

    with ExitStack() as stack:
        stack.enter_context(patch.object(StoredQueue, "settle", sleeping))
        stack.enter_context(patch.dict(SQL, retry_delivery=_changed("retry_delivery", "state = 0", "state = 3")))
        yield


async def _wake(queue: StoredQueue, one: Settlement) -> None:
    await asyncio.sleep(((one.due_at or 0) - one.at) / 1_000_000)
    wake = "UPDATE deliveries SET state = 0 WHERE state = 3 AND notification_id = ? AND endpoint_id = ?"

    async def work(turn: Turn) -> None:
        turn.connection.execute(wake, one.key[1:]).fetchall()

    await queue._turns.turn("wake", work)


def _release_that_uses_up_a_try() -> AbstractContextManager[object]:
    return patch.dict(SQL, release_delivery=_changed("release_delivery", "state = 0", "state = 0, tries = tries + 1"))


def _idempotency_in_its_own_commit() -> AbstractContextManager[object]:
    """The keys are taken first; then what they stand for is kept."""
    keep = StoredBatches.keep

    async def keys_first(
        self: StoredBatches, new: Sequence[NewBatch], room: int, decide: Decide, **more: Any
    ) -> TurnResult:
        if not new:
            return await keep(self, new, room, decide, **more)
        earlier = await self._turns.turn("take_keys", lambda turn: batches._find_earlier(turn, new))
        fresh = [replace(b, idempotency_key=None) for b, held in zip(new, earlier, strict=True) if held is None]
        result = await keep(self, fresh, room, decide, **more)
        result.earlier = earlier
        return result

    return patch.object(StoredBatches, "keep", keys_first)


def _cursor_before_its_slice() -> AbstractContextManager[object]:
    """The batch's cursor moves in one commit, and whoever it passed is decided in the next."""

    async def cursor_first(
        self: StoredBatches, new: Sequence[NewBatch], room: int, decide: Decide, *, is_urgent: bool = False, **more: Any
    ) -> TurnResult:
        moved = await self._turns.turn("cursor", lambda turn: _move_cursors(turn, room))

        async def work(turn: Turn) -> TurnResult:
            back = "UPDATE batches SET next_recipient = ?, state = 0 WHERE batch_id = ? AND state < 2"
            turn.connection.executemany(back, moved)
            return await self._keep(turn, new, room, decide, **more)

        name = "accept" if new else "take_requests" if more.get("prepare") else "address"
        return await self._turns.turn(name, work, is_urgent=is_urgent)

    return patch.object(StoredBatches, "keep", cursor_first)


async def _move_cursors(turn: Turn, room: int) -> list[tuple[int, bytes]]:
    """Answers where they were. A batch that is passed to its end is done, as far as anybody can see."""
    rows = await turn.rows("open_batches", turn.now, batches._OPEN_BATCHES_A_TURN)
    passed = [(min(row[15] + room, row[14]), row[15] + room >= row[14], row[1]) for row in rows]
    turn.connection.executemany("UPDATE batches SET next_recipient = ?, state = ? WHERE batch_id = ?", passed)
    return [(row[15], row[1]) for row in rows]


def _changed(name: str, before: str, after: str) -> str:
    """A query with a mistake in it; one that no longer has that text must not pass for mutated."""
    query = SQL[name]
    if before not in query:
        raise LookupError(f"the query {name} no longer says {before!r}")
    return query.replace(before, after, 1)


def _leave(doing: Any) -> None:
    """Starts what nobody waits for."""
    asyncio.ensure_future(doing).add_done_callback(lambda done: done.cancelled() or done.exception())


MUTANTS: dict[str, Mutant] = {
    "mark before send": Mutant("SENT is written, then the message is sent", _mark_before_send),
    "settle without fencing": Mutant("the result of a lost claim becomes state", _settle_without_fencing),
    "duplicate entry without owner": Mutant(
        "a content is marked as sent in a commit before its notification", _duplicate_without_owner
    ),
    "commit after the answer": Mutant("the caller hears 202, then the batch is kept", _commit_after_the_answer),
    "claim uncounted": Mutant("a claim that ends in a crash is not counted", _claim_uncounted),
    "sweeper stopping at its first page": Mutant(
        "leases that may not be touched hide the ones behind them", _sweeper_stopping_at_its_first_page
    ),
    "retry kept in memory": Mutant("a task wakes the retry, not its due time", _retry_kept_in_memory),
    "release that uses up a try": Mutant("a pause, rest or shutdown costs a try", _release_that_uses_up_a_try),
    "idempotency row in its own commit": Mutant(
        "the key is taken before the batch is kept", _idempotency_in_its_own_commit
    ),
    "batch cursor moved before its slice": Mutant(
        "recipients are passed before they are decided", _cursor_before_its_slice
    ),
}
