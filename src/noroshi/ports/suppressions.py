"""Suppressions: addresses that must not be used, with the reason."""

from collections.abc import Sequence
from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.receipts import Reach


class Suppressions(Protocol):
    async def hear(self, tenant: TenantId, reaches: Sequence[Reach]) -> int:
        """An address that can be reached no longer is suppressed and its endpoints are deactivated; one that can be
        again is free again, if it was suppressed for that reason; in one commit. A word that is older than the last one
        heard of the address changes nothing, and of two at the same moment the bad one stands: any order, and any
        repetition, come to the same. Answers how many were news."""
        ...
