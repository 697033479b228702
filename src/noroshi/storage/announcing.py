"""Announcements within one process: what is announced goes in, and straight to whoever listens."""

from collections.abc import Callable, Iterable

from noroshi.domain.lanes import Lane

OnLanes = Callable[[Iterable[Lane]], None]
OnChange = Callable[[], None]


def _nobody(_lanes: Iterable[Lane]) -> None:
    """Before anyone listens."""


class LocalAnnouncements:
    """Implements ports/announcements.py where one process alone serves the store."""

    def __init__(self) -> None:
        self._on_lanes: OnLanes = _nobody
        self._on_change: OnChange = lambda: None

    def listen(self, on_lanes: OnLanes, on_change: OnChange) -> None:
        self._on_lanes, self._on_change = on_lanes, on_change

    def announce(self, lanes: Iterable[Lane]) -> None:
        self._on_lanes(lanes)

    def tell_change(self) -> None:
        self._on_change()

    async def start(self) -> None:
        """There is nobody else to hear."""

    async def stop(self) -> None:
        """Nothing was begun."""
