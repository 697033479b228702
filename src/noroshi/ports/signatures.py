"""Signatures of a provider's webhooks."""

from typing import Protocol


class Signatures(Protocol):
    def is_genuine(self, body: bytes, header: str | None) -> bool:
        """Whether the provider signed these very bytes, a moment ago."""
        ...
