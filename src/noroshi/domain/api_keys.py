"""API keys: random bits in, a key with a checksum out; a presented key in, its public id and digest out.

A key is `nrs_`, 30 random base62 characters, then the CRC32 of those in 6: secret scanners know the prefix, and a
typing error is refused without a look-up. The first 8 random characters are the key's public id.
"""

import hmac
import re
import string
from zlib import crc32

PREFIX = "nrs_"
KEY_BITS = 256
"""How many random bits `mint` wants: 77 more than it keeps, so that no character is likelier than another."""

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH = 30
_CHECKSUM_LENGTH = 6
_ID_LENGTH = 8
_SHAPE = re.compile(f"{PREFIX}[0-9A-Za-z]{{{_RANDOM_LENGTH + _CHECKSUM_LENGTH}}}")


def mint(random_bits: int) -> str:
    """A new key, to be shown once."""
    random_part = _base62(random_bits, _RANDOM_LENGTH)
    return PREFIX + random_part + _checksum(random_part)


def key_id(key: str) -> str:
    """The public id of a well-formed key."""
    return key[len(PREFIX) : len(PREFIX) + _ID_LENGTH]


def is_well_formed(key: str) -> bool:
    """Whether prefix, length, alphabet and checksum are right; says nothing about whether the key exists."""
    if _SHAPE.fullmatch(key) is None:
        return False
    random_part = key[len(PREFIX) : -_CHECKSUM_LENGTH]
    return _checksum(random_part) == key[-_CHECKSUM_LENGTH:]


def digest(pepper: bytes, key: str) -> bytes:
    """What the store keeps instead of the key. A fast hash is right: nobody can guess 131 random bits."""
    return hmac.digest(pepper, key.encode(), "sha256")


def _checksum(random_part: str) -> str:
    return _base62(crc32(random_part.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    characters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[place])
    return "".join(reversed(characters))
