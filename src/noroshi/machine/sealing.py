"""Sealing: an address and its owner's wrapped key in, bytes that only this server can open out (and back)."""

import hmac
import os
from collections.abc import Mapping
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from noroshi.domain.ids import TenantId

KEY_BYTES = 32
_NONCE_BYTES = 12
_INDEX_BYTES = 16
_OPEN_KEYS = 8192


class SealError(Exception):
    """What was sealed does not open: another server's key, another person's value, or damage."""


class AesSealer:
    """AES-256-GCM. A wrapped user key is: number of the master key (1 byte), nonce (12), closed key; a sealed value:
    nonce (12), closed value. The newest master key closes, every known one opens: that is how keys are rotated."""

    def __init__(self, masters: Mapping[int, bytes], blind_index_key: bytes) -> None:
        self._masters = {number: AESGCM(master) for number, master in masters.items()}
        self._newest = max(masters)
        self._blind_index_key = blind_index_key
        # Keyed by owner as well as by wrapped key, so that a remembered key cannot be used for somebody else.
        self._user_key = lru_cache(maxsize=_OPEN_KEYS)(self._unwrap)

    def new_user_key(self, tenant: TenantId, user_id: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        closed = self._masters[self._newest].encrypt(nonce, os.urandom(KEY_BYTES), _owner(tenant, user_id))
        return bytes([self._newest]) + nonce + closed

    def seal(self, wrapped_key: bytes, tenant: TenantId, user_id: str, field: str, clear: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        bound_to = f"{tenant}|{field}|{user_id}".encode()
        return nonce + self._user_key(wrapped_key, tenant, user_id).encrypt(nonce, clear.encode(), bound_to)

    def open(self, wrapped_key: bytes, tenant: TenantId, user_id: str, field: str, sealed: bytes) -> str:
        bound_to = f"{tenant}|{field}|{user_id}".encode()
        try:
            clear = self._user_key(wrapped_key, tenant, user_id).decrypt(sealed[:12], sealed[12:], bound_to)
        except (InvalidTag, ValueError) as error:
            raise SealError(f"the sealed {field} does not open") from error
        return clear.decode()

    def blind_index(self, tenant: TenantId, kind: str, clear: str) -> bytes:
        return hmac.digest(self._blind_index_key, f"{tenant}|{kind}|{clear}".encode(), "sha256")[:_INDEX_BYTES]

    def _unwrap(self, wrapped_key: bytes, tenant: TenantId, user_id: str) -> AESGCM:
        master = self._masters.get(wrapped_key[0]) if wrapped_key else None
        if master is None:
            raise SealError("the user's key was closed with a master key that this server does not have")
        nonce, closed = wrapped_key[1 : 1 + _NONCE_BYTES], wrapped_key[1 + _NONCE_BYTES :]
        try:
            return AESGCM(master.decrypt(nonce, closed, _owner(tenant, user_id)))
        except (InvalidTag, ValueError) as error:
            raise SealError("the user's key does not open") from error


def _owner(tenant: TenantId, user_id: str) -> bytes:
    return f"{tenant}|{user_id}".encode()
