"""The five words of a world: its callers, its store and its provider go in, one reckoning comes out."""

from collections.abc import Iterable, Iterator

from noroshi.domain.ids import BatchId, notification_id
from noroshi.domain.states import Status
from tests.faults.machinery.reckoning import Answered, Asked, Crash, Ended, Reckoning, reckon
from tests.faults.simulation.asks import Ask
from tests.faults.simulation.facts import BatchFacts, Facts, NotificationFacts
from tests.faults.simulation.population import BROKEN, CHANNELS, PEOPLE, expected_body
from tests.faults.simulation.provider import Provider

_DECISIVE = {Status.SUPPRESSED: "suppressed", Status.CANCELLED: "cancelled"}


def sort_out(facts: Facts, asks: Iterable[Ask], provider: Provider, crashes: Iterable[Crash]) -> Reckoning:
    by_name: dict[str, list[BatchFacts]] = {}
    for batch in facts.batches.values():
        by_name.setdefault(batch.name, []).append(batch)
    asked = [one for ask in asks for one in _asked(ask, by_name.get(ask.name, []))]
    ended = [_ended(one) for one in facts.notifications.values()]
    return reckon(asked, ended, (taking.as_entry() for taking in provider.takings), crashes)


def _asked(ask: Ask, kept: list[BatchFacts]) -> Iterator[Asked]:
    """Each notification of the batches that were promised, and of those that were kept without a word."""
    stored = {batch.batch_id: batch for batch in kept}
    for batch_id in {*ask.batch_ids, *stored}:
        answered = Answered.ACCEPTED if batch_id in ask.batch_ids else Answered.NOTHING
        if ask.refused is not None:
            answered = Answered.REFUSED
        yield from _of_batch(ask, batch_id, stored.get(batch_id), answered)


def _of_batch(ask: Ask, batch_id: BatchId, batch: BatchFacts | None, answered: Answered) -> Iterator[Asked]:
    recipients = list(dict.fromkeys(ask.request.user_ids))
    channels = batch.channels if batch is not None else _channels(ask)
    if batch is not None and batch.is_cancelled:
        recipients = recipients[: batch.decided]  # withdrawn before they became notifications
    for position, user_id in enumerate(recipients):
        if user_id not in PEOPLE:
            continue
        body = None if ask.request.template_id == BROKEN else expected_body(ask.text, user_id)
        for number, channel in enumerate(channels):
            this = notification_id(batch_id, position, number)
            yield Asked(this, user_id, channel, answered, content_hash=body)


def _channels(ask: Ask) -> tuple[str, ...]:
    wanted = ask.request.channels
    return tuple(wanted) if isinstance(wanted, list) else tuple(sorted(CHANNELS))


def _ended(one: NotificationFacts) -> Ended:
    noted = one.noted(_DECISIVE[one.status]) if one.status in _DECISIVE else []
    return Ended(one.notification_id, one.status, noted[-1].at if noted else None)
