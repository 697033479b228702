"""The queue: deliveries waiting in lanes, claimed under a lease, settled with what became of them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from noroshi.domain.accounts import FREE, Terms
from noroshi.domain.deliveries import DeliveryKey, Expired, Settled, Settlement, Taken
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.records import Alert


class Queue(Protocol):
    async def take(
        self, lane: Lane, limit: int, lease: timedelta, paused_categories: frozenset[str], terms: Terms = FREE
    ) -> Taken:
        """Claims up to `limit` due deliveries of the lane, oldest due first; one that was claimed twice without
        an outcome comes alone, and not while another such one is claimed in any lane. Deliveries of paused
        categories are set aside, not claimed. Where the account has a pace, all processes together are granted no
        more than it allows; of an account on trial, one of them gets one delivery."""
        ...

    async def settle(self, settlements: Sequence[Settlement], alerts: Sequence[Alert] = ()) -> Settled:
        """Writes outcomes, in one commit. A settlement whose fence is not the delivery's current one changes no
        state: it is recorded in the ledger as a late result."""
        ...

    async def renew(self, held: Sequence[tuple[DeliveryKey, int]], lease: timedelta) -> set[DeliveryKey]:
        """Lengthens leases, each named with its fence; answers the keys that are no longer held."""
        ...

    async def expired(
        self, after: tuple[Instant, DeliveryKey] | None, limit: int, *, is_start: bool
    ) -> list[tuple[Instant, Expired]]:
        """A page of leases that ran out, in order of (lease end, key), after the given place. Where one
        process alone serves the store, every lease of a former one counts as run out at the start."""
        ...

    async def waiting(self) -> dict[Lane, Instant]:
        """Each lane that holds ready deliveries, with the earliest due time."""
        ...

    async def oldest(self) -> dict[Lane, Instant]:
        """Each lane that holds ready or claimed deliveries, and since when the oldest of them has been due: a claimed
        one since it was wanted or, after an earlier try, since it was claimed."""
        ...

    async def resume(self, paused_categories: frozenset[str], limit: int) -> int:
        """Puts back up to `limit` deliveries that were set aside and whose category is no longer paused."""
        ...

    async def unfinished(self) -> int:
        """How many deliveries are not settled for good."""
        ...
