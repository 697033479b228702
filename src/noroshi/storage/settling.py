"""Settling: settlements in, one commit's worth of rows out; the result of a lost claim never becomes state."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from noroshi.domain.addressing import LedgerRow
from noroshi.domain.deliveries import DeliveryKey, Settled, Settlement, Verdict
from noroshi.domain.ids import BatchId, TenantId, batch_of
from noroshi.domain.inbox import Filled, Owner
from noroshi.domain.records import Alert
from noroshi.domain.states import Status
from noroshi.ports.sealer import Sealer
from noroshi.storage.addressing import write_ledger
from noroshi.storage.inbox import fill_inboxes, lock_people
from noroshi.storage.turns import Row, Turn

_encode = msgspec.json.Encoder().encode

LATE = "late_result"

_KINDS = {
    Verdict.SENT: "sent",
    Verdict.DELIVERED: "delivered",
    Verdict.DEAD: "dead_lettered",
    Verdict.SUPPRESSED: "suppressed",
    Verdict.CANCELLED: "cancelled",
}
_READY_AGAIN = {
    Verdict.RETRY: "retry_delivery",
    Verdict.RELEASE: "release_delivery",
    Verdict.RESEND: "resend_delivery",
}


async def settle(turn: Turn, sealer: Sealer, settlements: Sequence[Settlement], alerts: Sequence[Alert]) -> Settled:
    """Writes each settlement whose claim still holds; the others only as late results in the ledger."""
    withdrawn = await _withdrawn(turn, settlements)
    by_verdict: dict[Verdict, list[Settlement]] = {}
    for settlement in settlements:
        by_verdict.setdefault(_verdict(settlement, withdrawn), []).append(settlement)
    ledger: list[LedgerRow] = []
    filled: list[Filled] = []
    late: list[Settlement] = []
    finished = 0
    for verdict, group in by_verdict.items():
        if verdict in _READY_AGAIN:
            late += await _make_ready(turn, verdict, group, ledger)
        elif verdict is Verdict.DELIVERED:
            lost = await _deliver(turn, sealer, group, ledger, filled)
            finished += len(group) - len(lost)
            late += lost
        else:
            lost = await _finish(turn, verdict, group, ledger)
            finished += len(group) - len(lost)
            late += lost
    # A claim that was only given back, or judged by two sweepers at once, tells nobody anything.
    ledger.extend(_row(settlement, LATE) for settlement in late if settlement.started_at is not None)
    await write_ledger(turn, ledger)
    await turn.run_many("raise_alert", [(a.tenant, a.kind, a.subject, a.severity, turn.now) for a in alerts])
    dead = sum(1 for row in ledger if row.kind == "dead_lettered")
    return Settled(finished, tuple(settlement.key for settlement in late), dead, tuple(filled))


async def _withdrawn(turn: Turn, settlements: Iterable[Settlement]) -> set[tuple[TenantId, BatchId]]:
    """The batches among those to be tried again that have been cancelled meanwhile; the others are not before our
    commit, or the cancel would look for deliveries before they are ready again and find none."""
    batches = {(s.key.tenant, batch_of(s.key.notification_id)) for s in settlements if s.verdict in _READY_AGAIN}
    if not batches:
        return set()
    rows = await turn.rows_for("hold_batches", sorted(batches))
    return {(tenant, BatchId(batch_id)) for tenant, batch_id, is_withdrawn in rows if is_withdrawn}


def _verdict(settlement: Settlement, withdrawn: set[tuple[TenantId, BatchId]]) -> Verdict:
    if settlement.verdict in _READY_AGAIN and withdrawn:
        key = settlement.key
        if (key.tenant, batch_of(key.notification_id)) in withdrawn:
            return Verdict.CANCELLED
    return settlement.verdict


async def _make_ready(
    turn: Turn, verdict: Verdict, group: Sequence[Settlement], ledger: list[LedgerRow]
) -> list[Settlement]:
    rows = [(*s.key, s.fence, s.due_at) for s in group]
    kept = {DeliveryKey(*row) for row in await turn.run_many(_READY_AGAIN[verdict], rows)}
    ours = [s for s in group if s.key in kept]
    if verdict is Verdict.RETRY:
        await turn.run_many("notification_retrying", [s.key[:2] for s in ours])
        ledger.extend(_row(s, "failed") for s in ours)
    elif verdict is Verdict.RESEND:
        ledger.extend(_row(s, "outcome_unknown") for s in ours)
    return [s for s in group if s.key not in kept]


async def _finish(
    turn: Turn, verdict: Verdict, group: Sequence[Settlement], ledger: list[LedgerRow]
) -> list[Settlement]:
    rows = await turn.run_many("finish_delivery", [(*s.key, s.fence) for s in group])
    pairs, late = _matched(group, rows)
    if verdict is Verdict.SENT:
        await _finish_sent(turn, pairs)
    elif verdict is Verdict.DEAD:
        await _finish_dead(turn, pairs)
    else:
        status = Status.SUPPRESSED if verdict is Verdict.SUPPRESSED else Status.CANCELLED
        ended = [(*s.key[:2], status, s.code or None, False, s.started_at is None) for s, _ in pairs]
        await turn.run_many("notification_ended", ended)
    kind = _KINDS[verdict]
    ledger.extend([_row(s, kind, _account(row)) for s, row in pairs])
    return late


async def _deliver(
    turn: Turn, sealer: Sealer, group: Sequence[Settlement], ledger: list[LedgerRow], filled: list[Filled]
) -> list[Settlement]:
    """Delivered is what an inbox keeps from this commit on; a person who was removed meanwhile has none."""
    rows = await turn.run_many("finish_delivery", [(*s.key, s.fence) for s in group])
    pairs, late = _matched(group, rows)
    drafts = [(Owner(s.key.tenant, row[4]), s) for s, row in pairs]
    keys = await lock_people(turn, (owner for owner, _ in drafts))
    kept = [(owner, s) for owner, s in drafts if owner in keys]
    filled += await fill_inboxes(turn, sealer, keys, kept)
    await turn.run_many("notification_delivered", [(s.at, s.key[0], s.key[1]) for _, s in kept])
    ledger.extend([_row(s, "delivered", _account(row)) for s, row in pairs if (s.key.tenant, row[4]) in keys])
    if len(kept) < len(pairs):
        gone = [(_gone(s), row) for s, row in pairs if (s.key.tenant, row[4]) not in keys]
        await _finish_dead(turn, gone)
        ledger.extend([_row(s, "dead_lettered", _account(row)) for s, row in gone])
    return late


def _gone(settlement: Settlement) -> Settlement:
    return settlement._replace(verdict=Verdict.DEAD, code="NO_DEVICE", error="the user was removed meanwhile")


def _matched(group: Sequence[Settlement], rows: Sequence[Row]) -> tuple[list[tuple[Settlement, Row]], list[Settlement]]:
    """Each settlement with the delivery it ended, and those whose claim was lost."""
    by_key: dict[tuple[Any, ...], Row] = {(row[0], row[1], row[2]): row for row in rows}
    return [(s, by_key[s.key]) for s in group if s.key in by_key], [s for s in group if s.key not in by_key]


async def _finish_sent(turn: Turn, pairs: Sequence[tuple[Settlement, Row]]) -> None:
    await turn.run_many("notification_sent", [(s.at, s.key[0], s.key[1]) for s, _ in pairs])
    named: list[tuple[Any, ...]] = []
    for s, row in pairs:
        if s.message_id:
            tenant, raw, endpoint_id = s.key
            named.append((tenant, _account(row), s.message_id, raw, endpoint_id))
    await turn.run_many("put_message_id", named)


async def _finish_dead(turn: Turn, pairs: Sequence[tuple[Settlement, Row]]) -> None:
    first = turn.next_number(len(pairs))
    rows: list[tuple[Any, ...]] = []
    for number, (s, row) in enumerate(pairs):
        *_, lane, user_id, category, template_row, expires_at, wanted_at, tries = row
        was_tried = s.started_at is not None
        rows.append(
            (
                *(*s.key, lane, user_id, category, template_row, expires_at, wanted_at),
                *(s.code, s.error, tries + was_tried, s.at, first + number),
            )
        )
    await turn.run_many("put_dead_letter", rows)
    await turn.run_many(
        "notification_ended",
        [(*s.key[:2], Status.DEAD_LETTERED, s.code, s.started_at is not None, False) for s, _ in pairs],
    )
    gone = [(s.key.tenant, row[4], s.key.endpoint_id) for s, row in pairs if s.is_gone]
    await turn.run_many("deactivate_endpoint", gone)


def _account(row: Row) -> str:
    """The account of a delivery's lane."""
    lane: str = row[3]
    return lane.split(".", 2)[1]


def _row(settlement: Settlement, kind: str, account: str | None = None) -> LedgerRow:
    """Times in the detail are instants: history shows them as times."""
    key, _, verdict, at, started_at, due_at, message_id, code, error, *_ = settlement
    detail: dict[str, Any] = {}
    if started_at is not None:
        detail["started_at"] = started_at
    if account is not None and started_at is not None:
        detail["account"] = account
    if message_id:
        detail["message_id"] = message_id
    if code:
        detail["code"] = code
    if error:
        detail["error"] = error
    if due_at is not None:
        detail["due_at"] = due_at
    if kind == LATE:
        detail["result"] = verdict.name.lower()
    if key[2]:
        detail["endpoint"] = key[2]
    return LedgerRow(key[0], key[1], at, kind, _encode(detail).decode() if detail else None)
