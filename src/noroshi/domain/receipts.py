"""Receipts: what providers say later, in words that are the same for all of them."""

from msgspec import Struct

from noroshi.domain.instants import Instant


class Reach(Struct, frozen=True):
    """An address can be reached no longer, or again. `kind` is that of its endpoints; `at` is the provider's time,
    which alone tells the older word from the newer; `reason` is why it can not, or could not until now."""

    kind: str
    address: str
    at: Instant
    is_reachable: bool
    reason: str
