"""The people around the product: callers who ask until they are answered, operators who pause, cancel and replay.

They live outside the world that crashes; what one of them could not finish is begun again in the next life.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from msgspec import Struct

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import PauseKind
from tests.faults.simulation.asks import CALLER, Ask
from tests.faults.simulation.scenario import CancelErrand, Errand, PauseErrand, ReplayErrand
from tests.faults.simulation.site import Site

T = TypeVar("T")

_AGAIN = timedelta(seconds=0.5)
_PAGE = 100


class PausedSpan(Struct, frozen=True):
    """The operator was told at `begins` that it is paused, and resumed it at `ends`."""

    kind: PauseKind
    name: str | None
    begins: Instant
    ends: Instant


class Callers:
    """`site` is where calls go: the present process, or the newer of two."""

    def __init__(self, asks: list[Ask], errands: list[Errand]) -> None:
        self.asks = asks
        self.errands = errands
        self.complaints: list[str] = []
        self.paused: list[PausedSpan] = []
        self.is_closing = False
        self._site: Site | None = None
        self._tasks: dict[asyncio.Task[None], Ask | None] = {}

    @property
    def site(self) -> Site:
        assert self._site is not None
        return self._site

    @site.setter
    def site(self, site: Site) -> None:
        self._site = site

    @property
    def is_done(self) -> bool:
        return all(errand.is_done for errand in self.errands) and not any(map(_is_open, self.asks))

    def next_at(self, now: float) -> float | None:
        """When somebody will next do something, as far as that is known."""
        times = [ask.at for ask in self.asks if _is_open(ask)]
        for errand in self.errands:
            if isinstance(errand, PauseErrand) and not errand.is_done:
                times.append(errand.until if errand.at <= now else errand.at)
            elif not errand.is_done:
                times.append(errand.at if isinstance(errand, ReplayErrand) else now)
        return min(times, default=None)

    def set_out(self, site: Site) -> None:
        """Everybody with something left to do begins."""
        self.site, self.is_closing = site, False
        self._tasks = {asyncio.create_task(self._watch(self._ask, ask)): ask for ask in self.asks if _is_open(ask)}
        for errand in self.errands:
            if not errand.is_done:
                self._tasks[asyncio.create_task(self._watch(self._run, errand))] = None

    async def come_home(self) -> None:
        """The product is stopped: whoever only waits goes; whoever is on the line hears an answer first."""
        for task, ask in self._tasks.items():
            if ask is None or not ask.outstanding:
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def drop_calls(self) -> None:
        """After a crash: nobody is on the line any more."""
        for ask in self.asks:
            ask.outstanding = 0

    async def _watch(self, deed: Callable[[T], Coroutine[Any, Any, None]], of: T) -> None:
        try:
            await deed(of)
        except Exception as error:  # noqa: BLE001 - whatever a caller is not prepared for is a finding
            self.complaints.append(f"a caller was answered {type(error).__name__}: {error}")

    async def _ask(self, ask: Ask) -> None:
        await self._until(ask.at)
        while _is_open(ask) and not self.is_closing:
            calls = [asyncio.create_task(self._call(ask)) for _ in range(ask.copies)]
            _, late = await asyncio.wait(calls, timeout=ask.patience)
            for call in late:
                call.cancel()
            if late:
                await asyncio.wait(late)
            ask.patience = None
            for call in calls:
                if not call.cancelled():
                    call.result()
            if _is_open(ask):
                await self.site.clock.sleep(_AGAIN)

    async def _call(self, ask: Ask) -> None:
        ask.calls += 1
        ask.outstanding += 1
        try:
            answer = await self.site.way.accept(CALLER, ask.request, ask.key)
        except ProblemError as problem:
            ask.hear_problem(problem)
        except asyncio.CancelledError:
            ask.outstanding -= 1
            raise
        else:
            ask.hear(answer)
        ask.outstanding -= 1

    async def _run(self, errand: Errand) -> None:
        match errand:
            case PauseErrand():
                await self._pause(errand)
            case CancelErrand():
                await self._cancel(errand)
            case ReplayErrand():
                await self._replay(errand)
        errand.is_done = True

    async def _pause(self, errand: PauseErrand) -> None:
        await self._until(errand.at)
        pauses = self.site.store.pauses
        pause = await pauses.add(DEFAULT_TENANT, errand.kind, errand.name, "operator")
        self.site.way.look_again()
        begins = self.site.clock.now()
        await self._until(errand.until)
        ends = self.site.clock.now()
        if await self.site.store.pauses.remove(DEFAULT_TENANT, pause.pause_id):
            self.paused.append(PausedSpan(errand.kind, errand.name, begins, ends))
        self.site.way.look_again()

    async def _cancel(self, errand: CancelErrand) -> None:
        ask = errand.ask
        while _is_open(ask):
            await self.site.clock.sleep(_AGAIN)
        if ask.batch_ids:
            await self.site.clock.sleep(timedelta(seconds=errand.after))
            if await self.site.way.cancel(CALLER, ask.batch_ids[0]) is None:
                self.complaints.append(f"{ask.name} was accepted, but cannot be cancelled: it is not known")

    async def _replay(self, errand: ReplayErrand) -> None:
        await self._until(errand.at)
        dead_letters = self.site.store.dead_letters
        if errand.is_discard:
            await dead_letters.discard(DEFAULT_TENANT, errand.matching, None, "operator", _PAGE)
        else:
            await dead_letters.replay(DEFAULT_TENANT, errand.matching, None, "operator", _PAGE)
            self.site.way.look_again()

    async def _until(self, at: float) -> None:
        await self.site.clock.sleep(timedelta(seconds=max(at - self.site.loop.time(), 0)))


def _is_open(ask: Ask) -> bool:
    """Without a key nobody dares to ask twice."""
    return not ask.is_answered and (ask.key is not None or ask.calls == 0)
