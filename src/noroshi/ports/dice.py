"""Chance, injected: seeded in the simulator."""

from typing import Protocol


class Dice(Protocol):
    def fraction(self) -> float:
        """In [0, 1)."""
        ...

    def bits(self, count: int) -> int:
        """`count` random bits; unguessable outside tests."""
        ...
