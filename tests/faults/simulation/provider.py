"""The provider of every account: attempts go in, answers as good as the weather come out, and a ledger is kept.

It lives outside the world that crashes: what it took stays taken, and a request that had left when the process died
may still be taken.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from msgspec import Struct

from noroshi.domain.deliveries import Attempt, DeliveryKey
from noroshi.domain.instants import Instant, plus
from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent
from noroshi.ports.clock import Clock
from tests.faults.machinery.sim_loop import SimLoop
from tests.stand_ins.ledger_provider.ledger import TakenMessage

BUSY = "BUSY"
GONE = "GONE"
REJECTED = "REJECTED"
POISON_SEND = "poison send"
"""A text that ends the process of whoever tries to send it."""

ATTEMPT_TIMEOUT = timedelta(seconds=10)


class ConnectionLostError(Exception):
    """The request may or may not have arrived."""


class Weather(Struct, frozen=True):
    """How often (of 1) what goes wrong: with a whole call, or with a single message of it."""

    slow: float = 0.0
    hang: float = 0.0
    refused: float = 0.0
    dropped: float = 0.0
    cut_short: float = 0.0
    too_many: float = 0.0
    misconfigured: float = 0.0
    busy: float = 0.0
    rejected: float = 0.0
    gone: float = 0.0


CALM = Weather()
_CALLS = ("slow", "hang", "refused", "dropped", "cut_short", "too_many", "misconfigured")
_MESSAGES = ("busy", "rejected", "gone")


class Taking(Struct):
    """One message taken. `is_excused`: its answer never reached the product's store, so a copy may follow."""

    handed_at: Instant
    attempt: Attempt
    is_excused: bool = False

    def as_entry(self) -> TakenMessage:
        """`at` is when the request left: what was decided after that could not call it back."""
        attempt = self.attempt
        return TakenMessage(
            self.handed_at,
            attempt.key,
            attempt.recipient.user_id,
            attempt.lane.channel,
            attempt.content.body,
            attempt.number,
        )


class Handed(Struct, frozen=True):
    """A message that reached the provider's door, whatever became of it. `life` tells processes apart."""

    at: Instant
    account: str
    life: int
    attempt: Attempt


class Rest(Struct, frozen=True):
    """The account was told at `begins` to send nothing before `ends`."""

    account: str
    begins: Instant
    ends: Instant


