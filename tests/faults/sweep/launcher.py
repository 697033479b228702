"""`noroshi` with something planted in it: for controls, which must be found out, and for spans too long for a test.

SWEEP_PLANTS names the plants, separated by commas; the command line is the product's own.
"""

import asyncio
import inspect
import math
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partialmethod
from typing import Any, cast
from unittest.mock import patch
from uuid import UUID, uuid4

from noroshi.domain.batches import Earlier, NewBatch, Progress
from noroshi.domain.deliveries import Attempt, Claim, DeliveryKey, Settled, Settlement, Verdict
from noroshi.domain.inbox import Owner
from noroshi.domain.instants import Instant, plus
from noroshi.domain.outcomes import Sent
from noroshi.domain.records import Alert
from noroshi.entrypoints.cli.main import app
from noroshi.flow import way
from noroshi.flow.accept.intake import Intake
from noroshi.flow.dispatch import breaker, gates
from noroshi.flow.dispatch.alarms import Judged
from noroshi.flow.dispatch.flights import Flight
from noroshi.flow.dispatch.judge import judge
from noroshi.flow.dispatch.sending import Sending
from noroshi.flow.dispatch.settling import Settler
from noroshi.flow.send.in_app.inbox.live import Follower, LiveStreams
from noroshi.flow.send.line.messaging import payload
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import EnvCrashPoints
from noroshi.reservations import claims, sender
from noroshi.storage import accounts, queue
from noroshi.storage.accounts import Grant, StoredAccounts
from noroshi.storage.inbox import fill_inboxes, lock_people
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.queue import StoredQueue
from noroshi.storage.settling import settle
from noroshi.storage.turns import Row, Turn

VARIABLE = "SWEEP_PLANTS"

_LATE = timedelta(seconds=0.5)
_MUCH_LATER = timedelta(seconds=2)
_LONG_AGO = timedelta(days=91)
_A_WHILE = 0.03
_SOON_ON_TRIAL = timedelta(seconds=2)

_late_work: set[asyncio.Task[Any]] = set()


def _later(clock: Any, span: timedelta, work: Any) -> None:
    async def wait_and_work() -> None:
        await clock.sleep(span)
        await work

    task = asyncio.get_running_loop().create_task(wait_and_work())
    _late_work.add(task)
    task.add_done_callback(_late_work.discard)


def answers_first() -> None:
    """A bug: the caller hears 202 half a second before anything is kept (W3)."""
    keep = Intake.keep

    async def promise(self: Intake, batch: NewBatch) -> tuple[Earlier | None, Progress]:
        _later(self._clock, _LATE, keep(self, batch))
        return None, Progress(len(batch.user_ids), accepted=len(batch.user_ids))

    Intake.keep = promise  # type: ignore[method-assign]


def settles_first() -> None:
    """A bug: SENT is committed before the message is sent (healthchecks' and Uptimer's order)."""
    send = Sending._send

    async def mark_and_send(
        self: Sending, flight: Flight, attempts: list[Attempt], claims: list[Claim], judged: Any, alerts: Any
    ) -> None:
        now, categories = self._kit.clock.now(), self._kit.categories
        await self._kit.queue.settle([judge(claim, Sent("marked"), now, 0.0, categories, now) for claim in claims])
        await send(self, flight, attempts, claims, judged, alerts)

    Sending._send = mark_and_send  # type: ignore[method-assign]


def settles_late() -> None:
    """A bug: outcomes are kept in memory for two seconds before they are committed."""
    settle = Settler.settle_surely

    async def postpone(self: Settler, judged: Sequence[Judged], alerts: Sequence[Alert] = ()) -> None:
        _later(self._clock, _MUCH_LATER, settle(self, judged, alerts))

    Settler.settle_surely = postpone  # type: ignore[method-assign]


def forgets_rests() -> None:
    """A bug: that an account must be left alone is known to this process only (F13)."""

    async def remember_only(self: StoredAccounts, account: str, until: Instant, why: str) -> None:
        """The caller remembers."""

    StoredAccounts.block = remember_only  # type: ignore[method-assign]


def lives_long_ago() -> None:
    """No bug: whatever this life does is older than history is kept."""
    now = SystemClock.now

    def then(self: SystemClock) -> Instant:
        return plus(now(self), -_LONG_AGO)

    SystemClock.now = then  # type: ignore[method-assign]
    in_that_time = partialmethod(PostgresStore.__init__, clock=SystemClock())
    PostgresStore.__init__ = in_that_time  # type: ignore[method-assign, assignment]


def thinks_it_is_alone() -> None:
    """A bug: whoever starts takes every lease for that of a dead process (W9)."""
    begin = StoredQueue.__init__

    def begin_alone(self: StoredQueue, *parts: Any, is_alone: bool) -> None:
        begin(self, *parts, is_alone=True)

    StoredQueue.__init__ = begin_alone  # type: ignore[method-assign, assignment]


def ignores_leases() -> None:
    """A bug: what was claimed is sent, however long ago that was (F10)."""
    begin = Flight.count_from

    def begin_for_ever(self: Flight, asked_at: float) -> None:
        begin(self, asked_at)
        self.deadline = math.inf

    Flight.count_from = begin_for_ever  # type: ignore[method-assign]


