"""Priorities, and what each does to a person's limits (N8.2)."""

from enum import StrEnum


class Priority(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    __hash__ = str.__hash__  # an enumeration's own is slower than all else that is done to find one in a dictionary


URGENT: frozenset[Priority] = frozenset({Priority.CRITICAL, Priority.HIGH})
"""These pass quiet hours, and their dead letters raise an alert."""


def scaled_limit(limit: int, priority: Priority) -> int | None:
    """The limit that holds for this priority; None means unlimited and uncounted."""
    if priority is Priority.CRITICAL:
        return None
    if priority is Priority.HIGH:
        return limit * 5
    if priority is Priority.LOW:
        return max(limit // 2, 1)
    return limit
