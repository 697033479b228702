"""The ports of the simulated machine: seeded dice, a clock on virtual time, crash points that crash."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from weakref import WeakKeyDictionary

from noroshi.domain.instants import Instant, at, plus
from tests.faults.machinery.sim_loop import SimLoop

SIM_START = at(datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
"""Virtual second 0: a Monday morning without daylight saving near."""

_MICROSECONDS = 1_000_000


class SimClock:
    """The Clock port on a loop's virtual time. The wall may be wrong: `wall_offset` is how much it is ahead."""

    def __init__(self, loop: SimLoop, start: Instant = SIM_START) -> None:
        self.loop = loop
        self._start = start
        self.wall_offset = timedelta(0)

    @property
    def wall_offset(self) -> timedelta:
        return self._wall_offset

    @wall_offset.setter
    def wall_offset(self, offset: timedelta) -> None:
        self._wall_offset = offset
        self._wall_start = plus(self._start, offset)

    def now(self) -> Instant:
        return Instant(self._wall_start + round(self.loop.time() * _MICROSECONDS))

    def monotonic(self) -> float:
        return self.loop.time()

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(span.total_seconds())


class SimDice:
    """The Dice port, seeded."""

    def __init__(self, chance: random.Random) -> None:
        self.fraction = chance.random
        self.bits = chance.getrandbits


class SimCrashPoints:
    """The CrashPoints port: counts every point reached, and crashes the loop at the one it was armed for.

    `reached` and `crashed` count over every life on the machine; `standing` says, after a crash, at which point
    each task that was alive had last been seen: between which two steps the crash caught it. `listeners` hear of
    every point before it can crash."""

    def __init__(self, loop: SimLoop) -> None:
        self.reached: Counter[str] = Counter()
        self.crashed: Counter[str] = Counter()
        self.listeners: list[Callable[[str], None]] = []
        self._armed_name: str | None = None
        self._countdown = 0
        self.move_to(loop)

    def move_to(self, loop: SimLoop) -> None:
        """A new life begins on `loop`."""
        self._loop = loop
        self._last_seen: WeakKeyDictionary[asyncio.Task[object], str] = WeakKeyDictionary()
        self.standing: Counter[str] = Counter()
        loop.on_crash(self._take_stock)

    def arm(self, name: str, nth: int = 1) -> None:
        """Crash when `name` is reached for the nth time from now."""
        self._armed_name, self._countdown = name, nth

    def arm_any(self, nth: int) -> None:
        """Crash at the nth point reached from now, whatever its name."""
        self._armed_name, self._countdown = None, nth

    def disarm(self) -> None:
        self._countdown = 0

    def reach(self, name: str) -> None:
        if self._loop.crashed_at is not None:
            self._loop.crash(name)
        self.reached[name] += 1
        for listener in self.listeners:
            listener(name)
        task = asyncio.current_task(self._loop)
        if task is not None:
            self._last_seen[task] = name
        if self._countdown and self._armed_name in (None, name):
            self._countdown -= 1
            if not self._countdown:
                self._loop.crash(name)

    def _take_stock(self) -> None:
        self.crashed[self._loop.crashed_at or ""] += 1
        self.standing.update(name for task, name in self._last_seen.items() if not task.done())


def render_counts(title: str, counts: Counter[str], names: Iterable[str] = ()) -> str:
    """A Markdown table of how often each name was counted; `names` are shown also where that is never."""
    rows = [f"| {name} | {counts[name]} |" for name in sorted({*counts, *names})]
    return "\n".join([f"| {title} | times |", "|---|---:|", *rows])
