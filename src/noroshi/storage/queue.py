"""StoredQueue: deliveries claimed from lanes under a fenced lease, and settled with what became of them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from noroshi.domain.accounts import FREE, Terms
from noroshi.domain.attachments import Attachment
from noroshi.domain.deliveries import (
    Claim,
    DeliveryKey,
    Expired,
    Recipient,
    Settled,
    Settlement,
    Taken,
)
from noroshi.domain.ids import BatchId, EndpointId, NotificationId, TenantId, batch_of
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane, read_lane
from noroshi.domain.records import Alert
from noroshi.domain.templates import TemplateVersion
from noroshi.ports.sealer import Sealer
from noroshi.storage.accounts import Grant, ask_account
from noroshi.storage.attachments import read_attachments
from noroshi.storage.settling import settle
from noroshi.storage.templates import read_template
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns, as_instant

LONE_FROM = 2
"""Claims without an outcome after which a delivery is claimed alone: it may be what kills the process."""

_REMEMBERED = 256
_WHOLE_LIFE = timedelta(days=365)

_Batch = tuple[TenantId, BatchId]
_Body = tuple[dict[str, Any], tuple[Attachment, ...]]
"""The data of a batch and what is told of its attachments."""

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class _Held(msgspec.Struct):
    """A claim as the writer made it, before the reader loads what it needs."""

    row: Row
    fence: int


class _Turned(msgspec.Struct):
    """What the claiming turn did."""

    held: list[_Held]
    until: Instant
    next_due_at: Instant | None
    has_more: bool
    grant: Grant


class StoredQueue:
    """Implements ports/queue.py. `is_alone`: no other process serves the store, so every lease is void at the start."""

    def __init__(self, turns: Turns, readings: Readings, sealer: Sealer, *, is_alone: bool) -> None:
        self._turns = turns
        self._readings = readings
        self._sealer = sealer
        self._is_alone = is_alone
        # neither a kept batch's body nor a stored template version ever changes
        self._bodies: dict[_Batch, _Body] = {}
        self._templates: dict[tuple[TenantId, int], TemplateVersion] = {}

    async def take(
        self, lane: Lane, limit: int, lease: timedelta, paused_categories: frozenset[str], terms: Terms = FREE
    ) -> Taken:
        turned = await self._turns.turn(
            "claim",
            lambda turn: _claim(turn, lane, limit, lease, paused_categories, terms),
            is_urgent=lane.priority == "critical",
        )
        claims: list[Claim] = []
        if turned.held:
            claims = await self._readings.read(
                lambda reader: self._load(reader, lane, turned.held, turned.until), is_brief=True
            )
        return Taken(claims, turned.next_due_at, turned.has_more, turned.grant.wait, turned.grant.breaker)

    async def _load(self, reader: Statements, lane: Lane, held: Sequence[_Held], until: Instant) -> list[Claim]:
        keys = [(h.row[0], h.row[5], h.row[2]) for h in held]
        people = {row[0]: row for row in await reader.rows_for("people_of_claims", keys)}
        batches = {(h.row[0], batch_of(NotificationId(h.row[1]))) for h in held}
        bodies, cancelled = await self._load_batches(reader, batches)
        claims: list[Claim] = []
        for index, h in enumerate(held):
            tenant, raw, endpoint_id, claimed, tries, user_id, category, template_row, expires_at, wanted_at = h.row
            batch = (tenant, batch_of(NotificationId(raw)))
            data, attachments = bodies[batch]
            recipient, address = self._open(tenant, user_id, endpoint_id, people[index])
            claims.append(
                Claim(
                    key=DeliveryKey(tenant, raw, endpoint_id),
                    lane=lane,
                    fence=h.fence,
                    claims=claimed + 1,
                    tries=tries,
                    category=category,
                    wanted_at=wanted_at,
                    expires_at=expires_at,
                    lease_until=until,
                    recipient=recipient,
                    address=address,
                    data=data,
                    template=await self._template(reader, tenant, template_row),
                    is_cancelled=batch in cancelled,
                    attachments=attachments,
                )
            )
        return claims

    def _open(self, tenant: TenantId, user_id: str, endpoint_id: int, row: Row) -> tuple[Recipient, str]:
        _, data_key, name, locale, timezone, attributes, kind, sealed = row
        recipient = Recipient(user_id, name, locale, timezone, _decode_object(attributes) if attributes else {})
        if data_key is None:
            return recipient, ""
        if endpoint_id == 0:
            return recipient, user_id
        return recipient, "" if sealed is None else self._sealer.open(data_key, tenant, user_id, kind, sealed)

    async def _load_batches(self, reader: Statements, batches: set[_Batch]) -> tuple[dict[_Batch, _Body], set[_Batch]]:
        cancelled = {(row[0], BatchId(row[1])) for row in await reader.rows_for("are_cancelled", list(batches))}
        bodies = {batch: body for batch in batches if (body := self._bodies.get(batch)) is not None}
        missing = [batch for batch in batches if batch not in bodies]
        if missing:
            found = {
                (row[0], BatchId(row[1])): (_decode_object(row[2]), read_attachments(row[3]))
                for row in await reader.rows_for("bodies_of_batches", missing)
            }
            bodies |= found
            # a new dict each time: another reader thread may be looking into the old one
            self._bodies = bodies if len(self._bodies) + len(found) > _REMEMBERED else self._bodies | found
        return bodies, cancelled

    async def _template(self, reader: Statements, tenant: TenantId, row: int) -> TemplateVersion:
        found = self._templates.get((tenant, row))
        if found is None:
            stored = await reader.one("template_by_row", tenant, row)
            if stored is None:
                raise LookupError(f"template row {row} is pinned but not stored")
            if len(self._templates) >= _REMEMBERED:
                self._templates.clear()
            found = self._templates[tenant, row] = read_template(stored)
        return found

    async def settle(self, settlements: Sequence[Settlement], alerts: Sequence[Alert] = ()) -> Settled:
        return await self._turns.turn("settle", lambda turn: settle(turn, self._sealer, settlements, alerts))

    async def renew(self, held: Sequence[tuple[DeliveryKey, int]], lease: timedelta) -> set[DeliveryKey]:
        async def work(turn: Turn) -> set[DeliveryKey]:
            until = plus(turn.now, lease)
            kept = await turn.run_many("renew_lease", [(until, *key, fence) for key, fence in held])
            return {key for key, _ in held} - {DeliveryKey(*row) for row in kept}

        return await self._turns.turn("renew", work, is_urgent=True)

    async def expired(
        self, after: tuple[Instant, DeliveryKey] | None, limit: int, *, is_start: bool
    ) -> list[tuple[Instant, Expired]]:
        place = (-1, 0, b"", 0) if after is None else (after[0], *after[1])
        patience = _WHOLE_LIFE if is_start and self._is_alone else timedelta(0)

        async def read(reader: Statements) -> list[Row]:
            return await reader.rows("expired_leases", plus(await reader.moment(), patience), *place, limit)

        return [_read_expired(row) for row in await self._readings.read(read)]

    async def waiting(self) -> dict[Lane, Instant]:
        rows = await self._readings.read(lambda reader: reader.rows("waiting_lanes"))
        return {read_lane(name): Instant(due) for name, due in rows}

    async def oldest(self) -> dict[Lane, Instant]:
        async def read(reader: Statements) -> list[Row]:
            return [*await reader.rows("waiting_lanes"), *await reader.rows("leased_lanes")]

        found: dict[Lane, Instant] = {}
        for name, since in await self._readings.read(read):
            lane = read_lane(name)
            found[lane] = Instant(min(since, found.get(lane, since)))
        return found

    async def resume(self, paused_categories: frozenset[str], limit: int) -> int:
        async def work(turn: Turn) -> int:
            rows = await turn.rows("aside_deliveries", _encode(sorted(paused_categories)).decode(), limit)
            await turn.run_many("put_delivery_back", rows)
            return len(rows)

        return await self._turns.turn("resume", work)

    async def unfinished(self) -> int:
        row = await self._readings.read(lambda reader: reader.one("count_unfinished"))
        return int(row[0]) if row else 0


async def _claim(
    turn: Turn, lane: Lane, limit: int, lease: timedelta, paused_categories: frozenset[str], terms: Terms
) -> _Turned:
    until = plus(turn.now, lease)
    rows = await turn.rows("ready_deliveries", lane.name, turn.now, limit + 1)
    is_suspect_waiting = bool(rows) and rows[0][3] >= LONE_FROM and await _is_suspect_held(turn)
    if is_suspect_waiting:  # also behind a whole page of suspects there may be innocent ones
        rows = await turn.rows("ready_innocents", lane.name, turn.now, LONE_FROM, limit + 1)
    aside = [row for row in rows[:limit] if row[6] in paused_categories]
    await turn.run_many("set_delivery_aside", [row[:3] for row in aside])
    chosen = _alone_if_suspect([row for row in rows[:limit] if row[6] not in paused_categories])
    grant = await ask_account(turn, lane.account, terms, len(chosen), lease)
    chosen = chosen[: grant.count]
    first = turn.next_number(len(chosen))
    held = [_Held(row, first + n) for n, row in enumerate(chosen)]
    await turn.run_many("claim_delivery", [(until, h.fence, *h.row[:3]) for h in held])
    has_more = is_suspect_waiting or len(rows) > len(chosen) + len(aside)
    following = None if has_more else await turn.one("next_due_delivery", lane.name, turn.now)
    return _Turned(held, until, None if following is None else Instant(following[0]), has_more, grant)


async def _is_suspect_held(turn: Turn) -> bool:
    """A suspect comes alone, and only while no other is claimed in any lane: if the process dies, one alone has to
    answer for it. Else an innocent one beside it would be counted, and at last given up, with it."""
    return await turn.one("held_suspect", turn.now, LONE_FROM) is not None


def _alone_if_suspect(rows: list[Row]) -> list[Row]:
    for index, row in enumerate(rows):
        if row[3] >= LONE_FROM:
            return rows[:index] or [row]
    return rows


def _read_expired(row: Row) -> tuple[Instant, Expired]:
    due_at, tenant, raw, endpoint_id, lane, fence, claims, tries, category, expires_at, wanted_at = row
    key = DeliveryKey(tenant, NotificationId(raw), EndpointId(endpoint_id))
    expires_at = as_instant(expires_at)
    return Instant(due_at), Expired(key, read_lane(lane), fence, claims, tries, category, expires_at, wanted_at)
