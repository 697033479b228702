"""A channel: one provider account that takes messages and answers each."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome
from noroshi.domain.quotas import Quota
from noroshi.domain.receipts import Reach


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


@runtime_checkable
class RepeatingChannel(Protocol):
    """A channel whose provider knows a delivery again: sent twice, it is taken once."""

    @property
    def repeats_within(self) -> timedelta:
        """For so long after the first try."""
        ...


@runtime_checkable
class CountedChannel(Protocol):
    """A channel whose provider counts messages against a plan."""

    async def quota(self) -> Quota | None:
        """None: the provider did not say."""
        ...


@runtime_checkable
class ReportingChannel(Protocol):
    """A channel whose provider tells us later what became of people's addresses."""

    def read_receipts(self, headers: Mapping[str, str], raw: bytes) -> Sequence[Reach] | None:
        """What a webhook says; names of headers are in lower case, the body is as it came. None: it is not signed as
        the provider signs. Raises ProblemError for a signed one that cannot be read."""
        ...
