"""Stripe's signatures: the bytes of a webhook and its header in, whether Stripe sent them just now out."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from noroshi.ports.clock import Clock

TOLERANCE_SECONDS = 300

_TIMESTAMP = re.compile(r"t=([0-9]{1,15})")


class StripeMissingError(Exception):
    """The library is not installed; the text says how to get it."""


class StripeSignatures:
    """Implements ports/signatures.py by Stripe's own library. Several secrets are live while one is replaced. The age
    is judged here, by our clock: the library asks the system's, and lets signatures from the future pass."""

    def __init__(self, secrets: Sequence[str], clock: Clock) -> None:
        self._secrets = tuple(secrets)
        self._clock = clock
        self._library = _load()

    def is_genuine(self, body: bytes, header: str | None) -> bool:
        if header is None or not header.isascii() or not self._is_fresh(header):
            return False
        return any(self._is_signed(body, header, secret) for secret in self._secrets)

    def _is_fresh(self, header: str) -> bool:
        # The first, which the library takes: a second one could make an old signature look new.
        first = next((part for part in header.split(",") if part.partition("=")[0] == "t"), "")
        signed_at, now = _TIMESTAMP.fullmatch(first), self._clock.now() / 1_000_000
        return signed_at is not None and abs(now - int(signed_at[1])) <= TOLERANCE_SECONDS

    def _is_signed(self, body: bytes, header: str, secret: str) -> bool:
        try:
            self._library.WebhookSignature.verify_header(body, header, secret)
        except (self._library.SignatureVerificationError, UnicodeDecodeError):
            return False
        return True


def _load() -> Any:
    """On first use: half a second and 30 MB that a server without reservations never pays."""
    try:
        return import_module("stripe")
    except ImportError as error:
        raise StripeMissingError("payments need the package stripe: pip install 'noroshi[reservations]'") from error
