"""Errors of our own while batches are taken in: counted by stage, and gone over (N16.1)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dispatch_cast import CountingMeter, HandClock, seconds

from noroshi.domain.batches import NewBatch
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
