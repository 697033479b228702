"""Alerts: what went wrong often enough that a person should know."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant
from noroshi.domain.records import RaisedAlert


class Alerts(Protocol):
    async def list_alerts(
        self, tenant: TenantId, before: tuple[Instant, str, str] | None, limit: int
    ) -> list[RaisedAlert]:
        """Those raised last first; `before` is (last_at, kind, subject) of one of them."""
        ...