def freezes_at_crash_points() -> None:
    """No bug: where it would die (NOROSHI_CRASH_AT) it is frozen, amid whatever it does (F10)."""
    reach = EnvCrashPoints.reach

    def freeze(_code: int) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def reach_and_freeze(self: EnvCrashPoints, name: str) -> None:
        with patch.object(os, "_exit", freeze):
            reach(self, name)

    EnvCrashPoints.reach = reach_and_freeze  # type: ignore[method-assign]


class _Numbered:
    """A turn whose numbers of inboxes were taken before it began."""

    def __init__(self, turn: Turn, heads: list[Row]) -> None:
        self._turn = turn
        self._heads = heads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turn, name)

    async def run_many(self, name: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        return self._heads if name == "fill_inbox" else await self._turn.run_many(name, rows)


def numbers_entries_first() -> None:
    """A bug: the numbers of entries are taken in a commit of their own, as a sequence would give them (W6)."""

    async def settle_in_two(
        self: StoredQueue, settlements: Sequence[Settlement], alerts: Sequence[Alert] = ()
    ) -> Settled:
        drafts = Counter((s.key.tenant, s.draft.user_id) for s in settlements if s.draft is not None)
        rows = [(*owner, drafts[owner]) for owner in sorted(drafts)]
        heads = await self._turns.turn("settle", lambda turn: turn.run_many("fill_inbox", rows))
        await asyncio.sleep(random.random() * _A_WHILE)
        return await self._turns.turn(
            "settle", lambda turn: settle(cast(Turn, _Numbered(turn, heads)), self._sealer, settlements, alerts)
        )

    StoredQueue.settle = settle_in_two  # type: ignore[method-assign]


def keeps_entries_first() -> None:
    """A bug: entries are kept in a commit of their own, and only then is their delivery over (W11). Nothing in the
    tables stands in its way."""

    async def settle_in_two(
        self: StoredQueue, settlements: Sequence[Settlement], alerts: Sequence[Alert] = ()
    ) -> Settled:
        async def keep(turn: Any) -> None:
            dropped = turn.connection.execute("DROP INDEX IF EXISTS inbox_by_notification")
            if inspect.isawaitable(dropped):
                await dropped
            drafts = [(Owner(s.key.tenant, s.draft.user_id), s) for s in settlements if s.draft is not None]
            await fill_inboxes(turn, self._sealer, await lock_people(turn, (owner for owner, _ in drafts)), drafts)

        await self._turns.turn("settle", keep)
        kept = [s._replace(verdict=Verdict.SENT) if s.draft is not None else s for s in settlements]
        return await self._turns.turn("settle", lambda turn: settle(turn, self._sealer, kept, alerts))

    StoredQueue.settle = settle_in_two  # type: ignore[method-assign]


def forgets_who_comes_again() -> None:
    """A bug: whoever comes again to an inbox is told only what is new (W23)."""
    follow = LiveStreams.follow

    async def follow_from_now_on(self: LiveStreams, owner: Owner, after: int | None, *more: Any) -> Follower | None:
        return await follow(self, owner, after if after == 0 else None, *more)

    LiveStreams.follow = follow_from_now_on  # type: ignore[method-assign]


def has_a_short_breaker() -> None:
    """No bug: an open breaker is on trial after two seconds instead of sixty."""
    for module in (breaker, gates, accounts):
        patch.object(module, "OPEN_FOR", _SOON_ON_TRIAL).start()


def has_a_short_sender() -> None:
    """No bug: what a dead sender of reservations had is free after two seconds instead of thirty."""
    for module in (claims, sender):
        patch.object(module, "LEASE", _SOON_ON_TRIAL).start()
    patch.object(sender, "ANSWERS_WITHIN", timedelta(seconds=1)).start()


def tidies_often() -> None:
    """No bug: what is old is looked for every second, and a dead process's duty to do so is free after two."""
    patch.object(way, "_TIDY_EVERY", timedelta(seconds=1)).start()
    patch.object(way, "_TIDYING_LASTS", timedelta(seconds=2)).start()


def paces_alone() -> None:
    """A bug: every process keeps an account's pace for itself, and all together exceed it (I9)."""

    async def grant(_turn: Turn, _account: str, _terms: Any, wanted: int, _lease: timedelta) -> Grant:
        return Grant(wanted)

    patch.object(queue, "ask_account", grant).start()


def lists_with_the_writers_connections() -> None:
    """A bug: what people look through is read on the connections by which calls are accepted."""
    begin = PostgresStore.__init__

    def begin_sharing(self: PostgresStore, *parts: Any, **more: Any) -> None:
        begin(self, *parts, **more)
        self._showing.borrow = self._writing.borrow  # type: ignore[method-assign]

    PostgresStore.__init__ = begin_sharing  # type: ignore[method-assign]


def draws_fresh_keys() -> None:
    """A bug: every push to LINE has a retry key of its own, so that LINE cannot know it again (W11)."""

    def draw(_key: DeliveryKey) -> UUID:
        return uuid4()

    patch.object(payload, "retry_key", draw).start()


PLANTS = {
    plant.__name__: plant
    for plant in (
        answers_first,
        settles_first,
        settles_late,
        forgets_rests,
        lives_long_ago,
        thinks_it_is_alone,
        ignores_leases,
        freezes_at_crash_points,
        numbers_entries_first,
        keeps_entries_first,
        forgets_who_comes_again,
        has_a_short_breaker,
        has_a_short_sender,
        tidies_often,
        draws_fresh_keys,
        paces_alone,
        lists_with_the_writers_connections,
    )
}


def main() -> None:
    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        PLANTS[name]()
    app(prog_name="noroshi")


if __name__ == "__main__":
    main()
