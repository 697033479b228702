"""A seeded event loop in virtual time: coroutines go in, the same seed always runs them in the same order.

What is ready runs in an order drawn from the seed, one callback a step; when nothing is ready, time jumps to the
next timer. There is no I/O and no thread: whatever needs one raises NotImplementedError. A crash stops the loop
between two steps or in the middle of one; what was running is abandoned and can be heard of no more.
"""

import asyncio
import heapq
import math
import random
import sys
import warnings
from asyncio import events
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack, cast

T = TypeVar("T")
Args = TypeVarTuple("Args")

if TYPE_CHECKING:
    _Loop = asyncio.BaseEventLoop
else:
    # Its methods all refuse, which is what a loop without I/O wants; a type checker takes them for missing.
    _Loop = asyncio.AbstractEventLoop

_FEW_TIMERS = 64
_MOST_AWAITS_IN_CLEANUP = 100


class CrashError(BaseException):
    """The simulated process has ended here. Not an Exception: no `except Exception` may survive it."""


class StuckError(RuntimeError):
    """Nothing is ready, no timer is set, and what was waited for has not come."""


class RunawayError(RuntimeError):
    """More steps than the simulation may take: something spins."""


class UnhandledError(RuntimeError):
    """An exception that nobody in the simulated world took care of."""


