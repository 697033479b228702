"""The sweep tables: for every crash point of a store the workload that reaches it; each row stands for `.before` and
`.after`."""

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
    "commit.add_reservation": Row(w.RESERVE),
    "commit.add_template": Row(w.TEMPLATES),
    "commit.address": Row(w.SEND_TO_MANY, nth=3),
    "commit.answer": Row(w.ANSWER_LATE),
    "commit.block_account": Row(w.LIMIT),
    "commit.cancel_begin": Row(w.CANCEL),
    "commit.cancel_page": Row(w.CANCEL, nth=4),
    "commit.catch": Row(w.CATCH, flying=AFTER),
    "commit.claim": Row(w.SEND),
    "commit.claim_job": Row(w.RESERVE),
    "commit.discard": Row(w.DISCARD),
    "commit.discard_doubtful": Row(w.RESUME),
    "commit.end_trial": Row(w.TRY_NOBODY),
    "commit.forget_inbox": Row(w.TIDY),
    "commit.forget_keys": Row(w.TIDY),
    "commit.forget_requests": Row(w.TIDY),
    "commit.hear_reach": Row(w.HEAR),
    "commit.mark_inbox": Row(w.INBOX),
    "commit.move_breaker": Row(w.BREAK),
    "commit.pause": Row(w.PAUSE),
    "commit.put_customer": Row(w.RESERVE),
    "commit.put_farm": Row(w.RESERVE),
    "commit.put_preferences": Row(w.PEOPLE),
    "commit.put_user": Row(w.PEOPLE),
    "commit.record_job": Row(w.RESERVE),
    "commit.register_device": Row(w.PEOPLE),
    "commit.release_lease": Row(w.RESERVE),
    "commit.remove_device": Row(w.PEOPLE),
    "commit.remove_user": Row(w.PEOPLE),
    "commit.renew": Row(w.RENEW, flying=BEFORE | AFTER),
    "commit.replay": Row(w.REPLAY),
    "commit.resume": Row(w.PAUSE, nth=2),
    "commit.resume_restored": Row(w.RESUME),
    "commit.retry_request": Row(w.ENQUEUE),
    "commit.revoke_key": Row(w.KEYS),
    "commit.rollback_template": Row(w.TEMPLATES),
    "commit.schedule_cancel_completed": Row(w.RESERVE),
    "commit.schedule_for_reservation": Row(w.RESERVE),
    "commit.settle": Row(w.SEND, flying=BEFORE),
    "commit.spend_ticket": Row(w.INBOX),
    "commit.take_lease": Row(w.RESERVE),
    "commit.take_requests": Row(w.ENQUEUE, nth=2),
    "commit.unpause": Row(w.PAUSE),
    "push.line": Row(w.RESERVE),
    "send.ledger": Row(w.SEND, flying=AFTER),
}

OF_ONE_STORE: dict[str, dict[str, Row]] = {
    "sqlite": {
        "commit.forget_history": Row(w.TIDY),
    },
    "postgres": {
        "commit.forget_batches": Row(w.TIDY),
        "commit.forget_letters": Row(w.TIDY),
        "commit.forget_message_ids": Row(w.TIDY),
        "commit.take_duty": Row(w.SEND),
    },
}
"""Where the stores differ: a file forgets row by row and a database by the day, and only there are duties shared."""

POINTS: dict[str, dict[str, Row]] = {
    kind: {f"{name}.{edge}": row for name, row in {**TABLE, **more}.items() for edge in EDGES}
    for kind, more in OF_ONE_STORE.items()
}

UNUSED = {
    f"commit.{name}.{edge}": "marks are put and removed within larger commits; nothing but a test does it alone"
    for name in ("put_mark", "remove_mark")
    for edge in EDGES
}

ELSEWHERE: dict[str, dict[str, str]] = {
    "sqlite": {},
    "postgres": {
        f"commit.forget_history.{edge}": "a database drops whole days instead (storage/postgres/history.py)"
        for edge in EDGES
    },
}
"""What code that both stores share does on the other alone."""
