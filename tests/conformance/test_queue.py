"""The queue: deliveries taken from their lanes under fenced leases; by whoever asks, and by one who goes by hints that
are dropped, doubled and out of order, and looks (DESIGN 4)."""

from datetime import timedelta

import pytest

from noroshi.domain.deliveries import Claim, DeliveryKey, Verdict
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.states import Status
from tests.cast import ALICE, HANAKO, JIRO, TARO
from tests.conformance.ground import EMAIL, HERE, LEASE, MINUTE, PUSH, SECOND, Ground, kinds
from tests.conformance.spoiling import HintedGround, by_turns, dropped
from tests.conformance.stores import HandClock, Store


@pytest.fixture(params=[Ground, HintedGround], ids=["asking", "hinted"])
def ground(request: pytest.FixtureRequest, store: Store, clock: HandClock) -> Ground:
    made: Ground = request.param(store, clock)
    return made


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, ALICE, JIRO)
    await ground.write("welcome", "email", "push", "in_app")


def people_of(claims: list[Claim]) -> list[str]:
    return [claim.recipient.user_id for claim in claims]


# taking


async def test_a_claim_carries_all_that_composing_and_sending_need(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO, expires_after=MINUTE)
    claim = await ground.claim()
    assert (claim.lane, claim.claims, claim.tries, claim.category) == (EMAIL, 1, 0, "general")
    assert claim.address == HANAKO.email
    assert (claim.recipient.name, claim.recipient.attributes) == ("Hanako", {"plan": "gold"})
    assert (claim.template.template_id, claim.template.body) == ("welcome", "Hello {{ user.name }}")
    assert claim.data == {"number": 1}
    assert (claim.lease_until, claim.expires_at) == (plus(ground.now, LEASE), plus(ground.now, MINUTE))
    assert claim.wanted_at == ground.now
    assert not claim.is_cancelled
    assert (await ground.view(batch_id)).status is Status.SENDING


async def test_where_the_user_id_is_the_address_the_claim_has_it(ground: Ground) -> None:
    await ground.accept(HANAKO, channels=["in_app"])
    claim = await ground.claim(Lane("in_app", "acme", Priority.NORMAL))
    assert (claim.key.endpoint_id, claim.address) == (0, "hanako")


async def test_the_oldest_due_come_first_and_a_leased_delivery_is_not_given_twice(ground: Ground) -> None:
    for person in (HANAKO, TARO, ALICE):
        await ground.accept(person)
        ground.clock.move(SECOND)
    first = await ground.take(limit=2)
    assert (people_of(first.claims), first.has_more) == (["hanako", "taro"], True)
    second = await ground.take(limit=2)
    assert (people_of(second.claims), second.has_more) == (["alice"], False)
    assert (await ground.take()).claims == []


async def test_a_lane_holds_only_its_own_channel_account_and_priority(ground: Ground) -> None:  # N5.2
    await ground.accept(HANAKO)
    await ground.accept(HANAKO, priority=Priority.HIGH)
    await ground.accept(HANAKO, channels=["push"])
    assert len((await ground.take(EMAIL)).claims) == 1
    assert len((await ground.take(Lane("email", "acme", Priority.HIGH))).claims) == 1
    assert len((await ground.take(PUSH)).claims) == 1
    assert (await ground.take(Lane("email", "other", Priority.NORMAL))).claims == []


async def test_what_is_due_later_is_not_taken_but_its_time_is_told(ground: Ground) -> None:
    await ground.accept(HANAKO)
    await ground.settle(await ground.claim(), Verdict.RETRY, after=MINUTE, code="BUSY")
    taken = await ground.take()
    assert (taken.claims, taken.next_due_at, taken.has_more) == ([], plus(ground.now, MINUTE), False)
    ground.clock.move(MINUTE)
    assert people_of((await ground.take()).claims) == ["hanako"]


