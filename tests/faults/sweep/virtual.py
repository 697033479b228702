"""The whole way in virtual time, for hours that a test does not have: real flow, a real store, providers that are told
how to behave, and crashes at chosen moments."""

import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from unittest.mock import patch

from msgspec.structs import replace

from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant, plus
from noroshi.domain.outcomes import Outcome, Unknown
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller, NotificationRequest
from noroshi.flow import way
from noroshi.flow.accept import enqueued, intake
from noroshi.flow.dispatch import sweeper
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.way import Way, WayParts
from noroshi.machine.rendering.inline import InlineRenderer
from noroshi.machine.sealing import AesSealer
from noroshi.storage.postgres import announcing
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import open_inline_store
from noroshi.storage.store import Store
from tests.faults.machinery.kept_store import KeptStore, StoreDatabase
from tests.faults.machinery.load import Heard, Posted
from tests.faults.machinery.reckoning import Asked, Crash, Reckoning, reckon
from tests.faults.machinery.sim_loop import CrashError
from tests.faults.machinery.sim_machine import SimMachine
from tests.faults.sweep.seeded import TEMPLATE, expected_hash, fill
from tests.faults.sweep.trial import notifications_of
from tests.onlookers import nobody_looks
from tests.stand_ins.ledger_provider.channel import outcome_of
from tests.stand_ins.ledger_provider.ledger import SeenRequest, TakenMessage
from tests.stand_ins.ledger_provider.server import UNAVAILABLE
from tests.stand_ins.ledger_provider.wire import Answer, Conduct, content_hash, wait_of
from tests.stores import hasty

ANSWERS_AFTER = timedelta(milliseconds=20)
CALLER = Caller(DEFAULT_TENANT, "virtual", "virtual", frozenset(KeyScope))

_KEY = bytes(32)

_SELDOM = timedelta(seconds=30)
_ROUNDS = [(sweeper, "EVERY"), (intake, "_POLL"), (enqueued, "EVERY"), (way, "_TIDY_EVERY")]

Script = Callable[["VirtualNoroshi"], Awaitable[None]]


class VirtualProvider:
    """The ledger provider's conduct without its process; `failing` are the channels its errors are about."""

    max_batch = 20
    attempt_timeout = timedelta(seconds=10)
    per_second = None

    def __init__(self, account: str, *channels: str, failing: Sequence[str] = ()) -> None:
        self.account = account
        self.channels = frozenset(channels)
        self.conduct = Conduct()
        self.taken: list[TakenMessage] = []
        self.requests: list[SeenRequest] = []
        self._failing = frozenset(failing) or self.channels
        self._chance = random.Random(account)

    def place_on(self, machine: SimMachine) -> None:
        self._clock = machine.clock

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        at, conduct = self._clock.now(), self._next_conduct()
        await self._clock.sleep(ANSWERS_AFTER)
        answers = [self._answer(attempt, conduct) for attempt in attempts]
        now = self._clock.now()
        self.taken += [_entry(one, now) for one, answer in zip(attempts, answers, strict=True) if answer.message_id]
        wait = wait_of(answers[0].retry_after, now)
        self.requests.append(SeenRequest(at, len(attempts), now, None if wait is None else plus(now, wait)))
        if conduct.is_dropping:
            return [Unknown(error="the connection was lost after the request left")] * len(attempts)
        return [outcome_of(answer, now) for answer in answers]

    def validate_target(self, address: str) -> str | None:
        return None if address else "the address is empty"

    def _next_conduct(self) -> Conduct:
        conduct = self.conduct
        if conduct.requests is not None:
            left = conduct.requests - 1
            self.conduct = replace(conduct, requests=left) if left else Conduct()
        return conduct

    def _answer(self, attempt: Attempt, conduct: Conduct) -> Answer:
        if conduct.is_limiting:
            return Answer(429, retry_after=conduct.retry_after)
        if attempt.lane.channel in self._failing and self._chance.random() < conduct.error_share:
            return Answer(UNAVAILABLE)
        return Answer(202, f"{attempt.key.notification_id.hex()}-{attempt.number}")


def _entry(attempt: Attempt, at: Instant) -> TakenMessage:
    return TakenMessage(
        at,
        attempt.key,
        attempt.recipient.user_id,
        attempt.lane.channel,
        content_hash(attempt.content),
        attempt.number,
    )


class Tally:
    """The Meter port: counts by name, and when a breaker was first seen open, by provider."""

    def __init__(self, machine: SimMachine) -> None:
        self.counts: Counter[str] = Counter()
        self.opened_at: dict[str, Instant] = {}
        self._clock = machine.clock

    def count(self, name: str, by: float = 1, **_labels: str) -> None:
        self.counts[name] += int(by)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Nothing."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        if name == "provider_breaker_open" and value:
            self.opened_at.setdefault(labels["provider"], self._clock.now())


