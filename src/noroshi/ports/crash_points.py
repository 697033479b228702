"""Crash points: the places where a fault test may end the process; in service they do nothing."""

from typing import Protocol


class CrashPoints(Protocol):
    def reach(self, name: str) -> None:
        """Called right before and after every commit and every outgoing call."""
        ...
