"""Live inboxes: whoever looks at an inbox is told what comes into it, whichever process has put it there."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from noroshi.domain.inbox import News, Owner
from noroshi.domain.instants import Instant


class Outlet(Protocol):
    """One connection, as whoever fills it sees it. It never grows: who finds it full waits until it has drained."""

    @property
    def is_full(self) -> bool: ...

    def form(self, news: News) -> Sequence[bytes]:
        """As it goes over this connection, entries first; writes nothing."""
        ...

    def put(self, formed: Sequence[bytes]) -> None:
        """Written at once; never waits."""
        ...

    def beat(self) -> None:
        """A sign of life, so that nobody on the way takes the silence for an end."""
        ...

    async def drained(self) -> None:
        """When there is room again, or the connection is gone."""
        ...

    def close(self) -> None:
        """The other side will come again, and name the last entry it has seen."""
        ...


class Following(Protocol):
    """Someone who looks at an inbox."""

    async def catch_up(self) -> None:
        """Tells how the inbox stands, and everything after the last entry seen; from then on it is told by itself."""
        ...

    def end(self) -> None:
        """Nobody looks any more. Called once."""
        ...


class LiveInboxes(Protocol):
    async def follow(
        self, owner: Owner, after: int | None, outlet: Outlet, key_id: str, until: Instant | None
    ) -> Following | None:
        """Each entry above `after` (None: above the last there is) is told once, in the order of the numbers. It ends
        at `until`, and soon after the key is revoked. None: no such user. Raises `overloaded` or
        `too_many_requests`."""
        ...

    def hand_over(self, news: Sequence[News]) -> None:
        """What a commit of this process has put into inboxes, or changed in them."""
        ...

    def look_into(self, owners: Iterable[Owner]) -> None:
        """Other processes have done something to these inboxes."""
        ...

    def look_everywhere(self) -> None:
        """Hints may have been missed."""
        ...

    async def start(self) -> None: ...

    def close_all(self) -> None:
        """Every connection ends, and no new one is taken."""
        ...

    async def stop(self) -> None: ...
