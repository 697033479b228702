"""A channel: one provider account that takes messages and answers each."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome


class Channel(Protocol):
    @property
    def account(self) -> str:
        """The name of the account: letters, digits and dashes."""
        ...

    @property
    def channels(self) -> frozenset[str]:
        """The channels this account serves."""
        ...

    @property
    def max_batch(self) -> int: ...

    @property
    def attempt_timeout(self) -> timedelta: ...

    @property
    def per_second(self) -> int | None:
        """The pace the provider allows; None: no limit known."""
        ...

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        """Tries each once; the outcomes stand in the order of the attempts. An exception means a bug or a dead
        network and is taken as Unknown for all of them."""
        ...

    def validate_target(self, address: str) -> str | None:
        """None if the address can be used, else why not."""
        ...


@runtime_checkable
class ClosableChannel(Protocol):
    """A channel that holds something open, such as connections."""

    async def close(self) -> None:
        """Called once, when nothing more will be sent."""
        ...
