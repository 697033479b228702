"""Crash points: the name of a place in; in service nothing, in a fault test the end of the process."""

import os

DIED = 137
"""The exit code of a process that was killed, which is what a crash looks like from outside."""


class NoCrashPoints:
    def reach(self, name: str) -> None:
        """Nothing happens here in service."""


class EnvCrashPoints:
    """Ends the process the n-th time a place is reached; `NOROSHI_CRASH_AT` is "name" or "name:n"."""

    def __init__(self, crash_at: str) -> None:
        name, _, count = crash_at.partition(":")
        if count and not (count.isdecimal() and int(count) > 0):
            raise ValueError(f"a crash point is a name or name:count, not {crash_at!r}")
        self._name = name
        self._left = int(count or 1)

    def reach(self, name: str) -> None:
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os._exit(DIED)
