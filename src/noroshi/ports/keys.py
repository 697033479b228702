"""API keys, stored without their secrets."""

from typing import Protocol

from noroshi.domain.ids import TenantId
from noroshi.domain.records import ApiKey


class Keys(Protocol):
    async def add(self, key: ApiKey) -> None: ...

    async def find(self, key_id: str) -> ApiKey | None: ...

    async def list_keys(self, tenant: TenantId) -> list[ApiKey]: ...

    async def revoke(self, tenant: TenantId, key_id: str) -> bool: ...
