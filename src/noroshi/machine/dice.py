"""The machine's own chance: fractions that spread load, bits that nobody can guess."""

import os
import random

_DRAWN_AT_ONCE = 1024
"""Bytes: a draw is a call to the kernel, and every request needs a few bytes."""


class SystemDice:
    def __init__(self) -> None:
        self._drawn = b""
        self._used = 0

    def fraction(self) -> float:
        return random.random()  # noqa: S311 - it spreads retries; what must be unguessable takes bits()

    def bits(self, count: int) -> int:
        size = (count + 7) // 8
        if self._used + size > len(self._drawn):
            self._drawn, self._used = os.urandom(max(size, _DRAWN_AT_ONCE)), 0
        taken = self._drawn[self._used : self._used + size]
        self._used += size
        return int.from_bytes(taken, "big") >> (size * 8 - count)
