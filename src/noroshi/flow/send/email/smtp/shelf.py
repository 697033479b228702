"""The shelf: attempts in; the enclosures of their batches out, read and encoded once for all letters under way."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import BatchId, TenantId, batch_of
from noroshi.flow.send.email.smtp.enclosures import Enclosures
from noroshi.ports.attachments import Attachments

PORTION = 10_000_000
"""Bytes of the files that go into one portion, before they are encoded."""

ROOM = 16_000_000
"""Encoded bytes that are kept for the next letters of the same batches."""

Batch = tuple[TenantId, BatchId]


def batch_of_attempt(attempt: Attempt) -> Batch:
    return attempt.key.tenant, batch_of(attempt.key.notification_id)


def portions(attempts: Sequence[Attempt]) -> Iterator[list[Attempt]]:
    """The attempts in order, no more at once than have their files on the shelf together; mostly all of them."""
    portion: list[Attempt] = []
    batches: dict[Batch, int] = {}
    for attempt in attempts:
        if attempt.attachments and (batch := batch_of_attempt(attempt)) not in batches:
            size = sum(one.size for one in attempt.attachments)
            if batches and sum(batches.values()) + size > PORTION:
                yield portion
                portion, batches = [], {}
            batches[batch] = size
        portion.append(attempt)
    yield portion


class Shelf:
    """Keeps what was asked for last."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._kept: OrderedDict[Batch, Enclosures] = OrderedDict()

    async def fetch(self, attempts: Sequence[Attempt]) -> dict[Batch, Enclosures]:
        """Without those batches whose contents are no longer there. Raises what the store raises."""
        asked = {batch_of_attempt(attempt): attempt for attempt in attempts if attempt.attachments}
        found: dict[Batch, Enclosures] = {}
        for batch, attempt in asked.items():
            if batch not in self._kept:
                contents = await self._attachments.contents(*batch)
                if len(contents) != len(attempt.attachments):
                    continue
                # Another call may have been quicker: its letters have theirs under way.
                self._kept.setdefault(batch, Enclosures(attempt.attachments, contents))
            self._kept.move_to_end(batch)
            found[batch] = self._kept[batch]
            self._make_room()
        return found

    def _make_room(self) -> None:
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > ROOM:
            self._kept.popitem(last=False)
