"""What LINE answers to one push."""

from msgspec import Struct

SENT_STATUSES = frozenset({200, 202, 409})
"""Taken; 409: a push with this retry key was taken before."""


class LineAnswer(Struct, frozen=True):
    """`status` None: no answer came, and `body` says what happened instead."""

    status: int | None
    body: str
    request_id: str = ""

    @property
    def is_sent(self) -> bool:
        return self.status in SENT_STATUSES