class Provider:
    """`weather` may be changed at any time; `loop` is that of the present life."""

    def __init__(self, chance: random.Random, weather: Weather, tell: Callable[[str], None]) -> None:
        self.weather = weather
        self.takings: list[Taking] = []
        self.handed: list[Handed] = []
        self.rests: list[Rest] = []
        self.lost_answers = 0
        self.poison_crashes: Counter[DeliveryKey] = Counter()
        self._chance = chance
        self._tell = tell
        self._on_the_wire: dict[int, tuple[Instant, Sequence[Attempt]]] = {}
        self._by_key: dict[DeliveryKey, list[Taking]] = {}

    def takings_of(self, key: DeliveryKey) -> list[Taking]:
        return self._by_key.get(key, [])

    def excuse(self, key: DeliveryKey) -> int:
        """The outcome of what was taken so far is lost; how many takings that concerns."""
        lost = [taking for taking in self.takings_of(key) if not taking.is_excused]
        for taking in lost:
            taking.is_excused = True
        return len(lost)

    def lose_callers(self) -> None:
        """The process that had sent these requests is gone; the network still delivers some of them."""
        for handed_at, attempts in self._on_the_wire.values():
            if self._chance.random() < 0.5:
                self._take_all(handed_at, attempts, is_excused=False)
        self._on_the_wire.clear()

    async def serve(self, door: "Door", attempts: Sequence[Attempt]) -> list[Outcome]:
        now = door.clock.now()
        self.handed.extend(Handed(now, door.account, door.life, attempt) for attempt in attempts)
        self._refuse_poison(door, attempts)
        call = self._draw(_CALLS)
        try:
            return await self._answer(door, now, attempts, call)
        except asyncio.CancelledError:
            if self._on_the_wire.pop(id(attempts), None) and self._chance.random() < 0.5:
                self._take_all(now, attempts, is_excused=True)
            for attempt in attempts:
                self._excuse_call(attempt, now)
            raise

    async def _answer(
        self, door: "Door", now: Instant, attempts: Sequence[Attempt], call: str | None
    ) -> list[Outcome]:
        match call:
            case "refused":
                raise ConnectionLostError
            case "too_many":
                return self._rest(door, now, attempts)
            case "misconfigured":
                self.rests.append(Rest(door.account, now, plus(now, timedelta(minutes=5))))
                return [Misconfigured("UNAUTHORISED")] * len(attempts)
            case "slow" | "hang":
                return await self._answer_late(door, now, attempts, is_ever=call == "slow")
        outcomes = [self._answer_one(now, attempt) for attempt in attempts]
        if call == "dropped" or (call == "cut_short" and len(attempts) == 1):
            for attempt in attempts:
                self._excuse_call(attempt, now)
            raise ConnectionLostError
        if call == "cut_short":
            kept = self._chance.randrange(len(attempts))
            for attempt in attempts[kept:]:
                self._excuse_call(attempt, now)
            return outcomes[:kept]
        return outcomes

    async def _answer_late(
        self, door: "Door", now: Instant, attempts: Sequence[Attempt], *, is_ever: bool
    ) -> list[Outcome]:
        """Takes first and answers late, or leaves the request lying and then takes it."""
        wait = timedelta(seconds=self._chance.uniform(0.05, 9.0)) if is_ever else ATTEMPT_TIMEOUT * 10
        if self._chance.random() < 0.5:
            outcomes = [self._answer_one(now, attempt) for attempt in attempts]
            await door.clock.sleep(wait)
            return outcomes
        self._on_the_wire[id(attempts)] = (now, attempts)
        await door.clock.sleep(wait)
        del self._on_the_wire[id(attempts)]
        return [self._answer_one(now, attempt) for attempt in attempts]

    def _rest(self, door: "Door", now: Instant, attempts: Sequence[Attempt]) -> list[Outcome]:
        after = self._chance.choice([None, timedelta(seconds=self._chance.randint(1, 60)), timedelta(seconds=-5)])
        if after is not None and after > timedelta(0):
            self.rests.append(Rest(door.account, now, plus(now, after)))
        return [Retry("TOO_MANY_REQUESTS", "429", after, Scope.ACCOUNT)] * len(attempts)

    def _answer_one(self, handed_at: Instant, attempt: Attempt) -> Outcome:
        match self._draw(_MESSAGES):
            case "busy":
                after = timedelta(seconds=self._chance.randint(1, 20)) if self._chance.random() < 0.3 else None
                return Retry(BUSY, "503", after)
            case "rejected":
                return Rejected(REJECTED)
            case "gone" if attempt.lane.channel == "push":
                return Gone(GONE)
        return Sent(self._take(handed_at, attempt))

    def _take_all(self, handed_at: Instant, attempts: Sequence[Attempt], *, is_excused: bool) -> None:
        for attempt in attempts:
            self._take(handed_at, attempt)
            if is_excused:
                self._excuse_call(attempt, handed_at)

    def _take(self, handed_at: Instant, attempt: Attempt) -> str:
        taking = Taking(handed_at, attempt)
        self.takings.append(taking)
        self._by_key.setdefault(attempt.key, []).append(taking)
        return f"m{len(self.takings)}"

    def _excuse_call(self, attempt: Attempt, handed_at: Instant) -> None:
        for taking in self.takings_of(attempt.key):
            if taking.handed_at == handed_at and not taking.is_excused:
                taking.is_excused = True
                self.lost_answers += 1

    def _refuse_poison(self, door: "Door", attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            if attempt.content.body.startswith(POISON_SEND):
                self.poison_crashes[attempt.key] += 1
                door.loop.crash(POISON_SEND)

    def _draw(self, kinds: Sequence[str]) -> str | None:
        drawn = self._chance.random()
        for kind in kinds:
            drawn -= getattr(self.weather, kind)
            if drawn < 0:
                return kind
        return None


class Door:
    """The Channel port of one account in one process: leads to the provider outside."""

    max_batch = 5
    attempt_timeout = ATTEMPT_TIMEOUT

    def __init__(
        self,
        provider: Provider,
        account: str,
        channels: Sequence[str],
        *,
        clock: Clock,
        loop: SimLoop,
        life: int,
        per_second: int | None = None,
    ) -> None:
        self.account = account
        self.channels = frozenset(channels)
        self.per_second = per_second
        self.clock = clock
        self.loop = loop
        self.life = life
        self._provider = provider

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        return await self._provider.serve(self, attempts)

    def validate_target(self, address: str) -> str | None:
        return None if address else "empty"
