"""A witnessed store: real accept, claim and settle calls go in; what was acknowledged and is no longer so comes out."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import msgspec
from msgspec import Struct, field

from noroshi.domain.batches import BatchHead, NewBatch
from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import DeliveryKey, Settlement, Verdict
from noroshi.domain.ids import DEFAULT_TENANT, BatchId, new_batch_id
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.people import User
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.states import Status
from noroshi.flow.address.decide import Addresser
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.machine.sealing import AesSealer
from noroshi.ports.clock import Clock
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.sqlite.store import open_store
from noroshi.storage.store import Store
from tests.faults.machinery.kept_store import KeptStore, StoreDatabase

LANE = Lane("in_app", "witness", Priority.CRITICAL)
PEOPLE = 20
TEMPLATE = "greeting"

_LEASE = timedelta(minutes=5)
_VERDICTS = (Verdict.SENT, Verdict.SENT, Verdict.SENT, Verdict.DEAD, Verdict.RETRY, Verdict.RELEASE)
_ENDS = {Verdict.SENT: Status.SENT, Verdict.DEAD: Status.DEAD_LETTERED}
_SEALER = AesSealer({1: bytes(32)}, bytes(32))
_CLOCK = SystemClock()

HALVES: dict[str, str] = {
    "a batch whose recipients do not add up": """
        SELECT count(*) FROM batches b WHERE next_recipient <>
            (SELECT count(*) FROM notifications n WHERE n.tenant = b.tenant
                AND n.notification_id BETWEEN b.batch_id AND CAST(substr(b.batch_id, 1, 13) || x'ffffff' AS BLOB))
          + (SELECT count(*) FROM rejections r WHERE r.tenant = b.tenant AND r.batch_id = b.batch_id)""",
    "a batch without a body": "SELECT count(*) FROM batches LEFT JOIN batch_bodies d USING (tenant, batch_id) "
    "WHERE d.data IS NULL",
    "a body without a batch": "SELECT count(*) FROM batch_bodies LEFT JOIN batches b USING (tenant, batch_id) "
    "WHERE b.state IS NULL",
    "an idempotency key without a batch": "SELECT count(*) FROM idempotency_keys LEFT JOIN batches b "
    "USING (tenant, batch_id) WHERE b.state IS NULL",
    "a batch without its idempotency key": "SELECT count(*) FROM batches b WHERE NOT EXISTS "
    "(SELECT 1 FROM idempotency_keys k WHERE k.tenant = b.tenant AND k.batch_id = b.batch_id)",
    "an unfinished notification without a delivery": "SELECT count(*) FROM notifications LEFT JOIN deliveries d "
    "USING (tenant, notification_id) WHERE status < 60 AND d.lane IS NULL",
    "a delivery without an unfinished notification": "SELECT count(*) FROM deliveries LEFT JOIN notifications n "
    "USING (tenant, notification_id) WHERE n.status IS NULL OR n.status >= 60",
    "an end without a record": "SELECT count(*) FROM notifications n WHERE status >= 60 AND NOT EXISTS "
    "(SELECT 1 FROM ledger l WHERE l.tenant = n.tenant AND l.notification_id = n.notification_id)",
    "a dead letter without its notification, or the other way round": "SELECT count(*) FROM notifications n "
    "FULL JOIN dead_letters d USING (tenant, notification_id) WHERE (n.status IS 70) <> (d.code IS NOT NULL)",
    "a sent message without its id": "SELECT count(*) FROM notifications n WHERE status = 60 AND NOT EXISTS "
    "(SELECT 1 FROM message_ids m WHERE m.tenant = n.tenant AND m.notification_id = n.notification_id)",
}
"""What can only be if a commit was kept in part: each asks how many there are."""


class Seen(Struct):
    """What the store last acknowledged of a delivery. `is_doubtful`: something more was asked and never answered."""

    fence: int
    tries: int
    end: Verdict | None = None
    is_doubtful: bool = False


class Witness(Struct):
    """Everything one file has acknowledged, over all its lives."""

    batches: dict[BatchId, int] = field(default_factory=dict)
    deliveries: dict[DeliveryKey, Seen] = field(default_factory=dict)
    calls: int = 0

    def lost(self, connection: apsw.Connection) -> Iterator[str]:
        """Whatever was acknowledged and is not there."""
        kept = {
            BatchId(batch_id): count
            for batch_id, count in connection.execute("SELECT batch_id, next_recipient FROM batches")
        }
        for batch_id, count in self.batches.items():
            if kept.get(batch_id, -1) < count:
                yield f"batch {batch_id.hex()}: {count} recipients were decided, {kept.get(batch_id)} are"
        there = {
            DeliveryKey(*row[:3]): row[3:]
            for row in connection.execute("SELECT tenant, notification_id, endpoint_id, fence, tries FROM deliveries")
        }
        ended = dict(connection.execute("SELECT notification_id, status FROM notifications WHERE status >= 60"))
        for key, seen in self.deliveries.items():
            if wrong := _contradiction(seen, there.get(key), ended.get(key.notification_id)):
                yield f"delivery {key.notification_id.hex()}: {wrong}"


def _contradiction(seen: Seen, row: tuple[int, int] | None, status: int | None) -> str | None:
    if seen.end is not None:
        return None if row is None and status == _ENDS[seen.end] else f"{seen.end.name} was forgotten: {status}"
    if row is not None:
        fence, tries = row
        return None if fence >= seen.fence and tries >= seen.tries else f"{seen} was forgotten: {fence} {tries}"
    return None if seen.is_doubtful and status is not None else "it is gone without an end"


def halves(connection: apsw.Connection) -> list[str]:
    """Every trace of a commit that was kept in part."""
    counts = {name: connection.execute(question).get for name, question in HALVES.items()}
    return [f"{count} x {name}" for name, count in counts.items() if count]


class WitnessedStore:
    """One life of a store, with the writer that a server's own process has (`is_apart`) or that of a library. `run`
    works it until it fails, as an accept stage and a dispatcher would."""

    def __init__(
        self,
        place: Path | KeptStore,
        witness: Witness,
        chance: random.Random,
        *,
        clock: Clock = _CLOCK,
        vfs: str | None = None,
        synchronous: str = "FULL",
        is_apart: bool = True,
    ) -> None:
        self.witness = witness
        self.is_broken = asyncio.Event()
        self._chance = chance
        self._clock = clock
        if isinstance(place, StoreDatabase):
            self.store: Store = PostgresStore(
                place.place, sealer=_SEALER, meter=NullMeter(), crash_points=NoCrashPoints(), clock=clock
            )
        else:
            self.store = open_store(
                place.place if isinstance(place, KeptStore) else str(place),
                sealer=_SEALER,
                clock=clock,
                meter=NullMeter(),
                crash_points=NoCrashPoints(),
                on_broken=self.is_broken.set,
                vfs=vfs,
                synchronous=synchronous,
                is_apart=is_apart,
            )
        self._decide = Addresser(Categories(()), {LANE.channel: LANE.account}, "en").decide

    async def people(self) -> None:
        """Whom to write to, and what."""
        for number in range(PEOPLE):
            await self.store.people.put_user(DEFAULT_TENANT, User(f"user-{number}"))
        await self.store.templates.add(
            DEFAULT_TENANT,
            TEMPLATE,
            channel=LANE.channel,
            locale="en",
            variant="",
            subject=None,
            title=None,
            body="hello {{ number }}",
            metadata={},
            created_by="witness",
        )

    async def run(self, until: "asyncio.Future[object] | None" = None) -> None:
        """Works until the store refuses, or until `until` is done."""
        acts: list[Callable[[], Coroutine[Any, Any, None]]] = [self.accept, self.accept, self.send, self.send]
        await asyncio.gather(*(self._repeat(act, until) for act in acts))

    async def _repeat(
        self, act: Callable[[], Coroutine[Any, Any, None]], until: "asyncio.Future[object] | None"
    ) -> None:
        while until is None or not until.done():
            try:
                await act()
            except (ProblemError, apsw.Error):
                return
            self.witness.calls += 1

    async def rescue(self) -> None:
        """What the sweeper does at a start: every lease of the former life goes back to its lane."""
        page = await self.store.queue.expired(None, 100_000, is_start=True)
        back = [
            Settlement(expired.key, expired.fence, Verdict.RESEND, self._clock.now(), due_at=self._clock.now())
            for _, expired in page
        ]
        if back:
            await self.store.queue.settle(back)
        # Whatever became of these was in order, and nobody can tell any more what it should be now.
        doubtful = [key for key, seen in self.witness.deliveries.items() if seen.is_doubtful]
        for key in doubtful:
            del self.witness.deliveries[key]

    async def accept(self, filler: str = "", recipients: int | None = None) -> None:
        number = self._chance.getrandbits(60)
        batch_id = new_batch_id(self._clock.now() // 1000, number)
        users = self._chance.sample(range(PEOPLE + 1), recipients or self._chance.randint(1, 5))
        turn = await self.store.batches.keep(
            [_batch(self._clock.now(), batch_id, number, users, filler)], 100, self._decide
        )
        self.witness.batches[batch_id] = len(users)
        assert turn.progress[batch_id].undecided == 0

    async def send(self) -> None:
        taken = await self.store.queue.take(LANE, self._chance.randint(1, 8), _LEASE, frozenset())
        settlements: list[Settlement] = []
        for claim in taken.claims:
            self.witness.deliveries[claim.key] = Seen(claim.fence, claim.tries, is_doubtful=True)
            verdict = self._chance.choice(_VERDICTS)
            now = self._clock.now()
            named = f"message-{claim.fence}"
            settlements.append(Settlement(claim.key, claim.fence, verdict, now, now, now, named, "X", "by the dice"))
        if not settlements:
            return
        await self.store.queue.settle(settlements)
        for settlement in settlements:
            self._note(settlement)

    def _note(self, settlement: Settlement) -> None:
        seen = self.witness.deliveries[settlement.key]
        if seen.fence != settlement.fence:  # another has claimed it since
            return
        seen.is_doubtful = False
        seen.tries += settlement.verdict is Verdict.RETRY
        seen.end = settlement.verdict if settlement.verdict in _ENDS else None


def _batch(now: Instant, batch_id: BatchId, number: int, users: list[int], filler: str) -> NewBatch:
    """One of the people is nobody: a recipient can be rejected."""
    head = BatchHead(
        tenant=DEFAULT_TENANT,
        batch_id=batch_id,
        template_id=TEMPLATE,
        channels=(LANE.channel,),
        priority=LANE.priority,
        category="general",
        content_hash=number,
        created_at=now,
        due_at=now,
        expires_at=None,
        digest_key=None,
        created_by="witness",
    )
    return NewBatch(
        head=head,
        user_ids=[f"user-{user}" for user in users],
        repeated=(),
        data=msgspec.json.encode({"number": number, "filler": filler or "x" * (number % 2000)}),
        idempotency_key=f"key-{number}",
        fingerprint=b"print",
    )
