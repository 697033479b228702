"""The life cycle of a notification (N5.4): its statuses and which may follow which."""

from enum import IntEnum


class Status(IntEnum):
    """Stored as a number, shown by name. The ranks of 60 and more order what receipts may raise."""

    CREATED = 0
    PROCESSING = 10
    SCHEDULED = 20
    QUEUED = 30
    SENDING = 40
    FAILED = 45
    RETRYING = 50
    SENT = 60
    DELIVERED = 61
    OPENED = 62
    CLICKED = 63
    BOUNCED = 64
    COMPLAINED = 65
    DEAD_LETTERED = 70
    SUPPRESSED = 80
    CANCELLED = 90


_RECEIVED = {Status.DELIVERED, Status.OPENED, Status.CLICKED, Status.BOUNCED, Status.COMPLAINED}
_DECIDED = {Status.SCHEDULED, Status.QUEUED, Status.SUPPRESSED, Status.DEAD_LETTERED, Status.CANCELLED}

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.CREATED: frozenset({Status.PROCESSING} | _DECIDED),
    Status.PROCESSING: frozenset(_DECIDED),
    Status.SCHEDULED: frozenset(_DECIDED),
    Status.QUEUED: frozenset(
        {Status.SENDING, Status.CANCELLED, Status.SUPPRESSED, Status.DEAD_LETTERED, Status.SENT, Status.DELIVERED}
    ),
    Status.SENDING: frozenset(
        {Status.SENT, Status.DELIVERED, Status.FAILED, Status.QUEUED, Status.RETRYING, Status.DEAD_LETTERED}
        | {Status.SUPPRESSED, Status.CANCELLED}
    ),
    Status.FAILED: frozenset({Status.RETRYING, Status.DEAD_LETTERED}),
    Status.RETRYING: frozenset(
        {Status.SENDING, Status.SENT, Status.DELIVERED, Status.DEAD_LETTERED, Status.CANCELLED, Status.SUPPRESSED}
    ),
    Status.SENT: frozenset(_RECEIVED),
    Status.DELIVERED: frozenset({Status.OPENED, Status.CLICKED, Status.BOUNCED, Status.COMPLAINED}),
    Status.OPENED: frozenset({Status.CLICKED, Status.BOUNCED, Status.COMPLAINED}),
    Status.CLICKED: frozenset({Status.BOUNCED, Status.COMPLAINED}),
    Status.BOUNCED: frozenset({Status.COMPLAINED}),
    Status.COMPLAINED: frozenset(),
    Status.DEAD_LETTERED: frozenset({Status.QUEUED}),
    Status.SUPPRESSED: frozenset(),
    Status.CANCELLED: frozenset(),
}
"""DEAD_LETTERED leads on to QUEUED by a person's replay only. What is kept in an inbox of ours is DELIVERED without
having been SENT: no provider is between."""

TERMINAL: frozenset[Status] = frozenset(
    {Status.SENT, Status.DEAD_LETTERED, Status.SUPPRESSED, Status.CANCELLED} | _RECEIVED
)


def may_follow(before: Status, after: Status) -> bool:
    """Whether a notification in `before` may be moved to `after`."""
    return after in TRANSITIONS[before]
