"""StoredBatches: keeps batches and has them decided slice by slice, one turn each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from noroshi.domain.addressing import Candidate, LedgerRow, Rejected
from noroshi.domain.batches import BatchHead, BatchView, Earlier, NewBatch, Progress, Rejection
from noroshi.domain.ids import BatchId, NotificationId, TenantId, batch_of, last_id_of, place_in_batch
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import read_lane
from noroshi.domain.priorities import Priority
from noroshi.domain.reasons import Reason
from noroshi.domain.records import StatusCounts
from noroshi.domain.states import Status
from noroshi.ports.batches import Decide
from noroshi.ports.batches import Turn as TurnResult
from noroshi.ports.requests import PrepareEnqueued
from noroshi.storage.addressing import read_facts, write_changes, write_ledger
from noroshi.storage.attachments import read_attachments
from noroshi.storage.requests import RequestFate, end_requests, judge_waiting
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns, as_instant

KEY_LIFE = timedelta(hours=24)
_BREATH = timedelta(milliseconds=50)
_OPEN_BATCHES_A_TURN = 32
_KNOWN_RECIPIENT_LISTS = 64
_SHOWN_REJECTIONS = 101

_encode = msgspec.json.Encoder().encode
_decode_strings = msgspec.json.Decoder(list[str]).decode
_decode_counts = msgspec.json.Decoder(dict[str, int]).decode


_Place = tuple[TenantId, str]
"""Where an idempotency key lies: the tenant and the key."""


class _Open:
    """A batch being decided in this turn: its head, whom it still has to reach, how many of them this turn decides, and
    its counts."""

    __slots__ = ("head", "new", "next_recipient", "progress", "recipients", "taken", "user_ids")

    def __init__(self, head: BatchHead, user_ids: Sequence[str], next_recipient: int, progress: Progress) -> None:
        self.head = head
        self.user_ids = user_ids
        self.recipients = len(user_ids)
        self.next_recipient = next_recipient
        self.progress = progress
        self.taken = 0
        self.new: NewBatch | None = None

    def take(self, room: int) -> list[Candidate]:
        first = self.next_recipient
        self.next_recipient = end = min(first + room, self.recipients)
        self.taken += end - first
        head, user_ids = self.head, self.user_ids
        return [Candidate(head, position, user_ids[position], None) for position in range(first, end)]

    @property
    def left(self) -> int:
        return self.recipients - self.next_recipient

    @property
    def state(self) -> int:
        return 0 if self.left else 1

    def reject(self, user_id: str, code: str) -> None:
        progress = self.progress
        progress.rejected += 1
        progress.reasons[code] = progress.reasons.get(code, 0) + 1
        progress.rejections.append(Rejection(user_id, code))


def read_head(row: Row) -> BatchHead:
    """A batch's head from its first twelve columns."""
    tenant, batch_id, template_id, channels, priority, category, content_hash, created_at, due_at = row[:9]
    return BatchHead(
        tenant=tenant,
        batch_id=BatchId(batch_id),
        template_id=template_id,
        channels=tuple(channels.split(",")),
        priority=Priority(priority),
        category=category,
        content_hash=content_hash,
        created_at=created_at,
        due_at=due_at,
        expires_at=as_instant(row[9]),
        digest_key=row[10],
        created_by=row[11],
    )


def read_progress(row: Row) -> Progress:
    """How far a batch is decided, from the columns after its head."""
    return Progress(row[13], row[16], row[17], _decode_counts(row[18]), [], bool(row[12]))


