"""Provider accounts: until when each must be left alone."""

from typing import Protocol

from noroshi.domain.instants import Instant


class Accounts(Protocol):
    async def block(self, account: str, until: Instant, why: str) -> None:
        """Nothing is sent through the account before `until`, also after a restart. The later time wins."""
        ...

    async def blocked(self) -> dict[str, Instant]: ...
