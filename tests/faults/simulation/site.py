"""One process of the product: a place in memory goes in; its own connection, store and way come out, unstarted."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from math import inf
from typing import Any
from unittest.mock import patch

from noroshi.domain.categories import Categories, Category
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.way import Way, WayParts
from noroshi.machine.rendering.inline import InlineRenderer
from noroshi.ports.batches import Turn
from noroshi.ports.renderer import RenderJob
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import open_inline_store
from tests.faults.machinery.sim_loop import SimLoop
from tests.faults.machinery.sim_ports import SimClock, SimCrashPoints, SimDice
from tests.faults.simulation.asks import POISON_RENDER
from tests.faults.simulation.population import CHANNELS, SEALER
from tests.faults.simulation.provider import Door, Provider
from tests.onlookers import nobody_looks

CATEGORIES = Categories([Category("brief", tries=1)])

USUAL: Mapping[str, str] = {"email": "alpha", "sms": "beta", "push": "beta"}
RETIRED: Mapping[str, str] = {**USUAL, "email": "gamma"}
"""E-mail has another account: what lies in the lanes of the first is nobody's for now."""

_WORKERS = {f"{c}.{p}": 2 if p is Priority.NORMAL else 1 for c in CHANNELS for p in Priority}
_SMALL: Mapping[str, object] = {
    "noroshi.flow.accept.intake.LARGEST_SLICE": 4,
    "noroshi.flow.accept.intake.SMALLEST_SLICE": 2,
    "noroshi.flow.accept.desk.CANCEL_PAGE": 2,
    "noroshi.flow.dispatch.dispatcher.RESUME_PAGE": 2,
    "noroshi.flow.dispatch.sweeper.PAGE": 2,
    "noroshi.flow.dispatch.sweeper._RESUME_PAGE": 2,
    # The one thing that looks at the real time: a busy machine must not change what a seed means.
    "noroshi.storage.sqlite.writer.GROUP_BUDGET_SECONDS": inf,
}


@contextmanager
def small_scale(answer_wait: timedelta) -> Iterator[None]:
    """Slices and pages of a few rows, so that a world of fifty messages has as many of them as a large one."""
    with ExitStack() as patches:
        for name, value in {**_SMALL, "noroshi.flow.accept.intake.ANSWER_WAIT": answer_wait}.items():
            patches.enter_context(patch(name, value))
        yield


class SimMeter:
    """The Meter port: keeps what the product counts as its own errors; nothing here may cause any."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        if name.endswith("_errors_total") and not name.startswith(("provider_", "notification_render_")):
            self.errors[name] += 1

    def observe(self, name: str, value: float, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...


class MishapError(Exception):
    """The renderer breaks down, which no template may cause."""


class FragileRenderer:
    """The Renderer port, in process: a poisonous text ends the world, and now and then a call breaks down."""

    def __init__(self, loop: SimLoop, chance: random.Random, mishaps: float, on_poison: Callable[[], None]) -> None:
        self.broken_down = 0
        self._loop = loop
        self._chance = chance
        self._mishaps = mishaps
        self._on_poison = on_poison
        self._inner = InlineRenderer()

    async def render(self, jobs: Sequence[RenderJob]) -> Sequence[Content | RenderFailure]:
        if any(str(job.data.get("text")).startswith(POISON_RENDER) for job in jobs):
            self._on_poison()
            self._loop.crash(POISON_RENDER)
        if self._mishaps and self._chance.random() < self._mishaps:
            self.broken_down += 1
            raise MishapError
        return await self._inner.render(jobs)

    async def check(self, template: TemplateVersion) -> str | None:
        return await self._inner.check(template)


class Surroundings:
    """What every process of one world finds: the machine, the database's place and the provider."""

    def __init__(
        self,
        *,
        where: str,
        dice: SimDice,
        crash_points: SimCrashPoints,
        provider: Provider,
        chance: random.Random,
        per_second: int | None,
        mishaps: float,
        has_gamma: bool,
    ) -> None:
        self.where = where
        self.dice = dice
        self.crash_points = crash_points
        self.provider = provider
        self.chance = chance
        self.per_second = per_second
        self.mishaps = mishaps
        self.has_gamma = has_gamma
        self.poison_renders = 0
        self.is_unannounced = False

    def note_poison(self) -> None:
        self.poison_renders += 1


class Site:
    """Opened, not started. `served` says which account each channel goes through from now on."""

    def __init__(self, around: Surroundings, clock: SimClock, life: int, served: Mapping[str, str]) -> None:
        self.life = life
        self.clock = clock
        self.loop = clock.loop
        self.meter = SimMeter()
        self.renderer = FragileRenderer(self.loop, around.chance, around.mishaps, around.note_poison)
        connection = open_connection(around.where, cache_kib=2048)
        connection.set_busy_timeout(0)
        self.store = open_inline_store(
            connection, sealer=SEALER, clock=clock, meter=self.meter, crash_points=around.crash_points
        )
        self.doors = _doors(around, clock, life, served)
        self.way = Way(self._parts(around, served))
        self._watch_announcements(around)

    def _parts(self, around: Surroundings, served: Mapping[str, str]) -> WayParts:
        store = self.store
        return WayParts(
            clock=self.clock,
            dice=around.dice,
            meter=self.meter,
            crash_points=around.crash_points,
            batches=store.batches,
            queue=store.queue,
            accounts=store.accounts,
            announcements=store.announcements(self.clock),
            duties=store.duties,
            pauses=store.pauses,
            templates=store.templates,
            history=store.history,
            inbox=store.inbox,
            live=nobody_looks(store.inbox, self.clock, self.meter),
            requests=store.requests,
            renderer=self.renderer,
            channels=self.doors,
            served=served,
            categories=CATEGORIES,
            default_locale="en",
            dispatch=DispatchSettings(workers=_WORKERS),
            max_waiting=100,
            max_unfinished=100_000,
        )

    def _watch_announcements(self, around: Surroundings) -> None:
        """W4 lies between the commit that puts deliveries into lanes and the word to the lanes."""
        announce, keep = self.way.dispatcher.announce, self.store.batches.keep

        def heard(lanes: Iterable[Lane]) -> None:
            around.is_unannounced = False
            announce(lanes)

        async def kept(*args: Any, **named: Any) -> Turn:
            turn = await keep(*args, **named)
            around.is_unannounced = bool(turn.lanes)
            return turn

        self.way.dispatcher.announce = heard  # type: ignore[method-assign]
        self.store.batches.keep = kept  # type: ignore[method-assign]

    def dead_loops(self) -> list[str]:
        """The product's own tasks that have ended although it was not stopped."""
        way: Any = self.way
        tasks = [
            way.intake._loop_task,
            way.sweeper._round,
            way._tidying,
            way.enqueued._task,
            *way.dispatcher._workers,
            *way.dispatcher._rounds,
        ]
        return [task.get_name() for task in tasks if task is not None and task.done()]


def _doors(around: Surroundings, clock: SimClock, life: int, served: Mapping[str, str]) -> dict[str, Door]:
    accounts: dict[str, list[str]] = {}
    for channel, account in served.items():
        accounts.setdefault(account, []).append(channel)
    if around.has_gamma and "gamma" not in accounts:
        accounts["gamma"] = ["email"]
    return {
        account: Door(
            around.provider,
            account,
            channels,
            clock=clock,
            loop=clock.loop,
            life=life,
            per_second=around.per_second if account == "beta" else None,
        )
        for account, channels in accounts.items()
    }
