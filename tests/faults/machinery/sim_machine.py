"""A simulated machine: one seed goes in, and the product lives on it, crashes and lives again in virtual time."""

import random
from contextlib import suppress
from types import TracebackType

import apsw

from tests.faults.machinery.sim_loop import SimLoop
from tests.faults.machinery.sim_ports import SimClock, SimCrashPoints, SimDice
from tests.faults.machinery.wired_loop import WiredLoop


class WorldEndedError(Exception):
    """Something of a crashed world still asked the store for work."""


class SimMachine:
    """What outlasts a crash: time, the dice, the counters of the crash points. The same seed gives the same run,
    unless it `is_wired` to a server, which answers in whatever order it pleases."""

    def __init__(self, seed: int, *, is_wired: bool = False) -> None:
        self._is_wired = is_wired
        self._order = random.Random(f"order {seed}")
        self.chance = random.Random(f"scenario {seed}")
        self.dice = SimDice(random.Random(f"dice {seed}"))
        self.loop = self._loop_from(0.0)
        self.clock = SimClock(self.loop)
        self.crash_points = SimCrashPoints(self.loop)
        self._is_first_life = True

    def life(self) -> "Life":
        """A new life of the product, at the virtual time at which the last one ended."""
        if not self._is_first_life:
            self.loop = self._loop_from(self.loop.time())
            self.clock.loop = self.loop
            self.crash_points.move_to(self.loop)
        self._is_first_life = False
        return Life(self.loop)

    def _loop_from(self, moment: float) -> SimLoop:
        return WiredLoop(moment) if self._is_wired else SimLoop(self._order, moment)


class Life:
    """One life of the product: its loop, and every apsw connection that is opened while it lasts.

    At a crash those connections refuse all further work at once; when the life is left they are closed, which
    rolls back what they had not committed. Whoever inspects the store opens a connection before or after."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self._connections: list[apsw.Connection] = []
        loop.on_crash(self._refuse_work)

    def __enter__(self) -> "Life":
        apsw.connection_hooks.append(self._connections.append)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        apsw.connection_hooks.remove(self._connections.append)
        # Also a life that ended well leaves no one behind who could still write.
        self._refuse_work()
        self.loop.close()
        for connection in self._connections:
            connection.close(True)

    def _refuse_work(self) -> None:
        for connection in self._connections:
            with suppress(apsw.ConnectionClosedError):  # the product has closed it itself
                connection.exec_trace = _refuse


def _refuse(_cursor: object, _sql: str, _bindings: object) -> bool:
    raise WorldEndedError
