"""Batches: withdrawn in pages, what is being sent left alone until it would be tried again (N4.3)."""

from datetime import timedelta

import pytest

from noroshi.domain.deliveries import Verdict
from noroshi.domain.ids import BatchId, new_batch_id
from noroshi.domain.people import Preferences, QuietHours
from noroshi.domain.states import Status
from tests.cast import ALICE, HANAKO, JIRO, SAKURA, TARO
from tests.conformance.ground import (
    ELSEWHERE,
    HERE,
    HOUR,
    MINUTE,
    PUSH,
    Ground,
    kinds,
)

DAY = timedelta(days=1)
ASLEEP = Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00"))
"""Left alone from 17:00 to 19:00 Tokyo time: the tests begin at 18:00."""


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, ALICE, JIRO, SAKURA)
    await ground.write("welcome", "email", "push")


async def cancel(ground: Ground, batch_id: BatchId, page: int = 10) -> list[int]:
    assert await ground.store.batches.begin_cancel(HERE, batch_id)
    pages: list[int] = []
    while count := await ground.store.batches.cancel_page(page):
        pages.append(count)
    return pages


async def test_cancelling_withdraws_what_waits_in_pages(ground: Ground) -> None:  # N4.3
    people = await ground.crowd(25)
    batch_id = await ground.accept(*people)
    pages = await cancel(ground, batch_id)
    assert pages[:3] == [10, 10, 5]
    assert await ground.store.queue.unfinished() == 0
    views = await ground.views(batch_id)
    assert {view.status for view in views} == {Status.CANCELLED}
    assert {view.trail[-1].kind for view in views} == {"cancelled"}
    found = await ground.store.batches.find(HERE, batch_id)
    assert found is not None
    assert found.cancelled_at == ground.now


async def test_nothing_undecided_of_a_withdrawn_batch_is_ever_decided(ground: Ground) -> None:  # N4.3
    people = await ground.crowd(20)
    new = ground.batch(*(p.user_id for p in people))
    await ground.keep(new, room=5)
    await cancel(ground, new.head.batch_id)
    turn = await ground.keep(room=50)
    assert (turn.decided, turn.has_more) == (0, False)
    counts = await ground.store.batches.counts(HERE, new.head.batch_id)
    assert counts is not None
    assert (counts.undecided_recipients, counts.is_cancelled) == (15, True)
    assert counts.by_channel == {("email", Status.CANCELLED): 5}


async def test_cancelling_ends_holds_and_scheduled_batches(ground: Ground) -> None:  # N4.3
    await ground.wish(HANAKO, ASLEEP)
    held = await ground.accept(HANAKO)
    scheduled = ground.batch("taro", after=HOUR)
    await ground.keep(scheduled)
    await cancel(ground, held)
    await cancel(ground, scheduled.head.batch_id)
    assert (await ground.view(held)).status is Status.CANCELLED
    ground.clock.move(2 * HOUR)
    turn = await ground.keep()
    assert (turn.decided, turn.next_due_at, turn.has_more) == (0, None, False)


async def test_cancelling_leaves_what_is_being_sent_and_what_was_sent(ground: Ground) -> None:  # N4.3
    batch_id = await ground.accept(HANAKO, TARO, ALICE)
    sent, leased = (await ground.take(limit=2)).claims
    await ground.settle(sent, Verdict.SENT)
    await cancel(ground, batch_id)
    statuses = {view.user_id: view.status for view in await ground.views(batch_id)}
    assert statuses == {"hanako": Status.SENT, "taro": Status.SENDING, "alice": Status.CANCELLED}
    await ground.settle(leased, Verdict.RETRY, after=MINUTE, code="BUSY")
    statuses = {view.user_id: view.status for view in await ground.views(batch_id)}
    assert statuses["taro"] is Status.CANCELLED


async def test_of_a_push_to_many_devices_the_unsent_ones_are_withdrawn(ground: Ground) -> None:  # N1.10, N4.3
    batch_id = await ground.accept(JIRO, channels=["push"])
    (first,) = (await ground.take(PUSH, limit=1)).claims
    await cancel(ground, batch_id)
    assert (await ground.view(batch_id)).status is Status.SENDING
    await ground.settle(first, Verdict.SENT)
    assert (await ground.view(batch_id)).status is Status.SENT
    assert await ground.store.queue.unfinished() == 0


async def test_what_is_withdrawn_gives_its_quota_back(ground: Ground) -> None:  # N5.1
    batch_id = await ground.accept(HANAKO)
    await cancel(ground, batch_id)
    assert await ground.store.people.usage(HERE, "hanako") == {}


async def test_cancelling_twice_changes_nothing_more(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO)
    await cancel(ground, batch_id)
    ground.clock.move(MINUTE)
    assert await cancel(ground, batch_id) == []
    assert kinds(await ground.view(batch_id)).count("cancelled") == 1


async def test_only_ones_own_batch_can_be_withdrawn(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO)
    assert not await ground.store.batches.begin_cancel(ELSEWHERE, batch_id)
    assert not await ground.store.batches.begin_cancel(HERE, new_batch_id(1, 1))
    assert await ground.store.batches.cancel_page(10) == 0
    assert (await ground.view(batch_id)).status is Status.QUEUED
