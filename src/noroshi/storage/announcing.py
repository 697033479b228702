"""Announcements within one process: what is announced goes in, and straight to whoever listens."""

from collections.abc import Callable, Iterable

from noroshi.domain.inbox import Owner
from noroshi.domain.lanes import Lane

OnLanes = Callable[[Iterable[Lane]], None]
OnChange = Callable[[], None]
OnInboxes = Callable[[Iterable[Owner]], None]


def _nobody(_lanes: Iterable[Lane]) -> None:
    """Before anyone listens."""


def _nobody_looks(_owners: Iterable[Owner]) -> None:
    """Where nobody has said that he would."""


class LocalAnnouncements:
    """Implements ports/announcements.py where one process alone serves the store."""

    def __init__(self) -> None:
        self._on_lanes: OnLanes = _nobody
        self._on_change: OnChange = lambda: None
        self._on_inboxes: OnInboxes = _nobody_looks

    def listen(self, on_lanes: OnLanes, on_change: OnChange, on_inboxes: OnInboxes = _nobody_looks) -> None:
        self._on_lanes, self._on_change, self._on_inboxes = on_lanes, on_change, on_inboxes

    def announce(self, lanes: Iterable[Lane]) -> None:
        self._on_lanes(lanes)

    def announce_inboxes(self, owners: Iterable[Owner]) -> None:
        """There is no other process."""

    def tell_change(self) -> None:
        self._on_change()

    async def start(self) -> None:
        """There is nobody else to hear."""

    async def stop(self) -> None:
        """Nothing was begun."""
