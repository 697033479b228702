"""The sweep table: for every crash point the workload that reaches it; each row stands for `.before` and `.after`."""

from msgspec import Struct

from tests.faults.sweep import workloads as w
from tests.faults.sweep.points import EDGES


class Row(Struct, frozen=True):
    """Dies the `nth` time the point is reached: a start reaches some before anything is asked of it. `flying` are
    the edges at which a message is with the provider, or the row would prove nothing there."""

    workload: w.Workload
    nth: int = 1
    flying: frozenset[str] = frozenset()


BEFORE = frozenset({"before"})
AFTER = frozenset({"after"})

TABLE: dict[str, Row] = {
    "commit.accept": Row(w.SEND, nth=3),
    "commit.add_key": Row(w.KEYS),
    "commit.add_template": Row(w.TEMPLATES),
    "commit.address": Row(w.SEND_TO_MANY, nth=3),
    "commit.answer": Row(w.ANSWER_LATE),
    "commit.block_account": Row(w.LIMIT),
    "commit.cancel_begin": Row(w.CANCEL),
    "commit.cancel_page": Row(w.CANCEL, nth=4),
    "commit.catch": Row(w.CATCH, flying=AFTER),
    "commit.claim": Row(w.SEND),
    "commit.discard": Row(w.DISCARD),
    "commit.end_trial": Row(w.TRY_NOBODY),
    "commit.forget_history": Row(w.TIDY),
    "commit.forget_keys": Row(w.TIDY),
    "commit.forget_requests": Row(w.TIDY),
    "commit.move_breaker": Row(w.BREAK),
    "commit.pause": Row(w.PAUSE),
    "commit.put_preferences": Row(w.PEOPLE),
    "commit.put_user": Row(w.PEOPLE),
    "commit.register_device": Row(w.PEOPLE),
    "commit.remove_device": Row(w.PEOPLE),
    "commit.remove_user": Row(w.PEOPLE),
    "commit.renew": Row(w.RENEW, flying=BEFORE | AFTER),
    "commit.replay": Row(w.REPLAY),
    "commit.retry_request": Row(w.ENQUEUE),
    "commit.resume": Row(w.PAUSE, nth=2),
    "commit.revoke_key": Row(w.KEYS),
    "commit.rollback_template": Row(w.TEMPLATES),
    "commit.settle": Row(w.SEND, flying=BEFORE),
    "commit.take_requests": Row(w.ENQUEUE, nth=2),
    "commit.unpause": Row(w.PAUSE),
    "send.ledger": Row(w.SEND, flying=AFTER),
}

POINTS: dict[str, Row] = {f"{name}.{edge}": row for name, row in TABLE.items() for edge in EDGES}

ONLY_AMONG_OTHERS = {f"commit.take_duty.{edge}" for edge in EDGES}
"""Points that a process reaches only where others serve the same store."""
