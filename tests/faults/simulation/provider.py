"""The provider of every account: attempts go in, answers as good as the weather come out, and a ledger is kept.

It lives outside the world that crashes: what it took stays taken, and a request that had left when the process died
may still be taken.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence
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


class _Call(Struct, eq=False):
    """A request under way. `is_lost`: whoever sent it has lost its claims, so its answer will not count."""

    life: int
    handed_at: Instant
    attempts: Sequence[Attempt]
    is_on_the_wire: bool = False
    is_lost: bool = False


class Provider:
    """`weather` may change at any time. A taking is excused when its answer is lost: only then may a copy follow."""

    def __init__(self, chance: random.Random, weather: Weather) -> None:
        self.weather = weather
        self.takings: list[Taking] = []
        self.handed: list[Handed] = []
        self.rests: list[Rest] = []
        self.excused = 0
        self.poison_crashes: Counter[DeliveryKey] = Counter()
        self._chance = chance
        self._calls: dict[_Call, None] = {}
        self._lost_claims: set[tuple[int, DeliveryKey]] = set()
        self._by_key: dict[DeliveryKey, list[Taking]] = {}

    def excuse(self, key: DeliveryKey) -> int:
        """The outcome of what was taken so far is lost; how many takings that concerns."""
        return sum(self._excuse(taking) for taking in self._by_key.get(key, ()))

    def lose_callers(self) -> None:
        """The process that had sent these requests is gone; the network still delivers some of them."""
        for call in self._calls:
            if call.is_on_the_wire and self._chance.random() < 0.5:
                self._take_all(call)
        self._calls.clear()
        self._lost_claims.clear()

    def lose_claims(self, life: int, keys: Iterable[DeliveryKey], *, may_follow: bool) -> int:
        """A process that lives on has lost these claims: whatever it sends by them is excused, what is under way and
        (`may_follow`) what it has not yet handed over. How many were taken already."""
        lost = set(keys)
        for call in self._calls:
            call.is_lost |= call.life == life and any(attempt.key in lost for attempt in call.attempts)
        taken = {key: self.excuse(key) for key in lost}
        if may_follow:
            self._lost_claims.update((life, key) for key, count in taken.items() if not count)
        return sum(taken.values())

    async def serve(self, door: "Door", attempts: Sequence[Attempt]) -> list[Outcome]:
        call = _Call(door.life, door.clock.now(), attempts)
        self.handed.extend(Handed(call.handed_at, door.account, door.life, attempt) for attempt in attempts)
        self._refuse_poison(door, attempts)
        self._calls[call] = None
        try:
            outcomes = await self._answer(door, call)
        except asyncio.CancelledError:
            if call.is_on_the_wire and self._chance.random() < 0.5:
                self._take_all(call)
            self._lose_answer(call, attempts)
            raise
        except ConnectionLostError:
            self._lose_answer(call, attempts)
            raise
        self._lose_answer(call, attempts[len(outcomes) :])
        return outcomes

    async def _answer(self, door: "Door", call: _Call) -> list[Outcome]:
        kind = self._draw(_CALLS)
        match kind:
            case "refused":
                raise ConnectionLostError
            case "too_many":
                return self._rest(door, call)
            case "misconfigured":
                self.rests.append(Rest(door.account, call.handed_at, plus(call.handed_at, timedelta(minutes=5))))
                return [Misconfigured("UNAUTHORISED")] * len(call.attempts)
            case "slow" | "hang":
                return await self._answer_late(door, call, is_ever=kind == "slow")
        outcomes = self._answer_each(call)
        if kind == "dropped":
            raise ConnectionLostError
        return outcomes[: self._chance.randrange(len(outcomes))] if kind == "cut_short" else outcomes

    async def _answer_late(self, door: "Door", call: _Call, *, is_ever: bool) -> list[Outcome]:
        """Takes first and answers late, or leaves the request lying and then takes it."""
        wait = timedelta(seconds=self._chance.uniform(0.05, 9.0)) if is_ever else ATTEMPT_TIMEOUT * 10
        if self._chance.random() < 0.5:
            outcomes = self._answer_each(call)
            await door.clock.sleep(wait)
            return outcomes
        call.is_on_the_wire = True
        await door.clock.sleep(wait)
        call.is_on_the_wire = False
        return self._answer_each(call)

    def _answer_each(self, call: _Call) -> list[Outcome]:
        return [self._answer_one(call, attempt) for attempt in call.attempts]

    def _answer_one(self, call: _Call, attempt: Attempt) -> Outcome:
        match self._draw(_MESSAGES):
            case "busy":
                after = timedelta(seconds=self._chance.randint(1, 20)) if self._chance.random() < 0.3 else None
                return Retry(BUSY, "503", after)
            case "rejected":
                return Rejected(REJECTED)
            case "gone" if attempt.lane.channel == "push":
                return Gone(GONE)
        return Sent(self._take(call, attempt))

    def _rest(self, door: "Door", call: _Call) -> list[Outcome]:
        after = self._chance.choice([None, timedelta(seconds=self._chance.randint(1, 60)), timedelta(seconds=-5)])
        if after is not None and after > timedelta(0):
            self.rests.append(Rest(door.account, call.handed_at, plus(call.handed_at, after)))
        return [Retry("TOO_MANY_REQUESTS", "429", after, Scope.ACCOUNT)] * len(call.attempts)

    def _take_all(self, call: _Call) -> None:
        for attempt in call.attempts:
            self._take(call, attempt)

    def _take(self, call: _Call, attempt: Attempt) -> str:
        taking = Taking(call.handed_at, attempt)
        self.takings.append(taking)
        self._by_key.setdefault(attempt.key, []).append(taking)
        if call.is_lost or (call.life, attempt.key) in self._lost_claims:
            self._lost_claims.discard((call.life, attempt.key))
            self._excuse(taking)
        return f"m{len(self.takings)}"

    def _lose_answer(self, call: _Call, attempts: Sequence[Attempt]) -> None:
        """The call is over, and these attempts of it heard nothing."""
        self._calls.pop(call, None)
        unheard = {attempt.key for attempt in attempts}
        for taking in self.takings if unheard else ():
            if taking.handed_at == call.handed_at and taking.attempt.key in unheard:
                self._excuse(taking)

    def _excuse(self, taking: Taking) -> bool:
        is_news = not taking.is_excused
        taking.is_excused = True
        self.excused += is_news
        return is_news

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
