"""Settling: settlements in, one commit's worth of rows out; the result of a lost claim never becomes state."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from noroshi.domain.addressing import LedgerRow
from noroshi.domain.deliveries import DeliveryKey, Settled, Settlement, Verdict
from noroshi.domain.ids import BatchId, NotificationId, TenantId, batch_of
from noroshi.domain.instants import iso
from noroshi.domain.records import Alert
from noroshi.domain.states import Status
from noroshi.storage.sqlite.addressing import write_ledger
from noroshi.storage.sqlite.connection import Row
from noroshi.storage.sqlite.writer import Turn

_encode = msgspec.json.Encoder().encode

_READY_AGAIN = {
    Verdict.RETRY: "retry_delivery",
    Verdict.RELEASE: "release_delivery",
    Verdict.RESEND: "resend_delivery",
}


def settle(turn: Turn, settlements: Sequence[Settlement], alerts: Sequence[Alert]) -> Settled:
    """Writes each settlement whose claim still holds; the others only as late results in the ledger."""
    withdrawn = _withdrawn(turn, settlements)
    by_verdict: dict[Verdict, list[Settlement]] = {}
    for settlement in settlements:
        by_verdict.setdefault(_verdict(settlement, withdrawn), []).append(settlement)
    ledger: list[LedgerRow] = []
    late: list[Settlement] = []
    finished = 0
    for verdict, group in by_verdict.items():
        if verdict in _READY_AGAIN:
            late += _make_ready(turn, verdict, group, ledger)
        else:
            lost = _finish(turn, verdict, group, ledger)
            finished += len(group) - len(lost)
            late += lost
    ledger.extend(_row(settlement, "late_result") for settlement in late)
    write_ledger(turn, ledger)
    turn.run_many("raise_alert", [(a.tenant, a.kind, a.subject, a.severity, turn.now) for a in alerts])
    dead = sum(1 for row in ledger if row.kind == "dead_lettered")
    return Settled(finished, tuple(settlement.key for settlement in late), dead)


def _withdrawn(turn: Turn, settlements: Iterable[Settlement]) -> set[tuple[TenantId, BatchId]]:
    """The batches among those to be tried again that have been cancelled meanwhile."""
    batches = {(s.key.tenant, batch_of(s.key.notification_id)) for s in settlements if s.verdict in _READY_AGAIN}
    if not batches:
        return set()
    asked = _encode([(tenant, batch_id.hex()) for tenant, batch_id in batches]).decode()
    return {(row[0], BatchId(row[1])) for row in turn.rows("are_cancelled", asked)}


def _verdict(settlement: Settlement, withdrawn: set[tuple[TenantId, BatchId]]) -> Verdict:
    if settlement.verdict in _READY_AGAIN and withdrawn:
        key = settlement.key
        if (key.tenant, batch_of(key.notification_id)) in withdrawn:
            return Verdict.CANCELLED
    return settlement.verdict


def _make_ready(turn: Turn, verdict: Verdict, group: Sequence[Settlement], ledger: list[LedgerRow]) -> list[Settlement]:
    rows = [(*s.key, s.fence, s.due_at) for s in group]
    kept = {DeliveryKey(*row) for row in turn.run_many(_READY_AGAIN[verdict], rows)}
    ours = [s for s in group if s.key in kept]
    if verdict is Verdict.RETRY:
        turn.run_many("notification_retrying", [s.key[:2] for s in ours])
        ledger.extend(_row(s, "failed") for s in ours)
    elif verdict is Verdict.RESEND:
        ledger.extend(_row(s, "outcome_unknown") for s in ours)
    return [s for s in group if s.key not in kept]


def _finish(turn: Turn, verdict: Verdict, group: Sequence[Settlement], ledger: list[LedgerRow]) -> list[Settlement]:
    removed = {
        DeliveryKey(*row[:3]): row for row in turn.run_many("finish_delivery", [(*s.key, s.fence) for s in group])
    }
    ours = [s for s in group if s.key in removed]
    if verdict is Verdict.SENT:
        _finish_sent(turn, ours, removed)
        ledger.extend(_row(s, "sent") for s in ours)
    elif verdict is Verdict.DEAD:
        _finish_dead(turn, ours, removed)
        ledger.extend(_row(s, "dead_lettered") for s in ours)
    elif verdict is Verdict.SUPPRESSED:
        _end(turn, ours, Status.SUPPRESSED)
        ledger.extend(_row(s, "suppressed") for s in ours)
    else:
        _end(turn, ours, Status.CANCELLED)
        ledger.extend(_row(s, "cancelled") for s in ours)
    return [s for s in group if s.key not in removed]


def _finish_sent(turn: Turn, ours: Sequence[Settlement], removed: dict[DeliveryKey, Row]) -> None:
    turn.run_many("notification_sent", [(s.at, s.key.tenant, s.key.notification_id) for s in ours])
    turn.run_many(
        "put_message_id",
        [
            (s.key.tenant, removed[s.key][3].split(".")[1], s.message_id, s.key.notification_id, s.key.endpoint_id)
            for s in ours
            if s.message_id
        ],
    )


def _finish_dead(turn: Turn, ours: Sequence[Settlement], removed: dict[DeliveryKey, Row]) -> None:
    first = turn.next_number(len(ours))
    rows: list[tuple[Any, ...]] = []
    for number, s in enumerate(ours):
        *_, lane, user_id, category, template_row, expires_at, wanted_at, tries = removed[s.key]
        was_tried = s.started_at is not None
        rows.append(
            (*s.key, lane, user_id, category, template_row, expires_at, wanted_at)
            + (s.code, s.error, tries + was_tried, s.at, first + number)
        )
    turn.run_many("put_dead_letter", rows)
    turn.run_many(
        "notification_ended",
        [(*s.key[:2], Status.DEAD_LETTERED, s.code, s.started_at is not None, False) for s in ours],
    )
    gone = [(s.key.tenant, removed[s.key][4], s.key.endpoint_id) for s in ours if s.is_gone]
    turn.run_many("deactivate_endpoint", gone)


def _end(turn: Turn, ours: Sequence[Settlement], status: Status) -> None:
    turn.run_many(
        "notification_ended", [(*s.key[:2], status, s.code or None, False, s.started_at is None) for s in ours]
    )


def _row(settlement: Settlement, kind: str) -> LedgerRow:
    detail: dict[str, Any] = {}
    if settlement.started_at is not None:
        detail["started_at"] = iso(settlement.started_at)
    if settlement.message_id:
        detail["message_id"] = settlement.message_id
    if settlement.code:
        detail["code"] = settlement.code
    if settlement.error:
        detail["error"] = settlement.error
    if settlement.due_at is not None:
        detail["due_at"] = iso(settlement.due_at)
    if kind == "late_result":
        detail["result"] = settlement.verdict.name.lower()
    if settlement.key.endpoint_id:
        detail["endpoint"] = settlement.key.endpoint_id
    return LedgerRow(
        settlement.key.tenant,
        NotificationId(settlement.key.notification_id),
        settlement.at,
        kind,
        _encode(detail).decode() if detail else None,
    )
