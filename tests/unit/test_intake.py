"""Batches taken in: errors of our own are counted by stage and gone over (N16.1), and no turn grows too large."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dispatch_cast import NOW, CountingMeter, HandClock, seconds

from noroshi.domain.batches import BatchHead, NewBatch, Progress
from noroshi.domain.ids import DEFAULT_TENANT, new_batch_id
from noroshi.domain.priorities import Priority
from noroshi.flow.accept.intake import Intake
from noroshi.ports.batches import Turn

pytestmark = pytest.mark.asyncio

ERRORS = "notification_processing_errors_total"


class FailingBatches:
    """Fails so often at addressing, and at taking in what was enqueued."""

    def __init__(self, *, addressing: int = 0, taking: int = 0) -> None:
        self.failures = {"address": addressing, "accept": taking}
        self.done: list[str] = []

    async def keep(self, new: Sequence[NewBatch], *_: Any, prepare: Any = None, **_more: Any) -> Turn:
        stage = "address" if prepare is None else "accept"
        if self.failures[stage]:
            self.failures[stage] -= 1
            raise OSError("the disk is away")
        self.done.append(stage)
        return Turn(earlier=[None for _ in new])


@asynccontextmanager
async def at_work(
    batches: Any, clock: HandClock, meter: CountingMeter, *, side_by_side: bool = False
) -> AsyncIterator[Intake]:
    def nothing(*_: Any) -> None: ...

    intake = Intake(
        *(batches, nothing, nothing, nothing, nothing, nothing, clock, meter),
        max_waiting=10,
        max_unfinished=10,
        side_by_side=side_by_side,
    )
    await intake.start()
    yield intake
    stopping = asyncio.create_task(intake.stop())
    await clock.advance(seconds(2))
    await stopping


async def test_a_turn_of_addressing_that_fails_is_counted_and_taken_again() -> None:
    clock, meter, batches = HandClock(), CountingMeter(), FailingBatches(addressing=2)
    async with at_work(batches, clock, meter) as intake:
        intake.wake()
        await clock.advance(seconds(5))
    assert meter.labelled[ERRORS, (("stage", "address"),)] == 2
    assert "address" in batches.done


async def test_enqueued_requests_that_cannot_be_taken_in_are_counted_and_taken_later() -> None:
    clock, meter, batches = HandClock(), CountingMeter(), FailingBatches(taking=1)
    async with at_work(batches, clock, meter) as intake:
        await clock.advance(seconds(2))
        assert "accept" not in batches.done
        intake.take_enqueued()
        await clock.advance(seconds(2))
    assert meter.labelled[ERRORS, (("stage", "accept"),)] == 1
    assert batches.done.count("accept") == 1


class CountingBatches:
    """Keeps everything, and notes how many batches each turn had."""

    def __init__(self) -> None:
        self.turns: list[int] = []

    async def keep(self, new: Sequence[NewBatch], *_: Any, **_more: Any) -> Turn:
        if new:
            self.turns.append(len(new))
        return Turn(
            earlier=[None for _ in new], progress={batch.head.batch_id: Progress(1, accepted=1) for batch in new}
        )


def a_batch(number: int, attached: int) -> NewBatch:
    ids = new_batch_id(number, 1)
    head = BatchHead(DEFAULT_TENANT, ids, "t", ("email",), Priority.NORMAL, "c", 1, NOW, NOW, None, None, "k")
    return NewBatch(head, ["hanako"], (), b"{}", contents=[bytes(attached)] if attached else ())


@pytest.mark.parametrize(("attached", "most"), [(0, 6), (100, 6), (1_500_000, 2), (5_000_000, 1)])
async def test_batches_with_much_attached_share_no_turn(attached: int, most: int) -> None:  # N1.4
    clock, batches = HandClock(), CountingBatches()
    async with at_work(batches, clock, CountingMeter()) as intake:
        await asyncio.gather(*(intake.keep(a_batch(number, attached)) for number in range(6)))
    assert (sum(batches.turns), max(batches.turns)) == (6, most)


class UndecidedBatches(CountingBatches):
    """There is always more to decide, and a turn for that takes its time; notes how much each may decide."""

    def __init__(self, clock: HandClock, takes: float) -> None:
        super().__init__()
        self.rooms: list[int] = []
        self.under_way = 0
        self.most_under_way = 0
        self._clock = clock
        self._takes = takes

    async def keep(self, new: Sequence[NewBatch], room: int, *_: Any, **more: Any) -> Turn:  # type: ignore[override]
        if new or more.get("prepare"):
            return await super().keep(new)
        self.rooms.append(room)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self._clock.sleep(seconds(self._takes))
        self.under_way -= 1
        return Turn(earlier=[], decided=room, has_more=True, next_due_at=NOW)


async def test_where_turns_run_side_by_side_two_are_at_what_is_undecided_and_no_call_waits_for_them() -> None:
    clock = HandClock()
    batches = UndecidedBatches(clock, 0.1)
    async with at_work(batches, clock, CountingMeter(), side_by_side=True) as intake:
        intake.wake()
        await clock.advance(seconds(1.55))
        assert batches.most_under_way == batches.under_way == 2
        kept = asyncio.create_task(intake.keep(a_batch(1, 0)))
        await clock.settle()
        assert kept.done() and batches.turns == [1]


@pytest.mark.parametrize(("side_by_side", "takes", "sizes"), [(False, 0.1, (250, 50)), (True, 1.0, (500, 250))])
async def test_a_slice_shrinks_while_turns_take_long(
    *, side_by_side: bool, takes: float, sizes: tuple[int, int]
) -> None:
    clock = HandClock()
    batches = UndecidedBatches(clock, takes)
    async with at_work(batches, clock, CountingMeter(), side_by_side=side_by_side) as intake:
        intake.wake()
        await clock.advance(seconds(5))
    assert (batches.rooms[0], batches.rooms[-1]) == sizes
