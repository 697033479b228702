"""Sums over a batch (N4.3): counts per channel and status in, five figures that add up to their total out."""

from collections.abc import Set as AbstractSet

from msgspec import Struct

from noroshi.domain.records import StatusCounts
from noroshi.domain.states import Status

_REACHED = frozenset({Status.DELIVERED, Status.OPENED, Status.CLICKED, Status.COMPLAINED})
_LOST = frozenset({Status.DEAD_LETTERED, Status.BOUNCED})


class BatchSums(Struct):
    """In notifications (user x channel)."""

    delivered: int = 0
    failed: int = 0
    pending: int = 0
    suppressed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.delivered + self.failed + self.pending + self.suppressed + self.cancelled

    @property
    def delivery_rate(self) -> float:
        return self.delivered / max(self.total, 1)


def undecided_notifications(counts: StatusCounts) -> int:
    """What the recipients not yet addressed may become at most."""
    return counts.undecided_recipients * len(counts.channels)


def sum_up(counts: StatusCounts, reporting_channels: AbstractSet[str]) -> BatchSums:
    """SENT is delivered where the channel can never tell more, and pending where a receipt is awaited."""
    sums = BatchSums()
    for (channel, status), count in counts.by_channel.items():
        if status in _REACHED or (status is Status.SENT and channel not in reporting_channels):
            sums.delivered += count
        elif status in _LOST:
            sums.failed += count
        elif status is Status.SUPPRESSED:
            sums.suppressed += count
        elif status is Status.CANCELLED:
            sums.cancelled += count
        else:
            sums.pending += count
    if counts.is_cancelled:
        sums.cancelled += undecided_notifications(counts)
    else:
        sums.pending += undecided_notifications(counts)
    return sums
