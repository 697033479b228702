"""The sweeper: leases that ended without an outcome go in, judged and settled; what stands still is measured."""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import timedelta

import structlog

from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import DeliveryKey, Verdict
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.flow.dispatch.alarms import Judged
from noroshi.flow.dispatch.judge import judge_expired
from noroshi.flow.dispatch.settling import Settler
from noroshi.flow.dispatch.waiting import repeat
from noroshi.ports.clock import Clock
from noroshi.ports.duties import Duties
from noroshi.ports.meter import Meter
from noroshi.ports.queue import Queue

PAGE = 200
EVERY = timedelta(seconds=1)
DUTY = "sweep"

_DUTY_LASTS = timedelta(seconds=5)

_RESUME_PAGE = 500
_SECOND = 1_000_000
_NO_SPAN = timedelta(0)

_log = structlog.get_logger(__name__)


class Sweeper:
    """`served`, `repeats` and `paused_categories` are the dispatcher's; `settler` is shared with it. One process at a
    time has the duty to sweep; if its holder dies or stands still, another takes it over within seconds."""

    def __init__(
        self,
        *,
        clock: Clock,
        meter: Meter,
        queue: Queue,
        settler: Settler,
        categories: Categories,
        served: Container[tuple[str, str]],
        announce: Callable[[Iterable[Lane]], None],
        paused_categories: Callable[[], frozenset[str]],
        duties: Duties,
        repeats: Mapping[str, timedelta] | None = None,
    ) -> None:
        self._clock = clock
        self._meter = meter
        self._queue = queue
        self._settler = settler
        self._categories = categories
        self._served = served
        self._repeats = repeats or {}
        self._announce = announce
        self._paused_categories = paused_categories
        self._duties = duties
        self._measured: set[Lane] = set()
        self._closing = asyncio.Event()
        self._round: asyncio.Task[None] | None = None

    async def rescue_all(self) -> int:
        """Before the lanes start: every lease of a former process has ended. How many were judged."""
        return await self._rescue(is_start=True)

    async def start(self) -> None:
        self._round = asyncio.create_task(repeat(self.sweep, self._clock, EVERY, self._closing, self._note))

    async def stop(self) -> None:
        self._closing.set()
        if self._round is not None:
            await asyncio.wait((self._round,))

    async def sweep(self) -> None:
        if await self._duties.take(DUTY, _DUTY_LASTS):
            await self._rescue(is_start=False)
            await self._resume()
        await self._measure()
        self._meter.gauge("sweeper_last_run_timestamp", self._clock.now() / _SECOND)

    async def _rescue(self, *, is_start: bool) -> int:
        """Every page to the end: rows that may not be touched must never hide the ones behind them (F26)."""
        after: tuple[Instant, DeliveryKey] | None = None
        rescued = 0
        while page := await self._queue.expired(after, PAGE, is_start=is_start):
            now = self._clock.now()
            judged: list[Judged] = []
            for _, expired in page:
                repeats = self._repeats.get(expired.lane.account, _NO_SPAN)
                settlement = judge_expired(expired, now, self._categories, self._served, repeats)
                if settlement is not None:
                    judged.append(Judged(settlement, expired.lane, expired.tries, None))
            if judged:
                await self._settler.settle(judged)
                self._announce({j.lane for j in judged if j.settlement.verdict is Verdict.RESEND})
            rescued += len(judged)
            last_at, last = page[-1]
            after = last_at, last.key
        if rescued:
            _log.info("leases_rescued", count=rescued, is_start=is_start)
        return rescued

    async def _resume(self) -> None:
        while await self._queue.resume(self._paused_categories(), _RESUME_PAGE) == _RESUME_PAGE:
            pass

    async def _measure(self) -> None:
        oldest = await self._queue.oldest()
        now = self._clock.now()
        for lane in self._measured | oldest.keys():
            age = max(now - oldest.get(lane, now), 0) / _SECOND
            self._meter.gauge("notification_oldest_unfinished_seconds", age, lane=lane.name)
        self._measured.update(oldest)
        self._settler.rates.measure()
        self._meter.gauge("notification_queue_depth", await self._queue.unfinished())

    def _note(self, error: Exception) -> None:
        self._meter.count("sweeper_errors_total")
        _log.error("sweep_failed", error=type(error).__name__)
