"""Passes of people: whose, by whose leave and until when in; a signed text out, and back.

A *token* opens one person's own routes for up to an hour; a *ticket* opens one stream, once, within a minute. Neither
is stored: whoever has the server's secret can read both. Each is signed as what it is, so that none passes for another.
"""

import binascii
import hmac
from base64 import b64decode, urlsafe_b64encode
from datetime import timedelta
from enum import StrEnum

import msgspec
from msgspec import Struct

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant

TOKEN_LIVES = timedelta(hours=1)
TICKET_LIVES = timedelta(seconds=60)
NONCE_BITS = 128

_PURPOSE = b"noroshi passes v1"
_SIGN_BYTES = 20
_LONGEST = 1_000


class PassKind(StrEnum):
    """The beginning of the text: secret scanners know it."""

    TOKEN = "nru_"  # noqa: S105 - it opens nothing
    TICKET = "nrt_"


class Pass(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """`key_id` is the API key by whose leave it was given: it opens nothing once that is revoked. `until` is when
    whatever it has opened ends. The nonce tells tickets apart."""

    tenant: TenantId
    user_id: str
    key_id: str
    expires_at: Instant
    until: Instant
    nonce: bytes = b""


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Pass).decode


def passes_secret(pepper: bytes) -> bytes:
    """The key that signs passes, made from the one that all processes have."""
    return hmac.digest(pepper, _PURPOSE, "sha256")


def token_in(authorization: str | None) -> str | None:
    """The token of an Authorization header, if that holds one and not a key."""
    scheme, _, text = (authorization or "").partition(" ")
    text = text.strip()
    return text if scheme.lower() == "bearer" and text.startswith(PassKind.TOKEN) else None


def sign(secret: bytes, kind: PassKind, of: Pass) -> str:
    packed = _pack(of)
    return kind + urlsafe_b64encode(_signature(secret, kind, packed) + packed).rstrip(b"=").decode()


def read_pass(secret: bytes, kind: PassKind, text: str) -> Pass | None:
    """None if it was not signed here as this kind. Says nothing about whether it has expired."""
    if not text.startswith(kind) or len(text) > _LONGEST:
        return None
    body = text[len(kind) :]
    try:
        raw = b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    signature, packed = raw[:_SIGN_BYTES], raw[_SIGN_BYTES:]
    if not hmac.compare_digest(signature, _signature(secret, kind, packed)):
        return None
    return _unpack(packed)


def _signature(secret: bytes, kind: PassKind, packed: bytes) -> bytes:
    return hmac.digest(secret, kind.encode() + packed, "sha256")[:_SIGN_BYTES]
