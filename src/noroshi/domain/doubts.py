"""Doubts after a restore: what may have been sent after the backup was taken, and cannot be known (W31)."""

from typing import NamedTuple


class Waiting(NamedTuple):
    deliveries: int
    holds: int
    batches: int
    """With recipients left to decide."""


class Doubts(NamedTuple):
    """`claimed` were being sent when the backup was taken; `requests` were enqueued and not yet taken. The others by
    when they are due: by the time of the backup, so they were all but certainly sent; until it was restored, so they
    were if the old system still ran; or later, so they were not."""

    claimed: int
    due_by_backup: Waiting
    due_by_restore: Waiting
    due_later: Waiting
    requests: int = 0
