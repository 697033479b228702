"""Devices: push tokens of a user (N1.11, N1.14)."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.people import Device


class Devices(Protocol):
    async def register(
        self, tenant: TenantId, user_id: str, platform: str, device_token: str, app_version: str | None
    ) -> Device | None:
        """Upserts on (user, token): refreshes `last_used_at` and reactivates. None: no such user."""
        ...

    async def list_devices(self, tenant: TenantId, user_id: str) -> list[Device] | None: ...

    async def remove_device(self, tenant: TenantId, user_id: str, token_id: int) -> bool: ...
