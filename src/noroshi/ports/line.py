"""LINE as the reservations reach it: one person, one text, one answer."""

from typing import Protocol
from uuid import UUID

from noroshi.domain.line import LineAnswer


class Line(Protocol):
    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        """Never raises for what LINE or the network does; the same retry key within 24 hours sends once."""
        ...
