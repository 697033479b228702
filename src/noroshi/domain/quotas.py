"""Quotas: how much a provider's plan allows, and how much of it is used."""

from msgspec import Struct


class Quota(Struct, frozen=True):
    """In messages of this month. `limit` None: the plan has none."""

    used: int
    limit: int | None = None

    @property
    def is_used_up(self) -> bool:
        return self.limit is not None and self.used >= self.limit

    @property
    def is_nearly_used_up(self) -> bool:
        """Nine tenths of it."""
        return self.limit is not None and self.used * 10 >= self.limit * 9