class StoredBatches:
    """Implements ports/batches.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings
        # recipients never change once kept, so they may be remembered between the slices of a large batch
        self._recipients: dict[BatchId, list[str]] = {}

    async def keep(
        self,
        new: Sequence[NewBatch],
        room: int,
        decide: Decide,
        *,
        is_urgent: bool = False,
        is_beside: bool = False,
        prepare: PrepareEnqueued | None = None,
    ) -> TurnResult:
        name = "accept" if new else "address" if prepare is None else "take_requests"
        return await self._turns.turn(
            name,
            lambda turn: self._keep(turn, new, room, decide, prepare, is_beside=is_beside),
            is_urgent=is_urgent,
        )

    async def _keep(
        self,
        turn: Turn,
        new: Sequence[NewBatch],
        room: int,
        decide: Decide,
        prepare: PrepareEnqueued | None = None,
        *,
        is_beside: bool = False,
    ) -> TurnResult:
        result = TurnResult()
        fresh = await _take_in(turn, new, prepare, result)
        waiting = await self._waiting(turn, is_beside=is_beside)
        holds = await _due_holds(turn, room)
        candidates = _share(turn.now, fresh, waiting, holds, room)
        if candidates:
            changes = decide(await read_facts(turn, candidates))
            await write_changes(turn, candidates, changes)
            opened = {batch.head.batch_id: batch for batch in (*fresh, *waiting)}
            _count(opened, changes.rejected)
            await _write_rejections(turn, opened, changes.rejected)
            result.lanes = {read_lane(name) for name in {row.lane for row in changes.deliveries}}
            result.deliveries = len(changes.deliveries)
            result.decided = len(candidates)
            result.dead = Counter((read_lane(row.lane), row.code) for row in changes.dead_letters)
            result.noes = Counter((row.channel, row.reason) for row in changes.notifications if row.reason is not None)
        await _write_new(turn, fresh)
        touched = {candidate.batch.batch_id for candidate in candidates}
        await self._advance(turn, [batch for batch in waiting if batch.head.batch_id in touched])
        self._remember(fresh)
        result.progress = {batch.head.batch_id: batch.progress for batch in (*fresh, *waiting)}
        result.next_due_at = await _next_due(turn)
        if result.next_due_at is not None and result.next_due_at <= turn.now:
            result.has_more = bool(candidates)
            if not candidates:  # due, and another process is at it
                result.next_due_at = plus(turn.now, _BREATH)
        return result

    def _remember(self, fresh: Sequence[_Open]) -> None:
        for batch in fresh:
            if batch.left and len(self._recipients) < _KNOWN_RECIPIENT_LISTS:
                self._recipients[batch.head.batch_id] = list(batch.user_ids)

    async def _waiting(self, turn: Turn, *, is_beside: bool) -> list[_Open]:
        most = _OPEN_BATCHES_A_TURN
        if is_beside and (counted := await turn.one("count_open_batches", turn.now, 2 * most)) is not None:
            most = (counted[0] + 1) // 2
        found: list[_Open] = []
        for row in await turn.rows("open_batches", turn.now, most):
            head = read_head(row)
            found.append(_Open(head, await self._recipients_of(turn, head), row[15], read_progress(row)))
        return found

    async def _recipients_of(self, turn: Turn, head: BatchHead) -> list[str]:
        known = self._recipients.get(head.batch_id)
        if known is None:
            row = await turn.one("body_recipients", head.tenant, head.batch_id)
            known = _decode_strings(row[0]) if row else []
            if len(self._recipients) < _KNOWN_RECIPIENT_LISTS:
                self._recipients[head.batch_id] = known
        return known

    async def _advance(self, turn: Turn, touched: Sequence[_Open]) -> None:
        for batch in touched:
            if not batch.left:
                self._recipients.pop(batch.head.batch_id, None)
        await turn.run_many(
            "advance_batch",
            [
                (
                    batch.next_recipient,
                    batch.progress.accepted,
                    batch.progress.rejected,
                    _encode(batch.progress.reasons).decode(),
                    batch.state,
                    batch.head.tenant,
                    batch.head.batch_id,
                )
                for batch in touched
            ],
        )

    async def find(self, tenant: TenantId, batch_id: BatchId) -> BatchView | None:
        row = await self._readings.read(lambda reader: reader.one("find_batch", tenant, batch_id))
        if row is None:
            return None
        data = msgspec.json.decode(row[20])
        return BatchView(
            read_head(row), read_progress(row), data, as_instant(row[19]), row[21], read_attachments(row[22])
        )

    async def counts(self, tenant: TenantId, batch_id: BatchId) -> StatusCounts | None:
        async def read(reader: Statements) -> StatusCounts | None:
            head = await reader.one("batch_progress_columns", tenant, batch_id)
            if head is None:
                return None
            channels, recipients, next_recipient, state, _ = head
            by_channel = {
                (channel, Status(status)): count
                for channel, status, count in await reader.rows(
                    "count_statuses", tenant, batch_id, last_id_of(batch_id)
                )
            }
            return StatusCounts(by_channel, recipients - next_recipient, tuple(channels.split(",")), state >= 2)

        return await self._readings.read(read)

    async def rejections(
        self, tenant: TenantId, batch_id: BatchId, after: int, limit: int
    ) -> list[tuple[int, Rejection]]:
        rows = await self._readings.read(lambda reader: reader.rows("list_rejections", tenant, batch_id, after, limit))
        return [(position, Rejection(user_id, code)) for position, user_id, code in rows]

    async def remember_answer(
        self, tenant: TenantId, batch_id: BatchId, encode: Callable[[Progress], bytes]
    ) -> bytes | None:
        async def work(turn: Turn) -> bytes | None:
            row = await turn.one("find_batch", tenant, batch_id)
            if row is None or row[21] is not None:
                return None if row is None else bytes(row[21])
            rejections = await turn.rows("list_rejections", tenant, batch_id, -1, _SHOWN_REJECTIONS)
            progress = read_progress(row)
            progress.rejections.extend(Rejection(user_id, code) for _, user_id, code in rejections)
            answer = encode(progress)
            if progress.undecided:
                await turn.run("remember_answer", answer, tenant, batch_id)
            return answer

        return await self._turns.turn("answer", work)

    async def begin_cancel(self, tenant: TenantId, batch_id: BatchId) -> bool:
        async def work(turn: Turn) -> bool:
            if await turn.one("batch_progress_columns", tenant, batch_id) is None:
                return False
            await turn.run("begin_cancel", turn.now, tenant, batch_id)
            return True

        return await self._turns.turn("cancel_begin", work, is_urgent=True)

    async def cancel_page(self, limit: int) -> int:
        return await self._turns.turn("cancel_page", lambda turn: _cancel_page(turn, limit))

    async def forget_keys(self, limit: int) -> int:
        return await self._turns.turn("forget_keys", lambda turn: turn.run("forget_idempotency_keys", turn.now, limit))


async def _take_in(
    turn: Turn, new: Sequence[NewBatch], prepare: PrepareEnqueued | None, result: TurnResult
) -> list[_Open]:
    """The new batches that get their keys, those of enqueued requests among them, which are then taken or dead."""
    fates: list[RequestFate] = []
    if prepare is not None:
        fates, result.has_more_enqueued = await judge_waiting(turn, prepare)
    enqueued = [fate.batch for fate in fates if fate.batch is not None]
    batches = [*new, *enqueued]
    earlier = await _find_earlier(turn, batches)
    result.earlier = earlier[: len(new)]
    holders = {b.head.batch_id: holder for b, holder in zip(batches, earlier, strict=True) if holder is not None}
    if fates:
        result.enqueued = [batch for batch in enqueued if batch.head.batch_id not in holders]
        result.refused = await end_requests(turn, fates, holders)
    return [_begin(batch) for batch in batches if batch.head.batch_id not in holders]


async def _find_earlier(turn: Turn, new: Sequence[NewBatch]) -> list[Earlier | None]:
    """Takes the idempotency keys of the new batches; beside each batch whose key is already held, the holder."""
    first: dict[_Place, NewBatch] = {}
    for batch in new:
        if batch.idempotency_key is not None:
            first.setdefault((batch.head.tenant, batch.idempotency_key), batch)
    if not first:
        return [None] * len(new)
    until = plus(turn.now, KEY_LIFE)
    # In order: another process that wants the same keys waits for us, and never we for it at the same time.
    taken = await turn.change_many(
        "hold_idempotency_key",
        [(*place, first[place].fingerprint, first[place].head.batch_id, until, turn.now) for place in sorted(first)],
    )
    if taken == len(new):
        return [None] * len(new)
    holders = {place: (batch.fingerprint, batch.head.batch_id) for place, batch in first.items()}
    if taken < len(first):
        for tenant, key, fingerprint, batch_id in await turn.rows_for("find_idempotency_keys", list(first)):
            holders[tenant, key] = (fingerprint, BatchId(batch_id))
    return [_earlier(batch, holders) for batch in new]


def _earlier(batch: NewBatch, holders: Mapping[_Place, tuple[bytes, BatchId]]) -> Earlier | None:
    if batch.idempotency_key is None:
        return None
    fingerprint, holder = holders[batch.head.tenant, batch.idempotency_key]
    return None if holder == batch.head.batch_id else Earlier(holder, fingerprint == batch.fingerprint)


def _begin(new: NewBatch) -> _Open:
    total = len(new.user_ids) + len(new.repeated)
    batch = _Open(new.head, new.user_ids, 0, Progress(total, is_scheduled=new.is_scheduled))
    batch.new = new
    for user_id in new.repeated:
        batch.reject(user_id, Reason.REPEATED)
    return batch


async def _due_holds(turn: Turn, room: int) -> list[Candidate]:
    rows = await turn.rows("due_holds", turn.now, max(room // 4, 1))
    if not rows:
        return []
    asked = {(tenant, batch_of(NotificationId(raw))) for tenant, raw, _ in rows}
    heads = {(row[0], BatchId(row[1])): read_head(row) for row in await turn.rows_for("heads_of_batches", list(asked))}
    candidates: list[Candidate] = []
    for tenant, raw, user_id in rows:
        held = NotificationId(raw)
        head = heads.get((tenant, batch_of(held)))
        if head is not None:
            position, channel_number = place_in_batch(held)
            candidates.append(Candidate(head, position, user_id, channel_number))
    return candidates


def _share(
    now: Instant, fresh: Sequence[_Open], waiting: Sequence[_Open], holds: Sequence[Candidate], room: int
) -> list[Candidate]:
    """Up to `room` candidates: holds first (they are few), a quarter for batches that wait, the rest for new ones,
    each in rounds so that no small batch waits behind a large one."""
    candidates = list(holds)
    room = max(room - len(candidates), 0)
    for_waiting = max(room // 4, 1) if waiting else 0
    due = [batch for batch in fresh if batch.head.due_at <= now]
    candidates.extend(_in_rounds(due, room - for_waiting))
    left = room - (len(candidates) - len(holds))
    candidates.extend(_in_rounds(waiting, left))
    return candidates


def _in_rounds(batches: Sequence[_Open], room: int) -> list[Candidate]:
    taken: list[Candidate] = []
    hungry = [batch for batch in batches if batch.left]
    while hungry and room > 0:
        portion = max(room // len(hungry), 1)
        for batch in hungry:
            some = batch.take(min(portion, room))
            taken.extend(some)
            room -= len(some)
        hungry = [batch for batch in hungry if batch.left]
    return taken


def _count(opened: Mapping[BatchId, _Open], rejected: Sequence[Rejected]) -> None:
    for batch in opened.values():
        batch.progress.accepted += batch.taken
    for one in rejected:
        batch = opened[one.batch_id]
        batch.progress.accepted -= 1
        batch.reject(one.user_id, one.code)


async def _write_rejections(turn: Turn, opened: Mapping[BatchId, _Open], rejected: Sequence[Rejected]) -> None:
    await turn.run_many("insert_rejections", [(opened[one.batch_id].head.tenant, *one) for one in rejected])


async def _write_new(turn: Turn, fresh: Sequence[_Open]) -> None:
    await turn.run_many("insert_batch", [_batch_row(batch) for batch in fresh])
    bodies: list[tuple[Any, ...]] = []
    contents: list[tuple[Any, ...]] = []
    repeats: list[tuple[Any, ...]] = []
    for batch in fresh:
        new = batch.new
        assert new is not None  # noqa: S101 - `fresh` holds new batches only
        place = (new.head.tenant, new.head.batch_id)
        told = _encode(new.attachments) if new.attachments else None
        bodies.append((*place, new.data, _encode(new.user_ids), told))
        contents.extend((*place, position, content) for position, content in enumerate(new.contents))
        first = len(new.user_ids)
        repeats.extend((*place, first + n, user_id, Reason.REPEATED) for n, user_id in enumerate(new.repeated))
    await turn.run_many("insert_batch_body", bodies)
    await turn.run_many("insert_attachment", contents)
    await turn.run_many("insert_rejections", repeats)


def _batch_row(batch: _Open) -> tuple[Any, ...]:
    head, progress = batch.head, batch.progress
    return (
        head.tenant,
        head.batch_id,
        head.template_id,
        ",".join(head.channels),
        head.priority,
        head.category,
        head.content_hash,
        head.created_at,
        head.due_at,
        head.expires_at,
        head.digest_key,
        head.created_by,
        progress.is_scheduled,
        progress.total,
        batch.recipients,
        batch.next_recipient,
        progress.accepted,
        progress.rejected,
        _encode(progress.reasons).decode(),
        batch.state,
    )


async def _next_due(turn: Turn) -> Instant | None:
    row = await turn.one("next_due")
    return None if row is None else as_instant(row[0])


async def _cancel_page(turn: Turn, limit: int) -> int:
    found = await turn.one("cancelling_batches", 1)
    if found is None:
        return 0
    tenant, raw = found
    batch_id = BatchId(raw)
    last = last_id_of(batch_id)
    deliveries = await turn.rows("unsent_deliveries", tenant, batch_id, last, limit)
    holds = await turn.rows("held_notifications", tenant, batch_id, last, limit)
    await turn.run_many("remove_delivery", deliveries)
    await turn.run_many("remove_hold", holds)
    touched = {(row[0], row[1]) for row in (*deliveries, *holds)}
    await withdraw(turn, sorted(touched))
    if not touched:
        await turn.run("end_cancel", tenant, batch_id)
    return max(len(touched), 1)


async def withdraw(turn: Turn, notifications: Sequence[tuple[TenantId, NotificationId]]) -> None:
    """CANCELLED, with the record of it, for those that have no delivery left and are not terminal."""
    ended = await turn.run_many("withdraw_notification", notifications)
    await write_ledger(turn, [LedgerRow(row[0], NotificationId(row[1]), turn.now, "cancelled", None) for row in ended])
