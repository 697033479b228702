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
async def at_work(batches: Any, clock: HandClock, meter: CountingMeter) -> AsyncIterator[Intake]:
    def nothing(*_: Any) -> None: ...

    intake = Intake(
        batches, nothing, nothing, nothing, nothing, nothing, clock, meter, max_waiting=10, max_unfinished=10
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
