"""Exact counts: what a server was given and what it left behind in; nothing, or the first sum that is wrong, out.

Everyone asked for is decided once, as P1 says they must be; what was accepted waits or was sent, once each.
"""

from collections import Counter
from uuid import UUID

import apsw

from bench.cast import is_reachable, number_of
from bench.noop import read_tally
from bench.population import Population, one_number
from bench.server import Noroshi, tally_of
from noroshi.domain.ids import last_id_of
from noroshi.domain.states import Status


class WrongCountError(Exception):
    """Something was lost, doubled or invented: the figure is worth nothing."""


def check_counts(server: Noroshi, *, is_drained: bool, more_recipients: int = 0, account: str = "noop") -> None:
    """`more_recipients`: put into the store beside the API, as due batches of one. Of another account than `noop` the
    caller knows what the provider took."""
    population, reader = server.population, server.reader()
    asked = sum(report.recipients for report in server.reports) + more_recipients
    batches = sum(report.requests for report in server.reports) + more_recipients
    decided = _decided(reader, population)
    accepted = decided[True]
    same("batches kept", _new_batches(reader, population), wanted=batches)
    same("notifications stored", decided.total(), wanted=asked)
    answered = sum(report.accepted for report in server.reports)
    if not answered <= accepted:
        raise WrongCountError(f"{answered} were answered as accepted, {accepted} are stored so")
    waiting, sent = _deliveries(reader), _sent(reader, population)
    same("accepted, sent or waiting", sent + waiting, wanted=accepted)
    if is_drained:
        same("deliveries left", waiting, wanted=0)
    if account == "noop":
        _check_tally(population, sent)
    question = "SELECT count(*) FROM message_ids WHERE tenant = 1 AND account = ? AND notification_id > ?"
    same("message ids kept", one_number(reader, question, account, _end_of_history(population)), wanted=sent)


def _decided(reader: apsw.Connection, population: Population) -> Counter[bool]:
    """New notifications by whether they were accepted; each must be as its person's number says."""
    decided: Counter[bool] = Counter()
    rows = reader.execute(
        "SELECT user_id, status FROM notifications WHERE tenant = 1 AND notification_id > ?",
        (_end_of_history(population),),
    )
    for user_id, status in rows:
        is_accepted = status != Status.SUPPRESSED
        if is_accepted != is_reachable(number_of(user_id)):
            raise WrongCountError(f"{user_id} has the status {Status(status).name}")
        decided[is_accepted] += 1
    return decided


def _new_batches(reader: apsw.Connection, population: Population) -> int:
    """Of those that were due by the last decision."""
    now = one_number(reader, "SELECT max(at) FROM notifications WHERE tenant = 1")
    question = "SELECT count(*) FROM batches WHERE tenant = 1 AND batch_id > ? AND due_at <= ? AND state = ?"
    same("batches undecided", one_number(reader, question, population.last_batch, now, 0), wanted=0)
    return one_number(reader, question, population.last_batch, now, 1)


def _deliveries(reader: apsw.Connection) -> int:
    """Those of the run: what has been tried before waits for a retry long after it."""
    return one_number(reader, "SELECT count(*) FROM deliveries WHERE tries = 0")


def _sent(reader: apsw.Connection, population: Population) -> int:
    question = "SELECT count(*) FROM notifications WHERE tenant = 1 AND notification_id > ? AND status = ?"
    return one_number(reader, question, _end_of_history(population), Status.SENT)


def _check_tally(population: Population, sent: int) -> None:
    """What the provider says it took, against what the store says was sent."""
    taken = [this for this, _ in read_tally(tally_of(population))]
    same("messages the provider took", len(taken), wanted=sent)
    same("messages it took once", len(set(taken)), wanted=sent)


def _end_of_history(population: Population) -> bytes:
    return last_id_of(population.last_batch)


def batch_bytes(shown: str) -> bytes:
    """The part of a shown batch id that all its notifications share."""
    return UUID(shown).bytes[:13]


def same(what: str, *found: int, wanted: int) -> None:
    """Each that was found is what was wanted."""
    if set(found) != {wanted}:
        raise WrongCountError(f"{what}: {', '.join(map(str, found))}, not {wanted}")
