"""What caring for a store relies on: its marks, and the doubts after a restore (W31)."""

from datetime import timedelta

import pytest

from noroshi.domain.deliveries import Verdict
from noroshi.domain.doubts import Doubts, Waiting
from noroshi.domain.marks import Mark, Restored
from noroshi.domain.people import Preferences, QuietHours
from noroshi.domain.records import PauseKind
from noroshi.domain.states import Status
from tests.cast import HANAKO, JIRO, TARO
from tests.conformance.ground import HERE, HOUR, MINUTE, PUSH, Ground, kinds

NOTHING = Waiting(0, 0, 0)


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, JIRO)
    await ground.write("welcome", "email", "push")


async def restored_after(ground: Ground, span: timedelta) -> Restored:
    """A backup is taken now and restored then."""
    taken_at = ground.now
    ground.clock.move(span)
    return Restored(taken_at, ground.now)


async def test_a_store_says_of_itself_what_it_was_told_last(ground: Ground) -> None:
    assert await ground.store.marks.read() == {}
    await ground.store.marks.put(Mark.MOVING, "a")
    await ground.store.marks.put(Mark.MOVING, "b")
    await ground.store.marks.put(Mark.ARRIVED, "c")
    assert await ground.store.marks.read() == {Mark.MOVING: "b", Mark.ARRIVED: "c"}
    await ground.store.marks.remove(Mark.MOVING)
    assert await ground.store.marks.read() == {Mark.ARRIVED: "c"}


async def unfinished_of_every_kind(ground: Ground) -> Restored:
    """Hanako's push is being sent, Taro's mail is due, Jiro sleeps, and a schedule comes in five hours."""
    await ground.wish(JIRO, Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00")))
    await ground.accept(HANAKO, channels=["push"])
    await ground.take(PUSH)
    await ground.accept(JIRO, channels=["push"])
    await ground.accept(TARO)
    await ground.keep(ground.batch("taro", after=5 * HOUR))
    return await restored_after(ground, 2 * HOUR)


async def test_doubts_are_told_by_when_things_were_due(ground: Ground) -> None:
    restored = await unfinished_of_every_kind(ground)
    assert await ground.store.doubts.review(restored) == Doubts(
        claimed=1, due_by_backup=Waiting(1, 0, 0), due_by_restore=Waiting(0, 1, 0), due_later=Waiting(0, 0, 1)
    )


async def test_what_was_accepted_since_the_restore_is_in_no_doubt(ground: Ground) -> None:
    restored = await restored_after(ground, MINUTE)
    batch_id = await ground.accept(TARO)
    assert await ground.store.doubts.review(restored) == Doubts(0, NOTHING, NOTHING, NOTHING)
    ground.clock.move(HOUR)
    assert await ground.store.doubts.discard_due(restored, ground.now, 100) == 0
    assert (await ground.view(batch_id)).status is Status.QUEUED


async def test_withdrawing_takes_what_was_being_sent_or_due_and_leaves_the_rest(ground: Ground) -> None:
    restored = await unfinished_of_every_kind(ground)
    while await ground.store.doubts.discard_due(restored, restored.taken_at, 1):
        pass
    assert await ground.store.doubts.review(restored) == Doubts(0, NOTHING, Waiting(0, 1, 0), Waiting(0, 0, 1))
    (view,) = await ground.store.history.of_user(HERE, "hanako", None, 10)
    assert (view.status, kinds(view)) == (Status.CANCELLED, ["queued", "cancelled"])
    assert view.trail[-1].detail == {"code": "restored"}
    while await ground.store.doubts.discard_due(restored, restored.restored_at, 1):
        pass
    assert await ground.store.doubts.review(restored) == Doubts(0, NOTHING, NOTHING, Waiting(0, 0, 1))
    (view,) = await ground.store.history.of_user(HERE, "jiro", None, 10)
    assert view.status is Status.CANCELLED


async def test_a_claim_judged_after_the_restore_is_still_in_doubt(ground: Ground) -> None:
    await ground.accept(HANAKO)
    claim = await ground.claim()
    restored = await restored_after(ground, HOUR)
    await ground.settle(claim, Verdict.RESEND)
    assert (await ground.store.doubts.review(restored)).claimed == 1
    assert await ground.store.doubts.discard_due(restored, restored.taken_at, 100) == 1


async def test_an_undecided_batch_that_was_due_is_withdrawn_whole(ground: Ground) -> None:
    scheduled = ground.batch("taro", after=MINUTE)
    await ground.keep(scheduled)
    restored = await restored_after(ground, HOUR)
    assert await ground.store.doubts.discard_due(restored, restored.restored_at, 100) == 1
    while await ground.store.batches.cancel_page(100):
        pass
    await ground.keep()
    assert (await ground.take()).claims == []
    counts = await ground.store.batches.counts(HERE, scheduled.head.batch_id)
    assert counts is not None and counts.is_cancelled


async def test_resuming_ends_the_pause_of_the_restore_and_no_other(ground: Ground) -> None:
    await ground.store.pauses.add(HERE, PauseKind.CHANNEL, "email", "operator")
    await ground.store.pauses.add(HERE, PauseKind.EVERYTHING, None, "restore")
    await ground.store.marks.put(Mark.RESTORED, "{}")
    await ground.store.doubts.resume("restore", with_requests=True)
    assert [pause.created_by for pause in await ground.store.pauses.in_force()] == ["operator"]
    assert await ground.store.marks.read() == {}
