"""Envelopes: bytes and a purpose in, text that only this server's keys can open out (and back)."""

import binascii
import os
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES = 32
_NONCE_BYTES = 12


class AesEnvelopes:
    """AES-256-GCM with a key of its own for every purpose: number of the master key (1 byte), nonce (12), closed bytes.
    The newest master key closes, every known one opens."""

    def __init__(self, masters: Mapping[int, bytes]) -> None:
        self._masters = dict(masters)
        self._newest = max(masters)
        self._cipher = lru_cache(maxsize=64)(self._new_cipher)

    def close(self, purpose: str, clear: bytes) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        closed = self._cipher(self._newest, purpose).encrypt(nonce, clear, None)
        return urlsafe_b64encode(bytes([self._newest]) + nonce + closed).rstrip(b"=").decode()

    def open(self, purpose: str, closed: str) -> bytes | None:
        try:
            raw = b64decode(closed + "=" * (-len(closed) % 4), altchars=b"-_", validate=True)
            if len(raw) <= _NONCE_BYTES or raw[0] not in self._masters:
                return None
            nonce, rest = raw[1 : 1 + _NONCE_BYTES], raw[1 + _NONCE_BYTES :]
            return self._cipher(raw[0], purpose).decrypt(nonce, rest, None)
        except (InvalidTag, ValueError, binascii.Error):
            return None

    def _new_cipher(self, number: int, purpose: str) -> AESGCM:
        derivation = HKDF(SHA256(), _KEY_BYTES, salt=None, info=f"noroshi envelope {purpose} v1".encode())
        return AESGCM(derivation.derive(self._masters[number]))
