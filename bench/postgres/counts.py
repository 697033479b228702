"""Exact counts on PostgreSQL: what a server was given and left behind in; nothing, or the first wrong sum, out."""

from bench.cast import is_reachable, number_of
from bench.counts import WrongCountError, same
from bench.noop import read_tally
from bench.postgres.server import PgNoroshi
from noroshi.domain.ids import last_id_of
from noroshi.domain.states import Status

_DECIDED = "SELECT user_id, status, count(*) FROM notifications WHERE notification_id > %s GROUP BY user_id, status"


def check_counts(server: PgNoroshi, *, is_drained: bool) -> None:
    stored, end = server.stored, last_id_of(server.stored.last_batch)
    same("batches undecided", stored.number("SELECT count(*) FROM batches WHERE state = 0"), wanted=0)
    question = "SELECT count(*) FROM batches WHERE batch_id > %s"
    same("batches kept", stored.number(question, end), wanted=sum(report.requests for report in server.reports))
    accepted = decided = 0
    with stored.connect() as connection:
        for user_id, status, count in connection.execute(_DECIDED, (end,)):
            is_accepted = status != Status.SUPPRESSED
            if is_accepted != is_reachable(number_of(str(user_id))):
                raise WrongCountError(f"{user_id} has the status {status}")
            decided += int(str(count))
            accepted += is_accepted * int(str(count))
    same("notifications stored", decided, wanted=sum(report.recipients for report in server.reports))
    waiting = stored.number("SELECT count(*) FROM deliveries")
    sent = stored.number("SELECT count(*) FROM notifications WHERE notification_id > %s AND status = 60", end)
    same("accepted, sent or waiting", sent + waiting, wanted=accepted)
    if is_drained:
        same("deliveries left", waiting, wanted=0)
    taken = [this for this, _ in read_tally(server.tally)]
    same("messages the provider took", len(taken), wanted=sent)
    same("messages it took once", len(set(taken)), wanted=sent)
