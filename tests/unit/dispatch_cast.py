"""The cast of the dispatch tests: claims, a clock moved by hand, and the least queue the loops can run on."""

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from noroshi.domain.accounts import FREE, BreakerState, Terms
from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import (
    Attempt,
    Claim,
    DeliveryKey,
    Expired,
    Recipient,
    Settled,
    Settlement,
    Taken,
    Verdict,
)
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, NotificationId
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.outcomes import Outcome, Sent
from noroshi.domain.priorities import Priority
from noroshi.domain.records import Alert, Pause, PauseKind
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.flow.dispatch.dispatcher import Dispatcher
from noroshi.flow.dispatch.settings import DispatchSettings

NOW = Instant(1_800_000_000_000_000)
PUSH = Lane("push", "apns", Priority.NORMAL)
HANAKO = Recipient("hanako", "Hanako", "ja", "Asia/Tokyo", {})
GREETING = TemplateVersion(1, "greeting", "push", "ja", "", 1, None, "Hi", "Hello", {})


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def a_key(number: int = 1) -> DeliveryKey:
    return DeliveryKey(DEFAULT_TENANT, NotificationId(number.to_bytes(16, "big")), EndpointId(7))


def a_claim(number: int = 1, **changes: Any) -> Claim:
    values: dict[str, Any] = {
        "key": a_key(number),
        "lane": PUSH,
        "fence": 1,
        "claims": 1,
        "tries": 0,
        "category": "general",
        "wanted_at": NOW,
        "expires_at": None,
        "lease_until": plus(NOW, seconds(40)),
        "recipient": HANAKO,
        "address": "token",
        "data": {},
        "template": GREETING,
        "is_cancelled": False,
    }
    return Claim(**(values | changes))


def an_expired(number: int = 1, **changes: Any) -> Expired:
    values: dict[str, Any] = {
        "key": a_key(number),
        "lane": PUSH,
        "fence": 1,
        "claims": 1,
        "tries": 0,
        "category": "general",
        "expires_at": None,
    }
    return Expired(**(values | changes))


class HandClock:
    """Time stands still until everybody waits; then it moves to the next one to be woken."""

    def __init__(self) -> None:
        self._micros = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> Instant:
        return Instant(NOW + self._micros)

    def monotonic(self) -> float:
        return self._micros / 1_000_000

    async def sleep(self, span: timedelta) -> None:
        self._count += 1
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._micros + span // timedelta(microseconds=1), self._count, woken))
        await woken

    async def settle(self) -> None:
        """Lets everything run that can run without time passing."""
        for _ in range(60):
            await asyncio.sleep(0)

    async def advance(self, span: timedelta) -> None:
        end = self._micros + span // timedelta(microseconds=1)
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._micros = max(self._micros, at)
            if not woken.done():
                woken.set_result(None)
                await self.settle()
        self._micros = end
        await self.settle()

    def jump(self, span: timedelta) -> None:
        """The process stood still: time passed and nobody was woken."""
        self._micros += span // timedelta(microseconds=1)

    async def until(self, is_so: Callable[[], bool], within: timedelta = timedelta(seconds=30)) -> None:
        end = plus(self.now(), within)
        await self.settle()
        while not is_so():
            assert self.now() < end, "it never came about"
            await self.advance(timedelta(milliseconds=100))


class FixedDice:
    def fraction(self) -> float:
        return 0.5

    def bits(self, count: int) -> int:
        return 0


class CountingMeter:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.labelled: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self.gauges: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        self.counts[name] += int(by)
        self.labelled[name, tuple(sorted(labels.items()))] += int(by)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.counts[name] += 1

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.gauges[name, tuple(sorted(labels.items()))] = value


class RecordedCrashPoints:
    def __init__(self) -> None:
        self.reached: list[str] = []

    def reach(self, name: str) -> None:
        self.reached.append(name)


