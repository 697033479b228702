"""The store as it stands when a world is over: its rows go in, what the invariants ask about comes out."""

import json
from collections import Counter
from typing import Any

import apsw
from msgspec import Struct, field

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import DEFAULT_TENANT, BatchId, NotificationId, batch_of
from noroshi.domain.instants import Instant
from noroshi.domain.priorities import Priority
from noroshi.domain.states import Status

Row = tuple[Any, ...]


class Noted(Struct, frozen=True):
    """One row of the ledger; `endpoint` is 0 where none is named."""

    at: Instant
    kind: str
    detail: dict[str, Any]

    @property
    def endpoint(self) -> int:
        return int(self.detail.get("endpoint", 0))


class BatchFacts(Struct, frozen=True):
    batch_id: BatchId
    name: str
    channels: tuple[str, ...]
    priority: Priority
    category: str
    total: int
    recipients: int
    decided: int
    accepted: int
    rejected: int
    reasons: dict[str, int]
    state: int
    user_ids: list[str]
    rejections: int

    @property
    def is_cancelled(self) -> bool:
        return self.state >= 2


class NotificationFacts(Struct, frozen=True):
    notification_id: NotificationId
    user_id: str
    channel: str
    status: Status
    reason: str | None
    at: Instant
    content_hash: int
    standing: int
    batch: BatchFacts
    trail: list[Noted]

    def noted(self, kind: str) -> list[Noted]:
        return [one for one in self.trail if one.kind == kind]


class DeadFacts(Struct, frozen=True):
    key: DeliveryKey
    category: str
    channel: str
    code: str
    tries: int


class Facts(Struct):
    """`left` counts what is not finished, by table."""

    batches: dict[BatchId, BatchFacts] = field(default_factory=dict)
    notifications: dict[NotificationId, NotificationFacts] = field(default_factory=dict)
    strays: list[NotificationId] = field(default_factory=list)
    dead_letters: list[DeadFacts] = field(default_factory=list)
    message_ids: Counter[NotificationId] = field(default_factory=Counter)
    transitions: list[tuple[NotificationId, Status, Status]] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)


def read_facts(keeper: apsw.Connection) -> Facts:
    facts = Facts(batches=_read_batches(keeper))
    trails: dict[bytes, list[Noted]] = {}
    for raw, at, kind, detail in keeper.execute("SELECT notification_id, at, kind, detail FROM ledger ORDER BY seq"):
        trails.setdefault(raw, []).append(Noted(at, kind, json.loads(detail) if detail else {}))
    for row in keeper.execute(
        "SELECT notification_id, user_id, channel, status, reason, at, content_hash, standing FROM notifications"
    ):
        raw, user_id, channel, status, reason, at, content_hash, standing = row
        batch = facts.batches.get(batch_of(raw))
        if batch is None:
            facts.strays.append(raw)
            continue
        facts.notifications[raw] = NotificationFacts(
            *(raw, user_id, channel, Status(status), reason, at, content_hash, standing, batch, trails.get(raw, []))
        )
    for raw, endpoint, category, lane, code, tries in keeper.execute(
        "SELECT notification_id, endpoint_id, category, lane, code, tries FROM dead_letters"
    ):
        key = DeliveryKey(DEFAULT_TENANT, raw, endpoint)
        facts.dead_letters.append(DeadFacts(key, category, lane.split(".")[0], code, tries))
    facts.message_ids.update(row[0] for row in keeper.execute("SELECT notification_id FROM message_ids"))
    for raw, before, after in keeper.execute("SELECT notification_id, before, after FROM sim_transitions"):
        facts.transitions.append((raw, Status(before), Status(after)))
    facts.left = {
        "deliveries": _count(keeper, "deliveries"),
        "holds": _count(keeper, "holds"),
        "undecided batches": _count(keeper, "batches WHERE state IN (0, 2)"),
    }
    return facts


def _read_batches(keeper: apsw.Connection) -> dict[BatchId, BatchFacts]:
    rows = keeper.execute(
        """SELECT b.batch_id, b.digest_key, b.channels, b.priority, b.category, b.total, b.recipients,
            b.next_recipient, b.accepted, b.rejected, b.reasons, b.state, d.user_ids,
            (SELECT count(*) FROM rejections r WHERE r.batch_id = b.batch_id)
        FROM batches b LEFT JOIN batch_bodies d ON d.batch_id = b.batch_id"""
    )
    return {BatchId(row[0]): _read_batch(row) for row in rows}


def _read_batch(row: Row) -> BatchFacts:
    raw, name, channels, priority, category, total, recipients, decided = row[:8]
    accepted, rejected, reasons, state, user_ids, rejections = row[8:]
    return BatchFacts(
        *(BatchId(raw), name, tuple(channels.split(",")), Priority(priority), category, total, recipients, decided),
        *(accepted, rejected, json.loads(reasons), state, json.loads(user_ids or b"[]"), rejections),
    )


def _count(keeper: apsw.Connection, rows: str) -> int:
    return int(keeper.execute(f"SELECT count(*) FROM {rows}").get)  # noqa: S608 - ours
