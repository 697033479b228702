"""Tickets that open one stream each."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant


class Tickets(Protocol):
    async def spend(self, tenant: TenantId, ticket: bytes, expires_at: Instant) -> bool:
        """Whether this is the first use of the ticket, over all processes. It is remembered until it expires."""
        ...