class SimLoop(_Loop):
    """`order` decides what runs next; `start` is the virtual time to begin at, in seconds."""

    def __init__(self, order: random.Random, start: float = 0.0, max_steps: int = 5_000_000) -> None:
        self.steps = 0
        self.crashed_at: str | None = None
        self.crash_at_step: int | None = None
        self.max_steps = max_steps
        self._draw = order.random
        self._now = start
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_numbers = count()
        self._cancelled_timers = 0
        self._on_crash: list[Callable[[], object]] = []
        self._complaint: dict[str, Any] | None = None
        self._is_halting = False
        self._is_running = False
        self._is_closed = False

    # running

    def run_until_idle(self, deadline: float) -> None:
        """Runs until nothing is ready and the next timer lies beyond the deadline, which it then is.

        Raises CrashError if the world crashed meanwhile."""
        if not self._run(deadline):
            self._now = max(self._now, deadline)

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Raises StuckError if the future can never be done, CrashError if the world crashed first."""
        wanted = asyncio.ensure_future(cast(Awaitable[T], future), loop=self)
        wanted.add_done_callback(self._stop_at)
        self._run(math.inf)
        if not wanted.done():
            self.close()
            raise StuckError(f"nothing left to run at {self._now}, still waiting for {wanted!r}")
        return wanted.result()

    def run_forever(self) -> None:
        self._run(math.inf)

    def stop(self) -> None:
        self._is_halting = True

    def freeze(self, seconds: float) -> None:
        """Time passes and nobody runs (a suspended process); what fell due meanwhile is ready afterwards."""
        self._now += seconds
        self._wake(self._now)

    def _stop_at(self, _: object) -> None:
        self._is_halting = True

    def _run(self, deadline: float) -> bool:
        """Whether it was stopped, rather than out of work."""
        self._refuse_if_unusable()
        before = sys.get_asyncgen_hooks()
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(finalizer=self._close_generator)
        self._is_running = True
        try:
            self._take_steps(deadline)
        finally:
            self._is_running = False
            was_stopped, self._is_halting = self._is_halting, False
            sys.set_asyncgen_hooks(*before)
            events._set_running_loop(None)
        if self.crashed_at is not None:
            self.close()
            raise CrashError(self.crashed_at)
        self._raise_complaint()
        return was_stopped

    def _take_steps(self, deadline: float) -> None:
        ready, draw, last = self._ready, self._draw, self._last_step()
        while not self._is_halting:
            waiting = len(ready)
            if waiting > 1:
                chosen = int(draw() * waiting)
                handle = ready[chosen]
                ready[chosen] = ready[-1]
                del ready[-1]
            elif waiting:
                handle = ready.pop()
            elif self._wake(deadline):
                continue
            else:
                return None
            if handle._cancelled:
                continue
            if self.steps >= last:
                ready.append(handle)  # or the task it belongs to might be dropped before it can be closed
                return self._end_of_steps()
            self.steps += 1
            handle._run()

    def _last_step(self) -> int:
        return self.max_steps if self.crash_at_step is None else min(self.max_steps, self.crash_at_step)

    def _end_of_steps(self) -> None:
        if self.crash_at_step is not None and self.steps >= self.crash_at_step:
            self._end_world(f"step {self.steps}")
        else:
            raise RunawayError(f"{self.steps} steps, and virtual time is only {self._now}")

    def _wake(self, deadline: float) -> bool:
        """Moves time to the next timer and makes ready what is due then."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled_timers -= 1
        if not timers or timers[0][0] > deadline:
            return False
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])
        return True

    # crashing

    def on_crash(self, callback: Callable[[], object]) -> None:
        """Called at the moment of the crash, before anything of the crashed world can run on."""
        self._on_crash.append(callback)

    def crash(self, where: str) -> None:
        """Ends the world in the middle of a step: always raises, also for whoever calls from the dead world."""
        if self.crashed_at is None:
            self._end_world(where)
        raise CrashError(self.crashed_at)

    def _end_world(self, where: str) -> None:
        self.crashed_at = where
        self._is_halting = True
        for callback in self._on_crash:
            callback()

    def close(self) -> None:
        """Abandons whatever is left. Python runs the `finally` blocks of abandoned coroutines sooner or later:
        here it is now, in a world that is over, so that none can run beside the next one."""
        if self._is_closed:
            return
        self._is_closed = True
        with warnings.catch_warnings():
            # A coroutine that was handed to one which never began is nobody's fault in a world that is over.
            warnings.simplefilter("ignore", RuntimeWarning)
            while abandoned := asyncio.all_tasks(self):
                for task in abandoned:
                    _end(task.get_coro())
                    asyncio.tasks._unregister_task(task)
        self._ready.clear()
        self._timers.clear()

    def is_closed(self) -> bool:
        return self._is_closed

    def is_running(self) -> bool:
        return self._is_running

    def _refuse_if_unusable(self) -> None:
        if self._is_closed:
            raise RuntimeError("this world has ended")
        if self._is_running:
            raise RuntimeError("this loop is already running")
        self._raise_complaint()

    # what asyncio asks of a loop

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[[Unpack[Args]], object], *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if when <= self._now:
            self._ready.append(timer)
        else:
            heapq.heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a timer that is being cancelled; most time-outs end so, hence the clearing out."""
        if handle.when() <= self._now:
            return
        self._cancelled_timers += 1
        if self._cancelled_timers > _FEW_TIMERS and self._cancelled_timers > len(self._timers) // 2:
            self._timers[:] = [entry for entry in self._timers if not entry[2]._cancelled and entry[2] is not handle]
            heapq.heapify(self._timers)
            self._cancelled_timers = 0

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, T] | Generator[Any, None, T], *, name: object = None, context: Any = None
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """The first complaint stops the simulation; a world that has ended has nothing to say."""
        if self.crashed_at is None and not self._is_closed:
            self._complaint = self._complaint or context
            self._is_halting = True

    def _raise_complaint(self) -> None:
        complaint, self._complaint = self._complaint, None
        if complaint is not None:
            raise UnhandledError(complaint.get("message", "unhandled")) from complaint.get("exception")

    async def shutdown_asyncgens(self) -> None:
        """Nothing to do: generators of this loop are closed as they are dropped."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Nothing to do: there is none."""

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._is_closed and self.crashed_at is None:
            self.create_task(_aclose(generator))


async def _aclose(generator: AsyncGenerator[Any, Any]) -> None:
    await generator.aclose()


def _end(coroutine: Any) -> None:
    """Closes an abandoned coroutine; one that awaits in its `finally` has to be told again."""
    for _ in range(_MOST_AWAITS_IN_CLEANUP):
        try:
            coroutine.close()
        except BaseException:  # the dead may complain, nobody listens
            continue
        return
