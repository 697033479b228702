"""The small records: pauses, API keys, alerts, and what the catcher kept."""

from collections.abc import Sequence
from typing import Any

import msgspec

from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import NotificationId, TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.records import ApiKey, CaughtMessage, KeyScope, Pause, PauseKind, RaisedAlert
from noroshi.storage.attachments import read_attachments
from noroshi.storage.turns import Readings, Row, Turn, Turns, as_instant

KEPT_CAUGHT = 10_000
_FAR = 1 << 62

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class StoredPauses:
    """Implements ports/pauses.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def add(self, tenant: TenantId, kind: PauseKind, name: str | None, by: str) -> Pause:
        async def work(turn: Turn) -> Pause:
            await turn.run("add_pause", tenant, turn.next_number(), kind, name or "", turn.now, by)
            return _read_pause((await turn.rows("find_pause", tenant, kind, name or ""))[0])

        return await self._turns.turn("pause", work, is_urgent=True)

    async def list_pauses(self, tenant: TenantId, after: int, limit: int) -> list[Pause]:
        rows = await self._readings.read(lambda reader: reader.rows("list_pauses", tenant, after, limit))
        return [_read_pause(row) for row in rows]

    async def remove(self, tenant: TenantId, pause_id: int) -> bool:
        return await self._turns.turn(
            "unpause", lambda turn: turn.has_changed("remove_pause", tenant, pause_id), is_urgent=True
        )

    async def in_force(self) -> list[Pause]:
        rows = await self._readings.read(lambda reader: reader.rows("pauses_in_force"))
        return [_read_pause(row) for row in rows]


def _read_pause(row: Row) -> Pause:
    pause_id, kind, name, created_at, created_by = row
    return Pause(pause_id, PauseKind(kind), name or None, Instant(created_at), created_by)


class StoredKeys:
    """Implements ports/keys.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def add(self, key: ApiKey) -> None:
        row = (key.tenant, key.key_id, key.name, ",".join(key.scopes), key.digest, key.created_at, key.expires_at)
        await self._turns.turn("add_key", lambda turn: turn.run("add_key", *row, key.per_minute))

    async def find(self, key_id: str) -> ApiKey | None:
        row = await self._readings.read(lambda reader: reader.one("find_key", key_id))
        return None if row is None else _read_key(row)

    async def list_keys(self, tenant: TenantId) -> list[ApiKey]:
        rows = await self._readings.read(lambda reader: reader.rows("list_keys", tenant))
        return [_read_key(row) for row in rows]

    async def revoke(self, tenant: TenantId, key_id: str) -> bool:
        return await self._turns.turn(
            "revoke_key", lambda turn: turn.has_changed("revoke_key", turn.now, tenant, key_id), is_urgent=True
        )


def _read_key(row: Row) -> ApiKey:
    key_id, tenant, name, scopes, digest, created_at, expires_at, revoked_at, per_minute = row
    return ApiKey(
        key_id=key_id,
        tenant=tenant,
        name=name,
        scopes=tuple(KeyScope(scope) for scope in scopes.split(",") if scope),
        digest=digest,
        created_at=Instant(created_at),
        expires_at=as_instant(expires_at),
        revoked_at=as_instant(revoked_at),
        per_minute=per_minute,
    )


class StoredAlerts:
    """Implements ports/alerts.py."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    async def list_alerts(
        self, tenant: TenantId, before: tuple[Instant, str, str] | None, limit: int
    ) -> list[RaisedAlert]:
        place = before or (_FAR, "", "")
        rows = await self._readings.read(lambda reader: reader.rows("list_alerts", tenant, *place, limit))
        return [
            RaisedAlert(kind, severity, subject, Instant(since), Instant(last_at), count)
            for kind, severity, subject, since, last_at, count in rows
        ]


def masked(address: str) -> str:
    """An address nobody can write to: enough to recognise, too little to leak."""
    name, at, domain = address.partition("@")
    if at:
        return f"{name[:1]}***@{domain}"
    return f"***{address[-2:]}" if len(address) > 4 else "***" if address else ""


class StoredCaught:
    """Implements ports/caught.py."""

    def __init__(self, turns: Turns, readings: Readings) -> None:
        self._turns = turns
        self._readings = readings

    async def keep_caught(self, attempts: Sequence[Attempt]) -> None:
        await self._turns.turn("catch", lambda turn: _keep_caught(turn, attempts))

    async def list_caught(
        self,
        tenant: TenantId,
        channel: str | None,
        user_id: str | None,
        before: int | None,
        limit: int,
        *,
        after: int = 0,
    ) -> list[CaughtMessage]:
        last = _FAR if before is None else before
        rows = await self._readings.read(
            lambda reader: reader.rows("list_caught", tenant, last, channel, user_id, limit, after)
        )
        return [_read_caught(row) for row in rows]


async def _keep_caught(turn: Turn, attempts: Sequence[Attempt]) -> None:
    first = turn.next_number(len(attempts))
    rows: list[tuple[Any, ...]] = []
    for number, attempt in enumerate(attempts):
        content = attempt.content
        rows.append(
            (
                *(attempt.key.tenant, first + number, attempt.lane.channel, attempt.recipient.user_id),
                *(attempt.key.notification_id, masked(attempt.address), content.subject, content.title, content.body),
                *(_encode(content.metadata).decode(), turn.now),
                _encode(attempt.attachments) if attempt.attachments else None,
            )
        )
    await turn.run_many("put_caught", rows)
    await turn.run_many("trim_caught", [(tenant, KEPT_CAUGHT) for tenant in {a.key.tenant for a in attempts}])


def _read_caught(row: Row) -> CaughtMessage:
    caught_id, channel, user_id, raw, address, subject, title, body, metadata, caught_at, attachments = row
    return CaughtMessage(
        caught_id=caught_id,
        channel=channel,
        user_id=user_id,
        notification_id=NotificationId(raw),
        address=address,
        subject=subject,
        title=title,
        body=body,
        metadata=_decode_object(metadata),
        caught_at=Instant(caught_at),
        attachments=read_attachments(attachments),
    )
