"""Batches: kept with their keys in one commit, and decided slice by slice."""

from collections import Counter
from datetime import timedelta
from functools import partial

import pytest

from noroshi.domain.addressing import SliceChanges, SliceFacts
from noroshi.domain.batches import Earlier, Progress, Rejection
from noroshi.domain.ids import new_batch_id
from noroshi.domain.instants import plus
from noroshi.domain.people import Preferences, QuietHours
from noroshi.domain.states import Status
from tests.cast import ALICE, HANAKO, JIRO, MALLORY, SAKURA, STRANGER, TARO
from tests.conformance.ground import (
    ELSEWHERE,
    EMAIL,
    HERE,
    HOUR,
    PUSH,
    SECOND,
    Ground,
    decide,
    kinds,
)

DAY = timedelta(days=1)
ASLEEP = Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00"))
"""Left alone from 17:00 to 19:00 Tokyo time: the tests begin at 18:00."""


def fail(_facts: SliceFacts) -> SliceChanges:
    raise LookupError("told to")


def answer(words: str, so_far: Progress) -> bytes:
    return f"{words} {so_far.undecided}".encode()


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, ALICE, JIRO, SAKURA)
    await ground.write("welcome", "email", "push")


# keeping


async def test_a_kept_batch_is_found_as_it_was_asked_for(ground: Ground) -> None:
    new = ground.batch("hanako", STRANGER, channels=["email", "push"], category="social", expires_after=HOUR)
    await ground.keep(new)
    view = await ground.store.batches.find(HERE, new.head.batch_id)
    assert view is not None
    assert view.head == new.head
    assert view.data == {"number": 1}
    assert (view.cancelled_at, view.answer) == (None, None)
    progress = view.progress
    assert (progress.total, progress.accepted, progress.rejected, progress.undecided) == (2, 1, 1, 0)
    assert progress.reasons == {"unknown_user": 1}


async def test_what_is_decided_is_told_with_the_turn_and_its_lanes(ground: Ground) -> None:
    new = ground.batch("hanako", "taro", STRANGER, channels=["email", "push"])
    turn = await ground.keep(new)
    progress = turn.progress[new.head.batch_id]
    assert (turn.earlier, turn.decided, turn.deliveries) == ([None], 3, 3)
    assert turn.lanes == {EMAIL, PUSH}
    assert (turn.has_more, turn.next_due_at) == (False, None)
    assert progress.rejections == [Rejection(STRANGER, "unknown_user")]


