"""The machine's own chance: fractions that spread load, bits that nobody can guess."""

import random
import secrets


class SystemDice:
    def fraction(self) -> float:
        return random.random()  # noqa: S311 - it spreads retries; what must be unguessable takes bits()

    def bits(self, count: int) -> int:
        return secrets.randbits(count)