class LeastQueue:
    """As much of a queue as the loops need: due times and fences, no store."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.ready: dict[Lane, list[tuple[Instant, Claim]]] = {}
        self.leased: dict[DeliveryKey, Claim] = {}
        self.settlements: list[Settlement] = []
        self.alerts: list[Alert] = []
        self.takes: list[tuple[Lane, int]] = []
        self.terms: list[Terms] = []
        self.refusals: list[Taken] = []
        self.grant_wait = timedelta(0)
        self.renewals = 0
        self.lost: set[DeliveryKey] = set()
        self.failures: list[Exception] = []
        self.settle_failures: list[Exception] = []

    def put(self, *claims: Claim, due_at: Instant = NOW) -> None:
        for claim in claims:
            self.ready.setdefault(claim.lane, []).append((due_at, claim))

    def verdicts(self) -> list[Verdict]:
        return [s.verdict for s in self.settlements]

    async def take(
        self, lane: Lane, limit: int, lease: timedelta, paused_categories: frozenset[str], terms: Terms = FREE
    ) -> Taken:
        if self.failures:
            raise self.failures.pop()
        self.takes.append((lane, limit))
        self.terms.append(terms)
        if self.refusals:
            return self.refusals.pop(0)
        rows = sorted(self.ready.get(lane, []), key=lambda row: row[0])
        due = [c for at, c in rows if at <= self._clock.now() and c.category not in paused_categories]
        taken = due[:limit]
        for claim in taken:
            self.leased[claim.key] = claim
        self.ready[lane] = [row for row in rows if row[1] not in taken]
        later = [at for at, _ in rows if at > self._clock.now()]
        return Taken(taken, min(later, default=None), len(due) > limit, self.grant_wait)

    async def settle(self, settlements: Sequence[Settlement], alerts: Sequence[Alert] = ()) -> Settled:
        if self.settle_failures:
            raise self.settle_failures.pop()
        self.settlements.extend(settlements)
        self.alerts.extend(alerts)
        for settlement in settlements:
            claim = self.leased.pop(settlement.key, None)
            if claim is not None and settlement.due_at is not None:
                self.put(claim, due_at=settlement.due_at)
        return Settled(len(settlements), (), 0)

    async def renew(self, held: Sequence[tuple[DeliveryKey, int]], lease: timedelta) -> set[DeliveryKey]:
        self.renewals += 1
        return self.lost & {key for key, _ in held}

    async def expired(
        self, after: tuple[Instant, DeliveryKey] | None, limit: int, *, is_start: bool
    ) -> list[tuple[Instant, Expired]]:
        return []

    async def waiting(self) -> dict[Lane, Instant]:
        return {lane: min(at for at, _ in rows) for lane, rows in self.ready.items() if rows}

    async def oldest(self) -> dict[Lane, Instant]:
        since = await self.waiting()
        for claim in self.leased.values():
            since[claim.lane] = min(claim.wanted_at, since.get(claim.lane, claim.wanted_at))
        return since

    async def resume(self, paused_categories: frozenset[str], limit: int) -> int:
        return 0

    async def unfinished(self) -> int:
        return 0


class LeastAccounts:
    """Blocks and breakers as other processes would find them; `breakers_as` holds (epoch, open until)."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.blocks: dict[str, Instant] = {}
        self.breakers_as: dict[str, tuple[int, Instant | None]] = {}
        self.ended_trials: list[tuple[str, int]] = []
        self.failures: list[Exception] = []

    async def block(self, account: str, until: Instant, why: str) -> None:
        self.blocks[account] = until

    async def blocked(self) -> dict[str, Instant]:
        return dict(self.blocks)

    async def move_breaker(self, account: str, epoch: int, open_for: timedelta | None) -> BreakerState:
        if self.failures:
            raise self.failures.pop()
        if epoch > self.breakers_as.get(account, (0, None))[0]:
            self.breakers_as[account] = epoch, None if open_for is None else plus(self._clock.now(), open_for)
        return (await self.breakers())[account]

    async def breakers(self) -> dict[str, BreakerState]:
        now = self._clock.now()
        return {
            account: BreakerState(epoch, None if until is None else seconds(max(until - now, 0) / 1_000_000))
            for account, (epoch, until) in self.breakers_as.items()
        }

    async def end_trial(self, account: str, epoch: int) -> None:
        self.ended_trials.append((account, epoch))


