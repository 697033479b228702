"""The library's face: Noroshi over HTTP, or inside the caller's own process."""

from noroshi.client.errors import NoroshiError
from noroshi.client.noroshi import Noroshi

__all__ = ["Noroshi", "NoroshiError"]