async def test_waiting_names_each_lane_with_its_earliest_due_time(ground: Ground) -> None:
    assert await ground.store.queue.waiting() == {}
    began = ground.now
    await ground.accept(HANAKO)
    ground.clock.move(SECOND)
    await ground.accept(TARO)
    await ground.accept(JIRO, channels=["push"])
    assert await ground.store.queue.waiting() == {EMAIL: began, PUSH: ground.now}
    await ground.take()
    assert await ground.store.queue.waiting() == {PUSH: ground.now}


async def test_oldest_tells_since_when_each_lane_has_had_something_due_or_claimed(ground: Ground) -> None:
    began = ground.now
    await ground.accept(HANAKO)
    ground.clock.move(SECOND)
    await ground.accept(JIRO, channels=["push"])
    claim = await ground.claim()
    ground.clock.move(SECOND)
    assert await ground.store.queue.oldest() == {EMAIL: began, PUSH: plus(began, SECOND)}
    await ground.settle(claim, Verdict.RETRY, after=MINUTE, code="BUSY")
    ground.clock.move(MINUTE)
    await ground.accept(TARO)
    assert await ground.store.queue.oldest() == {EMAIL: ground.now, PUSH: plus(began, SECOND)}
    again, claimed = ground.now, await ground.take(limit=1)
    ground.clock.move(SECOND)
    assert (await ground.store.queue.oldest())[EMAIL] == again
    assert claimed.claims[0].tries == 1 and claimed.claims[0].wanted_at == began


async def test_unfinished_counts_what_waits_and_what_is_leased(ground: Ground) -> None:
    await ground.accept(HANAKO, TARO, ALICE)
    claims = (await ground.take(limit=2)).claims
    assert await ground.store.queue.unfinished() == 3
    await ground.settle(claims[0], Verdict.SENT)
    assert await ground.store.queue.unfinished() == 2


async def test_a_claim_of_someone_erased_meanwhile_has_no_address(ground: Ground) -> None:
    await ground.accept(HANAKO, channels=["email", "in_app"])
    await ground.store.people.remove_user(HERE, HANAKO.user_id)
    for lane in (EMAIL, Lane("in_app", "acme", Priority.NORMAL)):
        claim = await ground.claim(lane)
        assert (claim.address, claim.recipient.name, claim.recipient.attributes) == ("", None, {})


# fences and leases


async def test_a_settlement_with_an_old_fence_changes_nothing_and_is_recorded_as_late(ground: Ground) -> None:  # W9
    batch_id = await ground.accept(HANAKO)
    lost = await ground.claim()
    ground.clock.move(LEASE)
    await ground.settle(lost, Verdict.RESEND)  # the sweeper gives it back
    held = await ground.claim()
    assert held.fence > lost.fence
    settled = await ground.settle(lost, Verdict.SENT, message_id="too-late")
    assert (settled.finished, settled.late) == (0, (lost.key,))
    view = await ground.view(batch_id)
    assert view.status is Status.SENDING
    assert view.trail[-1].kind == "late_result"
    assert view.trail[-1].detail["result"] == "sent"
    assert (await ground.settle(held, Verdict.SENT)).finished == 1


@pytest.mark.parametrize("verdict", list(Verdict))
async def test_no_verdict_of_a_lost_claim_becomes_state(ground: Ground, verdict: Verdict) -> None:  # W9
    batch_id = await ground.accept(HANAKO)
    lost = await ground.claim()
    await ground.settle(lost, Verdict.RELEASE, is_tried=False)
    held = await ground.claim()
    settled = await ground.settle(lost, verdict, code="LATE")
    assert (settled.finished, settled.late, settled.dead_letters) == (0, (lost.key,), 0)
    assert (await ground.view(batch_id)).status is Status.SENDING
    assert await ground.letters() == []
    assert await ground.store.queue.renew([(held.key, held.fence)], LEASE) == set()