async def test_a_batch_nobody_kept_is_not_found(ground: Ground) -> None:
    nobody = new_batch_id(ground.now // 1000, 99)
    assert await ground.store.batches.find(HERE, nobody) is None
    assert await ground.store.batches.counts(HERE, nobody) is None
    assert await ground.store.batches.rejections(HERE, nobody, -1, 10) == []


async def test_people_named_again_are_rejected_as_repeated(ground: Ground) -> None:  # N4.1
    new = ground.batch("hanako", "taro", repeated=["hanako", "hanako"])
    turn = await ground.keep(new)
    progress = turn.progress[new.head.batch_id]
    assert (progress.total, progress.accepted, progress.rejected) == (4, 2, 2)
    assert progress.reasons == {"repeated": 2}
    rejections = await ground.store.batches.rejections(HERE, new.head.batch_id, -1, 10)
    assert [rejection for _, rejection in rejections] == [Rejection("hanako", "repeated")] * 2


async def test_a_decision_that_fails_keeps_nothing_and_leaves_the_key_free(ground: Ground) -> None:  # N4.2, W13
    lost = ground.batch("hanako", key="order-1")
    with pytest.raises(LookupError, match="told to"):
        await ground.store.batches.keep([lost], 500, fail)
    assert await ground.store.batches.find(HERE, lost.head.batch_id) is None
    assert (await ground.keep(ground.batch("hanako", key="order-1"))).earlier == [None]


async def test_the_first_answer_is_remembered_while_something_is_undecided(ground: Ground) -> None:  # N4.2
    batches = ground.store.batches
    new = ground.batch("stranger-1", "stranger-2")
    await ground.keep(new, room=1)
    batch_id = new.head.batch_id
    first = await batches.remember_answer(HERE, batch_id, partial(answer, "first"))
    assert first == b"first 1"
    await ground.keep()
    assert await batches.remember_answer(HERE, batch_id, partial(answer, "second")) == first
    view = await batches.find(HERE, batch_id)
    assert view is not None
    assert view.answer == first


async def test_rejections_come_in_pages(ground: Ground) -> None:  # N4.1
    strangers = [f"stranger-{n}" for n in range(5)]
    new = ground.batch(*strangers)
    await ground.keep(new)
    seen: list[str] = []
    after = -1
    while page := await ground.store.batches.rejections(HERE, new.head.batch_id, after, 2):
        assert len(page) <= 2
        seen += [rejection.user_id for _, rejection in page]
        after = page[-1][0]
    assert seen == strangers


# idempotency (N4.2)


async def test_of_two_calls_with_one_key_the_first_is_kept(ground: Ground) -> None:  # N4.2, W2
    first, second = ground.batch("hanako", key="order-1"), ground.batch("hanako", key="order-1")
    await ground.keep(first)
    turn = await ground.keep(second)
    assert turn.earlier == [Earlier(first.head.batch_id, is_same=True)]
    assert (turn.decided, turn.progress) == (0, {})
    assert await ground.store.batches.find(HERE, second.head.batch_id) is None
    assert await ground.store.queue.unfinished() == 1


async def test_of_two_calls_in_one_group_the_first_is_kept(ground: Ground) -> None:  # N4.2, I5
    first, second, other = (ground.batch("hanako", key=key) for key in ("order-1", "order-1", "order-2"))
    turn = await ground.keep(first, second, other)
    assert turn.earlier == [None, Earlier(first.head.batch_id, is_same=True), None]
    assert set(turn.progress) == {first.head.batch_id, other.head.batch_id}


async def test_another_request_with_the_same_key_is_told_apart(ground: Ground) -> None:  # N4.2
    first = ground.batch("hanako", key="order-1", fingerprint=b"one")
    again = ground.batch("hanako", key="order-1", fingerprint=b"two")
    inside = ground.batch("hanako", key="order-1", fingerprint=b"three")
    turn = await ground.keep(first, inside)
    assert turn.earlier == [None, Earlier(first.head.batch_id, is_same=False)]
    assert (await ground.keep(again)).earlier == [Earlier(first.head.batch_id, is_same=False)]


async def test_a_key_is_free_again_after_a_day(ground: Ground) -> None:  # N4.2
    await ground.keep(ground.batch("hanako", key="order-1"))
    ground.clock.move(DAY - SECOND)
    assert (await ground.keep(ground.batch("hanako", key="order-1"))).earlier != [None]
    ground.clock.move(SECOND)
    renewed = ground.batch("hanako", key="order-1", fingerprint=b"new")
    assert (await ground.keep(renewed)).earlier == [None]
    assert (await ground.keep(ground.batch("hanako", key="order-1", fingerprint=b"new"))).earlier == [
        Earlier(renewed.head.batch_id, is_same=True)
    ]


async def test_a_key_belongs_to_its_tenant(ground: Ground) -> None:  # N4.2
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    await ground.write(tenant=ELSEWHERE)
    mine = ground.batch("hanako", key="order-1")
    theirs = ground.batch("mallory", key="order-1", tenant=ELSEWHERE)
    assert (await ground.keep(mine, theirs)).earlier == [None, None]


async def test_old_keys_are_forgotten_in_pages(ground: Ground) -> None:
    await ground.keep(*(ground.batch(STRANGER, key=f"old-{n}") for n in range(5)))
    ground.clock.move(HOUR)
    await ground.keep(ground.batch(STRANGER, key="young"))
    assert await ground.store.batches.forget_keys(10) == 0
    ground.clock.move(DAY - HOUR)
    assert [await ground.store.batches.forget_keys(2) for _ in range(4)] == [2, 2, 1, 0]
    assert (await ground.keep(ground.batch(STRANGER, key="young"))).earlier != [None]


# slices


async def test_a_large_batch_is_decided_slice_by_slice_and_its_cursor_moves_with_each(ground: Ground) -> None:  # N4.1
    people = await ground.crowd(25)
    new = ground.batch(*(p.user_id for p in people))
    turn = await ground.keep(new, room=10)
    decided = [turn.decided]
    assert (turn.progress[new.head.batch_id].undecided, turn.has_more) == (15, True)
    counts = await ground.store.batches.counts(HERE, new.head.batch_id)
    assert counts is not None
    assert (counts.by_channel, counts.undecided_recipients) == ({("email", Status.QUEUED): 10}, 15)
    while turn.has_more:
        turn = await ground.keep(room=10)
        decided.append(turn.decided)
        assert turn.progress[new.head.batch_id].accepted == sum(decided)
    assert decided == [10, 10, 5]
    reached = Counter(claim.recipient.user_id for claim in (await ground.take()).claims)
    assert reached == Counter(p.user_id for p in people)


async def test_a_slice_that_fails_is_decided_again_from_the_cursor(ground: Ground) -> None:  # N4.1
    people = await ground.crowd(20)
    new = ground.batch(*(p.user_id for p in people))
    await ground.keep(new, room=10)
    with pytest.raises(LookupError):
        await ground.store.batches.keep([], 10, fail)
    turn = await ground.keep(room=10)
    assert (turn.decided, turn.progress[new.head.batch_id].accepted, turn.has_more) == (10, 20, False)
    assert len((await ground.take()).claims) == 20


async def test_a_small_request_does_not_wait_behind_a_large_one(ground: Ground) -> None:  # N4.1
    people = await ground.crowd(200)
    large = ground.batch(*(p.user_id for p in people))
    await ground.keep(large, room=20)
    small = ground.batch("hanako")
    turn = await ground.keep(small, room=20)
    assert turn.progress[small.head.batch_id].accepted == 1
    assert turn.progress[large.head.batch_id].accepted > 20


async def test_a_steady_stream_of_new_requests_does_not_starve_a_waiting_one(ground: Ground) -> None:  # N4.1
    people = await ground.crowd(60)
    waiting = ground.batch(*(p.user_id for p in people))
    await ground.keep(waiting, room=20)
    before = 20
    for number in range(20):
        ground.clock.move(timedelta(milliseconds=1))
        turn = await ground.keep(ground.batch(*(f"stranger-{number}-{n}" for n in range(40))), room=20)
        accepted = turn.progress[waiting.head.batch_id].accepted
        assert accepted > before
        before = accepted


async def test_a_slice_is_mixed_fairly_from_all_waiting_batches(ground: Ground) -> None:  # N4.1
    ids = [p.user_id for p in await ground.crowd(40)]
    batches = [ground.batch(*ids) for _ in range(3)]
    await ground.keep(*batches, room=3)
    turn = await ground.keep(room=40)
    shares = [turn.progress[batch.head.batch_id].accepted for batch in batches]
    assert sum(shares) == 43
    assert max(shares) - min(shares) <= 1


async def test_a_turn_beside_others_leaves_them_half_of_the_batches(ground: Ground) -> None:
    ids = [p.user_id for p in await ground.crowd(40)]
    batches = [ground.batch(*ids) for _ in range(3)]
    await ground.keep(*batches, room=3)
    turn = await ground.store.batches.keep((), 40, decide, is_beside=True)
    assert turn.decided == 40 and turn.has_more
    assert set(turn.progress) == {batch.head.batch_id for batch in batches[:2]}


async def test_room_left_by_small_batches_goes_to_large_ones(ground: Ground) -> None:  # N4.1
    ids = [p.user_id for p in await ground.crowd(40)]
    small, large = ground.batch(*ids[:2]), ground.batch(*ids)
    turn = await ground.keep(small, large, room=30)
    assert turn.decided == 30
    assert turn.progress[large.head.batch_id].accepted == 28


# what falls due later


async def test_a_scheduled_batch_is_decided_when_due_and_not_before(ground: Ground) -> None:  # N4.1, N5.5
    new = ground.batch("hanako", after=HOUR)
    turn = await ground.keep(new)
    due = plus(ground.now, HOUR)
    assert (turn.decided, turn.has_more, turn.next_due_at) == (0, False, due)
    assert turn.progress[new.head.batch_id].is_scheduled
    ground.clock.move(HOUR - timedelta(microseconds=1))
    assert (await ground.keep()).decided == 0
    ground.clock.move(timedelta(microseconds=1))
    turn = await ground.keep()
    assert (turn.decided, turn.lanes, turn.next_due_at) == (1, {EMAIL}, None)
    assert (await ground.claim()).wanted_at == due


async def test_a_scheduled_batch_sees_the_people_of_that_moment(ground: Ground) -> None:  # N5.1
    new = ground.batch("hanako", after=HOUR)
    await ground.keep(new)
    await ground.wish(HANAKO, Preferences(channels={"email": False}))
    ground.clock.move(HOUR)
    await ground.keep()
    view = await ground.view(new.head.batch_id)
    assert (view.status, view.reason) == (Status.SUPPRESSED, "channel_off")


async def test_a_hold_ends_when_due_and_its_notification_is_decided_again(ground: Ground) -> None:  # N3.4, N5.1
    await ground.wish(HANAKO, ASLEEP)
    new = ground.batch("hanako")
    turn = await ground.keep(new)
    due = plus(ground.now, HOUR)
    assert (turn.next_due_at, turn.deliveries) == (due, 0)
    assert turn.progress[new.head.batch_id].accepted == 1
    held = await ground.view(new.head.batch_id)
    assert (held.status, held.reason, held.due_at) == (Status.SCHEDULED, "quiet_hours", due)
    ground.clock.move(HOUR - SECOND)
    assert (await ground.keep()).decided == 0
    ground.clock.move(SECOND)
    turn = await ground.keep()
    assert (turn.decided, turn.lanes, turn.next_due_at) == (1, {EMAIL}, None)
    released = await ground.view(new.head.batch_id)
    assert (released.status, released.reason, released.due_at) == (Status.QUEUED, None, due)
    assert kinds(released) == ["deferred", "released", "queued"]


async def test_a_hold_that_is_deferred_again_waits_again(ground: Ground) -> None:  # N5.1
    await ground.wish(HANAKO, ASLEEP)
    batch_id = await ground.accept(HANAKO)
    await ground.wish(HANAKO, Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="20:00")))
    ground.clock.move(HOUR)
    turn = await ground.keep()
    assert (turn.deliveries, turn.next_due_at) == (0, plus(ground.now, HOUR))
    assert (await ground.view(batch_id)).status is Status.SCHEDULED
    ground.clock.move(HOUR)
    assert (await ground.keep()).deliveries == 1


