"""Envelopes: what a browser carries for us and may neither read nor change."""

from typing import Protocol


class Envelopes(Protocol):
    def close(self, purpose: str, clear: bytes) -> str:
        """Text for a cookie or a URL; it opens only for the same purpose."""
        ...

    def open(self, purpose: str, closed: str) -> bytes | None:
        """None for what was not closed here, or for another purpose."""
        ...