async def test_a_settlement_that_comes_twice_counts_once(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO)
    claim = await ground.claim()
    assert (await ground.settle(claim, Verdict.SENT)).finished == 1
    assert (await ground.settle(claim, Verdict.SENT)).late == (claim.key,)
    view = await ground.view(batch_id)
    assert (view.status, kinds(view)) == (Status.SENT, ["queued", "sent", "late_result"])


async def test_in_one_call_lost_claims_do_not_touch_the_others(ground: Ground) -> None:
    await ground.accept(HANAKO, TARO, ALICE)
    claims = (await ground.take()).claims
    await ground.settle(claims[1], Verdict.RELEASE, is_tried=False)
    settled = await ground.store.queue.settle([ground.settlement(claim, Verdict.SENT) for claim in claims])
    assert (settled.finished, settled.late) == (2, (claims[1].key,))
    assert people_of((await ground.take()).claims) == [claims[1].recipient.user_id]


async def test_fences_rise_with_every_claim_also_across_lanes(ground: Ground) -> None:
    fences: list[int] = []
    for _ in range(3):
        await ground.accept(HANAKO)
        await ground.accept(JIRO, channels=["push"])
        fences += [c.fence for c in (await ground.take()).claims]
        fences += [c.fence for c in (await ground.take(PUSH)).claims]
    assert fences == sorted(set(fences))


async def test_renewing_lengthens_a_lease_and_names_what_is_lost(ground: Ground) -> None:
    await ground.accept(HANAKO, TARO)
    kept, lost = (await ground.take()).claims
    await ground.settle(lost, Verdict.SENT)
    ground.clock.move(LEASE / 2)
    held = [(kept.key, kept.fence), (lost.key, lost.fence)]
    assert await ground.store.queue.renew(held, LEASE) == {lost.key}
    ground.clock.move(LEASE * 0.75)
    assert await ground.store.queue.expired(None, 10, is_start=False) == []
    ground.clock.move(LEASE)
    ((ended, expired),) = await ground.store.queue.expired(None, 10, is_start=False)
    assert (expired.key, ended) == (kept.key, Instant(kept.lease_until + int((LEASE / 2) / timedelta(microseconds=1))))


async def test_expired_leases_come_in_pages_in_the_order_of_their_ends(ground: Ground) -> None:  # W10, F26
    await ground.accept(*await ground.crowd(14))
    while (await ground.take(limit=2)).claims:
        ground.clock.move(SECOND)
    ground.clock.move(LEASE)
    seen: list[tuple[Instant, DeliveryKey]] = []
    after: tuple[Instant, DeliveryKey] | None = None
    while page := await ground.store.queue.expired(after, 3, is_start=False):
        assert len(page) <= 3
        seen += [(ended, expired.key) for ended, expired in page]
        after = seen[-1]
    assert len(seen) == len(set(seen)) == 14
    assert seen == sorted(seen)


async def test_a_lease_has_not_run_out_before_its_end(ground: Ground) -> None:
    await ground.accept(HANAKO)
    claim = await ground.claim()
    assert await ground.store.queue.expired(None, 10, is_start=False) == []
    ground.clock.move(LEASE)
    ((_, expired),) = await ground.store.queue.expired(None, 10, is_start=False)
    assert (expired.key, expired.fence, expired.claims, expired.lane) == (claim.key, claim.fence, 1, EMAIL)


# hints


async def test_whoever_does_not_look_finds_nothing_of_what_was_not_announced(store: Store, clock: HandClock) -> None:
    """Or the runs on spoiled hints would prove nothing."""
    for spoil, person in ((dropped, HANAKO), (by_turns, TARO)):
        deaf = HintedGround(store, clock, spoil, is_looking=False)
        await deaf.accept(person)
        assert (await deaf.take()).claims == []
        clock.move(SECOND)
    assert people_of((await HintedGround(store, clock, dropped).take()).claims) == ["hanako", "taro"]
