"""Pauses: what an operator has stopped for now."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.records import Pause, PauseKind


class Pauses(Protocol):
    async def add(self, tenant: TenantId, kind: PauseKind, name: str | None, by: str) -> Pause:
        """A second pause of the same thing is the first one."""
        ...

    async def list_pauses(self, tenant: TenantId, after: int, limit: int) -> list[Pause]: ...

    async def remove(self, tenant: TenantId, pause_id: int) -> bool: ...

    async def in_force(self) -> list[Pause]:
        """Those of every tenant: dispatch obeys them all."""
        ...
