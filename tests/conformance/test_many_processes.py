"""Several processes on one store: what they do at the same moment holds exactly, and nobody waits for ever. A
store that one process alone may serve is asked all of it at the same moment by that one (company.py)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noroshi.domain.batches import NewBatch
from noroshi.domain.deliveries import Claim, Verdict
from noroshi.domain.ids import BatchId
from noroshi.domain.lanes import Lane
from noroshi.domain.people import FrequencyLimit, Preferences
from noroshi.domain.priorities import Priority
from noroshi.domain.states import Status
from noroshi.ports.batches import Turn
from tests.cast import HANAKO, JIRO
from tests.conformance.company import beside
from tests.conformance.ground import EMAIL, HERE, HOUR, LEASE, PUSH, SECOND, Ground, decide
from tests.conformance.stores import HandClock, Store

ROUNDS = 200
URGENT_PUSH = PUSH._replace(priority=Priority.CRITICAL)


@pytest.fixture
async def other(store: Store, clock: HandClock) -> AsyncIterator[Store]:
    async with beside(store, clock) as another:
        yield another


async def keep(store: Store, *batches: NewBatch) -> Turn:
    return await store.batches.keep(batches, 500, decide)


async def lanes_of(store: Store, lane: Lane = EMAIL) -> list[Claim]:
    return (await store.queue.take(lane, 500, LEASE, frozenset())).claims


async def withdraw(store: Store, batch_id: BatchId) -> None:
    await store.batches.begin_cancel(HERE, batch_id)
    while await store.batches.cancel_page(50):
        pass


# addressing


async def test_batches_for_the_same_people_kept_at_once_never_exceed_their_limits(
    ground: Ground, clock: HandClock
) -> None:  # N8.2, DESIGN 5.5
    deadlocks = Counter[str]()
    people = await ground.crowd(6)
    await ground.write()
    for person in people:
        await ground.wish(person, Preferences(frequency_limit={"email": FrequencyLimit(3, 10)}))
    names = [person.user_id for person in people]
    async with beside(ground.store, clock, deadlocks) as one, beside(ground.store, clock, deadlocks) as another:
        for number in range(ROUNDS):
            order = names[number % 6 :] + names[: number % 6]
            first, second = ground.batch(*order), ground.batch(*reversed(order))
            await asyncio.gather(keep(one, first), keep(another, second))
            if number % 20 == 0:
                clock.move(SECOND)
    sent = Counter(claim.recipient.user_id for claim in await lanes_of(ground.store))
    assert sent == dict.fromkeys(names, 3)
    assert not deadlocks


async def test_the_same_content_from_two_processes_at_once_reaches_each_person_once(
    ground: Ground, other: Store
) -> None:  # N9.1, DESIGN 5.5
    people = await ground.crowd(6)
    await ground.write()
    names = [person.user_id for person in people]
    for content in range(30):
        first, second = ground.batch(*names, content=content), ground.batch(*reversed(names), content=content)
        await asyncio.gather(keep(ground.store, first), keep(other, second))
        sent = Counter(claim.recipient.user_id for claim in await lanes_of(ground.store))
        assert sent == dict.fromkeys(names, 1)
        ground.clock.move(HOUR * 24)


async def test_one_idempotency_key_in_two_processes_at_once_is_one_batch(
    ground: Ground, other: Store
) -> None:  # N4.2, I5
    await ground.meet(HANAKO)
    await ground.write()
    for number in range(50):
        pair = [ground.batch(HANAKO.user_id, key=f"key-{number}") for _ in range(2)]
        turns = await asyncio.gather(keep(ground.store, pair[0]), keep(other, pair[1]))
        assert sorted(turn.earlier[0] is None for turn in turns) == [False, True]


async def test_one_large_batch_addressed_by_two_processes_is_addressed_once(ground: Ground, other: Store) -> None:
    people = await ground.crowd(200)
    await ground.write()
    await ground.keep(ground.batch(*(person.user_id for person in people)), room=10)
    while (await ground.store.batches.keep((), 10, decide)).has_more | (
        await other.batches.keep((), 10, decide)
    ).has_more:
        await asyncio.gather(*(one.batches.keep((), 10, decide) for one in (ground.store, other) * 2))
    sent = Counter(claim.recipient.user_id for claim in await lanes_of(ground.store))
    assert sent == dict.fromkeys((person.user_id for person in people), 1)


# claiming


async def test_two_processes_never_claim_the_same_delivery(ground: Ground, other: Store) -> None:  # I3
    people = await ground.crowd(100)
    await ground.write()
    await ground.accept(*people)
    taken = [
        claim.key
        for _ in range(10)
        for part in await asyncio.gather(
            *(one.queue.take(EMAIL, 7, LEASE, frozenset()) for one in (ground.store, other))
        )
        for claim in part.claims
    ]
    taken += [claim.key for claim in await lanes_of(other)]
    assert len(taken) == len(set(taken)) == 100


async def test_of_the_suspects_of_all_lanes_and_processes_one_is_claimed_at_a_time(
    ground: Ground, other: Store
) -> None:  # W27
    await ground.meet(HANAKO)
    await ground.write("welcome", "email", "push", "in_app")
    lanes = [Lane(channel, "acme", Priority.NORMAL) for channel in ("email", "push", "in_app")]
    await ground.accept(HANAKO, channels=["email", "push", "in_app"])
    for _ in range(2):
        for lane in lanes:
            for claim in await lanes_of(ground.store, lane):
                await ground.settle(claim, Verdict.RESEND)
    suspects = 0
    while await ground.store.queue.unfinished():
        found = await asyncio.gather(*(lanes_of(one, lane) for lane in lanes for one in (ground.store, other)))
        (alone,) = [claim for claims in found for claim in claims]
        suspects += 1
        await ground.settle(alone, Verdict.SENT)
    assert suspects == len(lanes)


async def test_the_leases_of_a_killed_process_end_by_the_stores_time(ground: Ground, other: Store) -> None:  # W30
    await ground.meet(HANAKO)
    await ground.write()
    await ground.accept(HANAKO)
    (lost,) = await lanes_of(other)
    assert await ground.store.queue.expired(None, 10, is_start=False) == []
    ground.clock.move(LEASE)
    ((_, expired),) = await ground.store.queue.expired(None, 10, is_start=False)
    assert (expired.key, expired.fence) == (lost.key, lost.fence)


async def test_what_two_sweepers_judge_at_once_is_recorded_once(ground: Ground, other: Store) -> None:
    await ground.meet(HANAKO)
    await ground.write()
    batch_id = await ground.accept(HANAKO)
    (lost,) = await lanes_of(other)
    ground.clock.move(LEASE)
    judged = ground.settlement(lost, Verdict.RESEND, is_tried=False)
    settled = await asyncio.gather(ground.store.queue.settle([judged]), other.queue.settle([judged]))
    assert sorted(len(one.late) for one in settled) == [0, 1]
    assert [entry.kind for entry in (await ground.view(batch_id)).trail] == ["queued", "outcome_unknown"]


# settling


@pytest.mark.parametrize("verdicts", [(Verdict.DEAD, Verdict.DEAD), (Verdict.DEAD, Verdict.SENT)])
async def test_the_last_two_deliveries_settled_at_once_end_their_notification(
    ground: Ground, other: Store, verdicts: tuple[Verdict, Verdict]
) -> None:  # N5.4
    await ground.meet(JIRO)
    await ground.write("welcome", "push")
    wanted = Status.SENT if Verdict.SENT in verdicts else Status.DEAD_LETTERED
    for _ in range(40):
        batch_id = await ground.accept(JIRO, channels=["push"], priority=Priority.CRITICAL)
        first, *claims = await lanes_of(ground.store, URGENT_PUSH)
        await ground.settle(first, Verdict.DEAD, code="GONE")
        assert (await ground.view(batch_id)).status is Status.SENDING
        await asyncio.gather(
            *(
                one.queue.settle([ground.settlement(claim, verdict, code="GONE")])
                for one, claim, verdict in zip((ground.store, other), claims, verdicts, strict=True)
            )
        )
        assert (await ground.view(batch_id)).status is wanted


async def test_a_cancel_beside_a_settlement_ends_every_notification_one_way(
    ground: Ground, other: Store
) -> None:  # N4.3
    await ground.meet(JIRO)
    await ground.write("welcome", "push")
    ends: Counter[Status] = Counter()
    for number in range(40):
        batch_id = await ground.accept(JIRO, channels=["push"], priority=Priority.CRITICAL)
        first, second, third = await lanes_of(ground.store, URGENT_PUSH)
        await ground.settle(third, Verdict.RETRY, code="BUSY")
        verdict = Verdict.RETRY if number % 2 else Verdict.DEAD

        await asyncio.gather(
            ground.store.queue.settle([ground.settlement(first, verdict, code="BUSY", after=SECOND)]),
            other.queue.settle([ground.settlement(second, Verdict.RETRY, code="BUSY", after=SECOND)]),
            withdraw(other, batch_id),
        )
        assert await ground.store.queue.unfinished() == 0
        ends[(await ground.view(batch_id)).status] += 1
    assert ends.keys() <= {Status.CANCELLED, Status.DEAD_LETTERED}


# duties


async def test_whoever_has_a_duty_keeps_it_by_taking_it_again(ground: Ground) -> None:
    for _ in range(3):
        assert await ground.store.duties.take("sweep", SECOND)
        ground.clock.move(SECOND)


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
async def test_a_duty_has_one_holder_and_goes_to_another_when_it_is_not_kept(ground: Ground, other: Store) -> None:
    span = timedelta(seconds=5)
    takes = [await one.duties.take("sweep", span) for one in (ground.store, other, ground.store)]
    assert takes == [True, False, True]
    assert await other.duties.take("tidy", span)
    ground.clock.move(span)
    assert await other.duties.take("sweep", span)
    assert not await ground.store.duties.take("sweep", span)
