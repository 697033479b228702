"""The inbox: what people were told in-app; written by the settling commit alone, read and marked through this."""

from collections.abc import Sequence
from typing import Protocol

from noroshi.domain.inbox import InboxEntry, InboxFilter, InboxHead, Marked, News, Owner
from noroshi.domain.instants import Instant


class Inbox(Protocol):
    async def head(self, owner: Owner) -> InboxHead | None:
        """None: no such user."""
        ...

    async def page(self, owner: Owner, matching: InboxFilter, before: int | None, limit: int) -> list[InboxEntry]:
        """Newest first, with numbers below `before`."""
        ...

    async def after(self, owner: Owner, number: int, limit: int) -> list[InboxEntry]:
        """Everything above a number, in the order of the numbers, archived or not."""
        ...

    async def news(self, asked: Sequence[tuple[Owner, int]], limit: int) -> list[News]:
        """How many inboxes stand, each with its entries above the number it is asked about: at most `limit` of them,
        and none where there are more. A user who is gone is left out."""
        ...

    async def mark(self, owner: Owner, number: int, *, is_archived: bool) -> Marked | None:
        """Reads or archives an entry; reading makes its notification OPENED. A second time changes nothing. None: no
        such entry."""
        ...

    async def read_all(self, owner: Owner, up_to: int, limit: int) -> int:
        """Reads up to `limit` unread entries with numbers up to `up_to`; answers how many."""
        ...

    async def forget_before(self, moment: Instant, limit: int) -> int:
        """Removes up to `limit` entries whose notifications were accepted before `moment`; answers how many."""
        ...