async def test_a_hold_of_someone_erased_meanwhile_ends_as_unknown_user(ground: Ground) -> None:  # N5.1
    await ground.wish(HANAKO, ASLEEP)
    batch_id = await ground.accept(HANAKO)
    await ground.store.people.remove_user(HERE, HANAKO.user_id)
    ground.clock.move(HOUR)
    await ground.keep()
    view = await ground.view(batch_id)
    assert (view.status, view.reason) == (Status.SUPPRESSED, "unknown_user")


# tenants


async def test_another_tenants_batch_is_not_found(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO)
    await ground.store.batches.remember_answer(ELSEWHERE, batch_id, partial(answer, "any"))
    assert await ground.store.batches.find(ELSEWHERE, batch_id) is None
    assert await ground.store.batches.counts(ELSEWHERE, batch_id) is None
    assert await ground.store.batches.rejections(ELSEWHERE, batch_id, -1, 10) == []
    found = await ground.store.batches.find(HERE, batch_id)
    assert found is not None
    assert found.answer is None


async def test_people_and_templates_of_another_tenant_are_unknown_here(ground: Ground) -> None:
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    await ground.write("theirs", tenant=ELSEWHERE)
    new = ground.batch("mallory", "hanako", template_id="theirs")
    await ground.keep(new)
    assert (await ground.view(new.head.batch_id)).reason == "template_missing"
    progress = await ground.store.batches.find(HERE, new.head.batch_id)
    assert progress is not None
    assert progress.progress.reasons == {"unknown_user": 1, "template_missing": 1}
