"""Sealing: addresses at rest are closed with a key per user, which is itself closed with the server's key."""

from typing import Protocol

from noroshi.domain.ids import TenantId


class Sealer(Protocol):
    def new_user_key(self, tenant: TenantId, user_id: str) -> bytes:
        """A fresh data key, wrapped: what the users table keeps."""
        ...

    def seal(self, wrapped_key: bytes, tenant: TenantId, user_id: str, field: str, clear: str) -> bytes:
        """Closes `clear`; it opens only for the same tenant, user and field."""
        ...

    def open(self, wrapped_key: bytes, tenant: TenantId, user_id: str, field: str, sealed: bytes) -> str: ...

    def blind_index(self, tenant: TenantId, kind: str, clear: str) -> bytes:
        """The same 16 bytes for the same address of a tenant: how an endpoint is found without opening any."""
        ...