class LeastPauses:
    def __init__(self) -> None:
        self.pauses: list[Pause] = []

    def pause(self, kind: PauseKind, name: str | None) -> None:
        self.pauses.append(Pause(len(self.pauses) + 1, kind, name, NOW, "operator"))

    async def in_force(self) -> list[Pause]:
        return list(self.pauses)

    async def add(self, *_: Any) -> Any: ...
    async def list_pauses(self, *_: Any) -> Any: ...
    async def remove(self, *_: Any) -> Any: ...


class ScriptedChannel:
    """Answers Sent, unless `answer` says otherwise."""

    def __init__(self, account: str = "apns", channels: tuple[str, ...] = ("push",), max_batch: int = 10) -> None:
        self.account = account
        self.channels = frozenset(channels)
        self.max_batch = max_batch
        self.attempt_timeout = seconds(10)
        self.per_second: int | None = None
        self.calls: list[list[Attempt]] = []
        self.answer: Callable[[Sequence[Attempt]], Awaitable[Sequence[Outcome]]] | None = None

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        self.calls.append(list(attempts))
        if self.answer is not None:
            return await self.answer(attempts)
        return [Sent(f"m{a.key.notification_id[-1]}") for a in attempts]

    def validate_target(self, address: str) -> str | None:
        return None


class Stage:
    """A dispatcher with its cast."""

    def __init__(self, *channels: ScriptedChannel, settings: DispatchSettings | None = None) -> None:
        self.clock = HandClock()
        self.meter = CountingMeter()
        self.queue = LeastQueue(self.clock)
        self.accounts = LeastAccounts(self.clock)
        self.pauses = LeastPauses()
        self.crash_points = RecordedCrashPoints()
        self.channels = channels or (ScriptedChannel(),)
        self.told = 0
        self.composed = 0
        self.compose_calls = 0
        self.compose_holds: dict[int, asyncio.Event] = {}
        self.compose_errors: list[Exception] = []
        self.dispatcher = Dispatcher(
            clock=self.clock,
            dice=FixedDice(),
            meter=self.meter,
            queue=self.queue,
            accounts=self.accounts,
            pauses=self.pauses,
            compose=self._compose,
            channels={c.account: c for c in self.channels},
            categories=Categories(),
            settings=settings or DispatchSettings(),
            crash_points=self.crash_points,
            tell_change=self._tell_change,
        )

    def _tell_change(self) -> None:
        self.told += 1

    @property
    def channel(self) -> ScriptedChannel:
        return self.channels[0]

    def hold_compose(self, call: int) -> asyncio.Event:
        """That call of compose waits until the event is set."""
        self.compose_holds[call] = asyncio.Event()
        return self.compose_holds[call]

    async def _compose(self, claims: Sequence[Claim]) -> Sequence[Content | RenderFailure]:
        if self.compose_errors:
            raise self.compose_errors.pop()
        self.compose_calls += 1
        if hold := self.compose_holds.get(self.compose_calls):
            await hold.wait()
        self.composed += len(claims)
        return [RenderFailure("line 1") if c.data.get("is_broken") else Content("Hello") for c in claims]

    async def stopped(self) -> None:
        stopping = asyncio.create_task(self.dispatcher.stop())
        await self.clock.until(stopping.done)
        await stopping


def answering(*outcomes: Outcome) -> Callable[[Sequence[Attempt]], Awaitable[Sequence[Outcome]]]:
    """The first message of a call gets the first outcome and so on; the last one is for all that follow."""

    async def answer(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        return [outcomes[min(n, len(outcomes) - 1)] for n in range(len(attempts))]

    return answer


async def started(stage: Stage) -> Stage:
    await stage.dispatcher.start()
    await stage.clock.settle()
    return stage


async def put(stage: Stage, *numbers: int, **changes: Any) -> None:
    """Into the queue, announced, and as far on as it goes without time passing."""
    claims = [a_claim(n, **changes) for n in numbers]
    stage.queue.put(*claims, due_at=stage.clock.now())
    stage.dispatcher.announce({c.lane for c in claims})
    await stage.clock.settle()
