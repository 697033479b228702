"""The sweeper: what a crash left behind is found, judged and settled."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import pytest
from dispatch_cast import NOW, PUSH, CountingMeter, HandClock, LeastQueue, a_claim, a_key, an_expired, seconds

from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import DeliveryKey, Expired, Verdict
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.flow.dispatch.settling import Settler
from noroshi.flow.dispatch.sweeper import PAGE, Sweeper
from noroshi.ports.duties import Duties
from noroshi.storage.duties import SoleDuties

pytestmark = pytest.mark.asyncio

STRANGE = Lane("push", "retired", Priority.NORMAL)


class ExpiringQueue(LeastQueue):
    """A queue whose leases have run out."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self.run_out: list[tuple[Instant, Expired]] = []
        self.starts: list[bool] = []
        self.set_aside = 0
        self.expired_failures: list[Exception] = []

    async def expired(
        self, after: tuple[Instant, DeliveryKey] | None, limit: int, *, is_start: bool
    ) -> list[tuple[Instant, Expired]]:
        if self.expired_failures:
            raise self.expired_failures.pop()
        self.starts.append(is_start)
        settled = {s.key for s in self.settlements}
        rows = sorted(((at, e) for at, e in self.run_out if e.key not in settled), key=lambda row: (row[0], row[1].key))
        return [row for row in rows if after is None or (row[0], row[1].key) > after][:limit]

    async def resume(self, paused_categories: frozenset[str], limit: int) -> int:
        resumed = min(self.set_aside, limit)
        self.set_aside -= resumed
        return resumed

    async def unfinished(self) -> int:
        return 42


class OthersDuties:
    """Every duty is another process's."""

    async def take(self, duty: str, span: timedelta) -> bool:
        return False


class Room:
    def __init__(self, duties: Duties | None = None) -> None:
        self.clock = HandClock()
        self.meter = CountingMeter()
        self.queue = ExpiringQueue(self.clock)
        self.announced: list[Lane] = []
        self.sweeper = Sweeper(
            clock=self.clock,
            meter=self.meter,
            queue=self.queue,
            settler=Settler(self.clock, self.meter, self.queue, asyncio.Event()),
            categories=Categories(),
            served=frozenset({("push", "apns")}),
            announce=self._announce,
            paused_categories=frozenset,
            duties=duties or SoleDuties(),
        )

    def _announce(self, lanes: Iterable[Lane]) -> None:
        self.announced.extend(lanes)

    def leave(self, *expired: Expired) -> None:
        self.queue.run_out.extend((NOW, e) for e in expired)


async def test_rows_it_may_not_touch_do_not_hide_the_rows_behind_them() -> None:  # F26
    room = Room()
    room.leave(*(an_expired(n, lane=STRANGE) for n in range(1, 10_001)), an_expired(10_001))
    await room.sweeper.sweep()
    assert [(s.key, s.verdict) for s in room.queue.settlements] == [(a_key(10_001), Verdict.RESEND)]
    assert len(room.queue.starts) == 10_001 // PAGE + 2


async def test_while_another_process_has_the_duty_nothing_is_swept_and_everything_measured() -> None:
    room = Room(OthersDuties())
    room.leave(an_expired(1))
    room.queue.set_aside = 1
    await room.sweeper.sweep()
    assert room.queue.settlements == [] and room.queue.set_aside == 1
    assert room.meter.gauges["notification_queue_depth", ()] == 42


async def test_every_page_is_settled_in_a_commit_of_its_own() -> None:
    room = Room()
    room.leave(*(an_expired(n) for n in range(1, 2 * PAGE + 2)))
    assert await room.sweeper.rescue_all() == 2 * PAGE + 1
    assert len({s.key for s in room.queue.settlements}) == 2 * PAGE + 1
    assert set(room.announced) == {PUSH}


async def test_at_the_start_every_lease_of_a_former_process_counts_as_run_out() -> None:
    room = Room()
    await room.sweeper.rescue_all()
    await room.sweeper.sweep()
    assert room.queue.starts == [True, False]


async def test_poison_and_given_up_deliveries_are_dead_letters_and_urgent_ones_alert() -> None:  # W27, N6.3
    room = Room()
    critical = PUSH._replace(priority=Priority.CRITICAL)
    room.leave(an_expired(1, claims=7), an_expired(2, lane=critical, category="one_time_code"))
    await room.sweeper.sweep()
    assert {s.key: s.code for s in room.queue.settlements} == {a_key(1): "poison", a_key(2): "outcome_unknown"}
    assert [(a.kind, a.subject) for a in room.queue.alerts] == [("dead_letter_urgent", "push:outcome_unknown")]
    assert room.announced == []


async def test_what_was_set_aside_is_put_back_to_the_last_row() -> None:  # N4.7
    room = Room()
    room.queue.set_aside = 1_700
    await room.sweeper.sweep()
    assert room.queue.set_aside == 0


async def test_it_measures_how_long_each_lane_has_waited() -> None:
    room = Room()
    room.queue.put(a_claim())
    await room.clock.advance(seconds(30))
    await room.sweeper.sweep()
    lane = (("lane", PUSH.name),)
    assert room.meter.gauges["notification_oldest_unfinished_seconds", lane] == 30
    assert room.meter.gauges["notification_queue_depth", ()] == 42
    assert room.meter.gauges["sweeper_last_run_timestamp", ()] == room.clock.now() / 1_000_000
    await room.queue.take(PUSH, 1, seconds(40), frozenset())
    await room.clock.advance(seconds(5))
    await room.sweeper.sweep()
    assert room.meter.gauges["notification_oldest_unfinished_seconds", lane] == 35  # claimed, and not yet settled
    room.queue.leased.clear()
    await room.sweeper.sweep()
    assert room.meter.gauges["notification_oldest_unfinished_seconds", lane] == 0


async def test_it_sweeps_every_second_and_survives_a_failing_store() -> None:
    room = Room()
    room.leave(an_expired())
    room.queue.expired_failures = [OSError("disk full")] * 2
    await room.sweeper.start()
    await room.clock.advance(seconds(3.5))
    assert room.queue.verdicts() == [Verdict.RESEND]
    assert room.meter.counts["sweeper_errors_total"] == 2
    stopping = asyncio.create_task(room.sweeper.stop())
    await room.clock.settle()
    assert stopping.done()
