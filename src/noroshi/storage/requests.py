"""StoredRequests: what callers enqueued in their own transactions, taken into batches in the commit that keeps them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from noroshi.domain.batches import Earlier, NewBatch
from noroshi.domain.enqueued import Enqueued, EnqueuedView, RequestState
from noroshi.domain.ids import BatchId, RequestId, TenantId, new_request_id
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import NotificationRequest, read_request
from noroshi.ports.requests import PrepareEnqueued
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns

REQUESTS_A_TURN = 64
_BYTES_A_TURN = 256_000
"""Of bodies: a turn that takes large requests takes few of them, and one at least."""

_HIGHEST = RequestId(b"\xff" * 16)


class RequestFate(Struct, frozen=True):
    """What a waiting request becomes: a batch, or dead of a problem."""

    enqueued: Enqueued
    batch: NewBatch | None = None
    problem: ProblemError | None = None


async def judge_waiting(turn: Turn, prepare: PrepareEnqueued) -> tuple[list[RequestFate], bool]:
    """Holds some of the waiting requests until the turn's end and says what each becomes, and whether more wait."""
    rows = await turn.rows("waiting_requests", REQUESTS_A_TURN)
    chosen = _fitting(rows)
    fates: list[RequestFate] = []
    readable: list[tuple[Enqueued, NotificationRequest]] = []
    for enqueued, body in await _with_bodies(turn, chosen):
        try:
            # Whoever may write into the table may write anything: it is checked again.
            readable.append((enqueued, read_request(body)))
        except ProblemError as problem:
            fates.append(RequestFate(enqueued, problem=problem))
    channels = await _template_channels(turn, {(one.tenant, request.template_id) for one, request in readable})
    for enqueued, request in readable:
        known = channels.get((enqueued.tenant, request.template_id), [])
        try:
            fates.append(RequestFate(enqueued, prepare(enqueued, request, tuple(known), turn.now)))
        except ProblemError as problem:
            fates.append(RequestFate(enqueued, problem=problem))
    return fates, len(chosen) < len(rows) or len(rows) == REQUESTS_A_TURN


def _fitting(rows: Sequence[Row]) -> Sequence[Row]:
    total = 0
    for number, row in enumerate(rows):
        total += row[3]
        if number and total > _BYTES_A_TURN:
            return rows[:number]
    return rows


async def _with_bodies(turn: Turn, rows: Sequence[Row]) -> list[tuple[Enqueued, bytes]]:
    asked = [(tenant, raw) for tenant, raw, _, _ in rows]
    bodies = {(tenant, raw): body for tenant, raw, body in await turn.rows_for("request_bodies", asked)}
    return [(Enqueued(row[0], RequestId(row[1]), row[2]), bodies[row[0], row[1]]) for row in rows]


async def _template_channels(turn: Turn, asked: set[tuple[TenantId, str]]) -> dict[tuple[TenantId, str], list[str]]:
    channels: dict[tuple[TenantId, str], list[str]] = {}
    for tenant, template_id, channel in await turn.rows_for("channels_of_templates", sorted(asked)):
        channels.setdefault((tenant, template_id), []).append(channel)
    return channels


async def end_requests(turn: Turn, fates: Sequence[RequestFate], holders: Mapping[BatchId, Earlier]) -> dict[str, int]:
    """Marks each as taken or dead, and counts the dead by code. `holders`: for a batch that was not kept, the one
    that holds its key."""
    dead: Counter[str] = Counter()
    rows: list[tuple[Any, ...]] = []
    for fate in fates:
        batch_id, problem = _outcome(fate, holders)
        place = (fate.enqueued.tenant, fate.enqueued.request_id)
        if problem is None:
            rows.append((RequestState.TAKEN, batch_id, None, None, *place))
        else:
            dead[problem.kind.code] += 1
            error = problem.detail if problem.field is None else f"{problem.field}: {problem.detail}"
            rows.append((RequestState.DEAD, None, problem.kind.code, error, *place))
    await turn.run_many("end_request", rows)
    return dead


def _outcome(fate: RequestFate, holders: Mapping[BatchId, Earlier]) -> tuple[BatchId | None, ProblemError | None]:
    if fate.batch is None:
        return None, fate.problem
    holder = holders.get(fate.batch.head.batch_id)
    if holder is None:
        return fate.batch.head.batch_id, None
    if holder.is_same:
        return holder.batch_id, None
    return None, ProblemError("idempotency_key_reused", "it belongs to another request", field="idempotency_key")


class StoredRequests:
    """Implements ports/requests.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def oldest_waiting(self) -> Instant | None:
        row = await self._readings.read(lambda reader: reader.one("oldest_waiting_request"))
        return None if row is None else Instant(row[0])

    async def list_requests(
        self, tenant: TenantId, state: RequestState | None, before: RequestId | None, limit: int
    ) -> list[EnqueuedView]:
        below = _HIGHEST if before is None else before

        async def read(reader: Statements) -> list[Row]:
            if state is None:
                return await reader.rows("list_requests", tenant, below, limit)
            return await reader.rows("list_requests_in_state", tenant, state, below, limit)

        return [_read_view(row) for row in await self._readings.read(read)]

    async def find(self, tenant: TenantId, request_id: RequestId) -> EnqueuedView | None:
        row = await self._readings.read(lambda reader: reader.one("find_request", tenant, request_id))
        return None if row is None else _read_view(row)

    async def retry(self, tenant: TenantId, request_id: RequestId) -> bool:
        return await self._turns.turn(
            "retry_request", lambda turn: turn.has_changed("retry_request", tenant, request_id), is_urgent=True
        )

    async def forget(self, keys_before: Instant, before: Instant, limit: int) -> int:
        boundary = new_request_id(before // 1000, 0)

        async def work(turn: Turn) -> int:
            freed = await turn.run("free_request_keys", keys_before, limit)
            return freed + await turn.run("forget_requests", boundary, limit)

        return await self._turns.turn("forget_requests", work)


def _read_view(row: Row) -> EnqueuedView:
    raw, state, key, batch_id, code, error, created_at, created_by = row
    return EnqueuedView(
        request_id=RequestId(raw),
        state=RequestState(state),
        idempotency_key=key,
        batch_id=None if batch_id is None else BatchId(batch_id),
        code=code,
        error=error,
        created_at=Instant(created_at),
        created_by=created_by,
    )