class VirtualNoroshi:
    """Through any number of lives on one store. `way` and `store` are those of the life that is being lived. Rounds
    (looks, sweeps, polls) are as frequent as in service, unless a test says how often they are to be."""

    way: Way
    store: Store

    def __init__(
        self,
        seed: int,
        kept: KeptStore,
        *providers: VirtualProvider,
        people: int,
        categories: Categories | None = None,
        rounds_every: timedelta | None = None,
    ) -> None:
        self.kept = kept
        self._rounds_every = rounds_every or (_SELDOM if isinstance(kept, StoreDatabase) else None)
        self.machine = SimMachine(seed, is_wired=isinstance(kept, StoreDatabase))
        self.clock = self.machine.clock
        self.meter = Tally(self.machine)
        self.people = [f"person-{number}" for number in range(people)]
        self.posted: dict[str, Posted] = {}
        self.crashes: list[Crash] = []
        self._providers = providers
        self._categories = categories or Categories()
        for provider in providers:
            provider.place_on(self.machine)
        self.live(_fill)

    def live(self, script: Script) -> None:
        """One life, from start to a clean stop, or to the crash in its script."""
        with self.machine.life() as life, self._fewer_rounds():
            try:
                life.loop.run_until_complete(self._live(script))
            except CrashError as end:
                self.crashes.append(Crash(self.clock.now(), 0, str(end)))

    def crash(self, where: str) -> None:
        self.machine.loop.crash(where)

    async def post(self, key: str, user_id: str, channel: str, category: str = "general") -> None:
        request = NotificationRequest(
            [user_id], TEMPLATE, [channel], {"n": key}, idempotency_key=key, category=category
        )
        answer = await self.way.accept(CALLER, request, None)
        body = {"user_ids": [user_id], "channels": [channel], "category": category}
        self.posted[key] = Posted(body, [Heard(self.clock.now(), 202, answer.batch_id)])

    async def drain(self, within: timedelta) -> timedelta:
        """How long it took until nothing was unfinished."""
        began = self.clock.now()
        while await self.store.queue.unfinished():
            passed = timedelta(microseconds=self.clock.now() - began)
            assert passed <= within, f"not drained within {within}"
            await self.clock.sleep(timedelta(seconds=1))
        return timedelta(microseconds=self.clock.now() - began)

    def taken(self) -> list[TakenMessage]:
        return [entry for provider in self._providers for entry in provider.taken]

    def reckon(self, *, is_control: bool = False) -> Reckoning:
        asked = [
            Asked(one, user_id, channel, content_hash=expected_hash(channel, key, user_id), at=posted.answered_at)
            for key, posted in self.posted.items()
            for one, user_id, channel in notifications_of(posted)
        ]
        return reckon(asked, self.kept.ended(), self.taken(), self.crashes, is_control=is_control)

    @contextlib.contextmanager
    def _fewer_rounds(self) -> Iterator[None]:
        """An hour of rounds in each second would take a server minutes. Nothing here waits for them."""
        with contextlib.ExitStack() as changes:
            for module, name in () if self._rounds_every is None else _ROUNDS:
                changes.enter_context(patch.object(module, name, self._rounds_every))
            if self._rounds_every is not None:
                seconds = self._rounds_every.total_seconds()
                changes.enter_context(patch.object(announcing, "_HEARTBEAT_SECONDS", seconds))
            yield

    def _open_store(self) -> Store:
        sealer, machine = AesSealer({1: _KEY}, _KEY), self.machine
        if isinstance(self.kept, StoreDatabase):
            return PostgresStore(
                hasty(self.kept.place),
                sealer=sealer,
                meter=self.meter,
                crash_points=machine.crash_points,
                clock=machine.clock,
                is_unsafe=True,
            )
        return open_inline_store(
            open_connection(self.kept.place, synchronous="OFF"),
            sealer=sealer,
            clock=machine.clock,
            meter=self.meter,
            crash_points=machine.crash_points,
        )

    async def _live(self, script: Script) -> None:
        machine = self.machine
        self.store = store = self._open_store()
        await store.start()
        self.way = Way(
            WayParts(
                clock=machine.clock,
                dice=machine.dice,
                meter=self.meter,
                crash_points=machine.crash_points,
                batches=store.batches,
                queue=store.queue,
                accounts=store.accounts,
                announcements=store.announcements(machine.clock),
                duties=store.duties,
                pauses=store.pauses,
                templates=store.templates,
                history=store.history,
                inbox=store.inbox,
                live=nobody_looks(store.inbox, machine.clock, self.meter),
                requests=store.requests,
                renderer=InlineRenderer(),
                channels={provider.account: provider for provider in self._providers},
                served={name: one.account for one in self._providers for name in one.channels},
                categories=self._categories,
                default_locale="en",
                dispatch=DispatchSettings(look_every=sweeper.EVERY, pauses_every=2 * sweeper.EVERY),
                max_waiting=10_000,
                max_unfinished=5_000_000,
            )
        )
        await self.way.start()
        await script(self)
        await self.way.stop()
        await store.stop()


async def _fill(noroshi: VirtualNoroshi) -> None:
    await fill(noroshi.store, noroshi.people)
