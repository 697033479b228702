"""Announcements: hints from whoever did something to whoever waits for it, in this process and in others."""

from collections.abc import Callable, Iterable
from typing import Protocol

from noroshi.domain.inbox import Owner
from noroshi.domain.lanes import Lane


class Announcements(Protocol):
    """Hints only: lost, doubled or late, nothing depends on them but how soon something is done."""

    def listen(
        self,
        on_lanes: Callable[[Iterable[Lane]], None],
        on_change: Callable[[], None],
        on_inboxes: Callable[[Iterable[Owner]], None] = lambda _owners: None,
    ) -> None:
        """Who is to be told; called once, before the start. `on_change` is also called when hints may have been
        missed."""
        ...

    def announce(self, lanes: Iterable[Lane]) -> None:
        """Deliveries were put into these lanes."""
        ...

    def announce_inboxes(self, owners: Iterable[Owner]) -> None:
        """Something was done to these inboxes. Only other processes are told: this one knows what it was."""
        ...

    def tell_change(self) -> None:
        """Pauses, accounts or what waits have changed: everybody looks again."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...
