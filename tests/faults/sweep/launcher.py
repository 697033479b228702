"""`noroshi` with something planted in it: for controls, which must be found out, and for spans too long for a test.

SWEEP_PLANTS names the plants, separated by commas; the command line is the product's own.
"""

import asyncio
import math
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from functools import partialmethod
from typing import Any
from unittest.mock import patch

from noroshi.domain.batches import Earlier, NewBatch, Progress
from noroshi.domain.deliveries import Attempt, Claim
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
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import EnvCrashPoints
from noroshi.storage import accounts
from noroshi.storage.accounts import StoredAccounts
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.queue import StoredQueue

VARIABLE = "SWEEP_PLANTS"

_LATE = timedelta(seconds=0.5)
_MUCH_LATER = timedelta(seconds=2)
_LONG_AGO = timedelta(days=91)
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


def has_a_short_breaker() -> None:
    """No bug: an open breaker is on trial after two seconds instead of sixty."""
    for module in (breaker, gates, accounts):
        patch.object(module, "OPEN_FOR", _SOON_ON_TRIAL).start()


def tidies_often() -> None:
    """No bug: what is old is looked for every second, and a dead process's duty to do so is free after two."""
    patch.object(way, "_TIDY_EVERY", timedelta(seconds=1)).start()
    patch.object(way, "_TIDYING_LASTS", timedelta(seconds=2)).start()


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
        has_a_short_breaker,
        tidies_often,
    )
}


def main() -> None:
    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        PLANTS[name]()
    app(prog_name="noroshi")


if __name__ == "__main__":
    main()
