"""The queue: claims under fenced leases, and what each settlement does to a delivery and its notification."""

from datetime import timedelta

import pytest

from noroshi.domain.deliveries import Claim, DeliveryKey, Verdict
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.states import Status
from tests.cast import ALICE, HANAKO, JIRO, MALLORY, TARO
from tests.conformance.ground import ELSEWHERE, EMAIL, HERE, LEASE, MINUTE, PUSH, SECOND, Ground, kinds


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


async def test_one_whose_address_is_the_user_id_has_an_empty_address(ground: Ground) -> None:
    await ground.accept(HANAKO, channels=["in_app"])
    claim = await ground.claim(Lane("in_app", "acme", Priority.NORMAL))
    assert (claim.key.endpoint_id, claim.address) == (0, "")


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


async def test_unfinished_counts_what_waits_and_what_is_leased(ground: Ground) -> None:
    await ground.accept(HANAKO, TARO, ALICE)
    claims = (await ground.take(limit=2)).claims
    assert await ground.store.queue.unfinished() == 3
    await ground.settle(claims[0], Verdict.SENT)
    assert await ground.store.queue.unfinished() == 2


async def test_a_claim_of_someone_erased_meanwhile_has_no_address(ground: Ground) -> None:
    await ground.accept(HANAKO)
    await ground.store.people.remove_user(HERE, HANAKO.user_id)
    claim = await ground.claim()
    assert (claim.address, claim.recipient.name, claim.recipient.attributes) == ("", None, {})


# fences and leases (W9)


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


async def test_a_lease_has_not_run_out_before_its_end_except_at_the_start(ground: Ground) -> None:
    await ground.accept(HANAKO)
    claim = await ground.claim()
    assert await ground.store.queue.expired(None, 10, is_start=False) == []
    ((_, expired),) = await ground.store.queue.expired(None, 10, is_start=True)
    assert (expired.key, expired.fence, expired.claims, expired.lane) == (claim.key, claim.fence, 1, EMAIL)


# the counters


async def test_release_uses_up_nothing(ground: Ground) -> None:  # N6.4
    batch_id = await ground.accept(HANAKO)
    for _ in range(4):
        claim = await ground.claim()
        assert (claim.claims, claim.tries) == (1, 0)
        await ground.settle(claim, Verdict.RELEASE, is_tried=False)
    view = await ground.view(batch_id)
    assert (view.status, view.retry_count, kinds(view)) == (Status.QUEUED, 0, ["queued"])


async def test_a_retry_uses_up_a_try_and_clears_the_claims(ground: Ground) -> None:  # N6.1, N6.2
    batch_id = await ground.accept(HANAKO)
    for tries in range(3):
        claim = await ground.claim()
        assert (claim.claims, claim.tries) == (1, tries)
        await ground.settle(claim, Verdict.RETRY, after=SECOND, code="BUSY")
        view = await ground.view(batch_id)
        assert (view.status, view.due_at, view.error) == (Status.RETRYING, plus(ground.now, SECOND), "as told")
        ground.clock.move(SECOND)
    await ground.settle(await ground.claim(), Verdict.SENT)
    view = await ground.view(batch_id)
    assert (view.status, view.retry_count, view.error) == (Status.SENT, 3, None)
    assert kinds(view) == ["queued", "failed", "failed", "failed", "sent"]


async def test_a_resend_keeps_its_claims_and_uses_up_no_try(ground: Ground) -> None:  # W27
    batch_id = await ground.accept(HANAKO)
    for number in (1, 2, 3):
        claim = await ground.claim()
        assert (claim.claims, claim.tries) == (number, 0)
        await ground.settle(claim, Verdict.RESEND, is_tried=False)
    assert kinds(await ground.view(batch_id)) == ["queued"] + ["outcome_unknown"] * 3


async def test_one_claimed_twice_without_an_outcome_comes_alone(ground: Ground) -> None:  # W27
    await ground.accept(HANAKO)
    for _ in range(2):
        await ground.settle(await ground.claim(), Verdict.RESEND, is_tried=False)
    ground.clock.move(SECOND)
    await ground.accept(TARO, ALICE)
    alone = await ground.take()
    assert (people_of(alone.claims), alone.has_more) == (["hanako"], True)
    assert people_of((await ground.take()).claims) == ["taro", "alice"]


async def test_those_before_a_suspect_are_taken_without_it(ground: Ground) -> None:  # W27
    await ground.accept(TARO)
    ground.clock.move(SECOND)
    await ground.accept(HANAKO)
    taro, hanako = (await ground.take()).claims
    await ground.settle(taro, Verdict.RELEASE, is_tried=False)
    await ground.settle(hanako, Verdict.RESEND, is_tried=False, after=SECOND)
    ground.clock.move(SECOND)
    taro, hanako = (await ground.take()).claims
    await ground.settle(taro, Verdict.RELEASE, is_tried=False)
    await ground.settle(hanako, Verdict.RESEND, is_tried=False, after=SECOND)
    ground.clock.move(SECOND)
    assert people_of((await ground.take()).claims) == ["taro"]
    assert people_of((await ground.take()).claims) == ["hanako"]


# the ends


async def test_sent_takes_the_delivery_out_of_its_lane(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO)
    ground.clock.move(SECOND)
    settled = await ground.settle(await ground.claim(), Verdict.SENT, message_id="m-1")
    assert (settled.finished, settled.late, settled.dead_letters) == (1, (), 0)
    view = await ground.view(batch_id)
    assert (view.status, view.sent_at) == (Status.SENT, ground.now)
    assert view.trail[-1].detail["message_id"] == "m-1"
    assert await ground.store.queue.unfinished() == 0


async def test_a_dead_delivery_leaves_a_dead_letter_that_says_why(ground: Ground) -> None:  # N6.3
    batch_id = await ground.accept(HANAKO)
    settled = await ground.settle(await ground.claim(), Verdict.DEAD, code="REJECTED")
    assert (settled.finished, settled.dead_letters) == (1, 1)
    view = await ground.view(batch_id)
    assert (view.status, view.reason, view.error) == (Status.DEAD_LETTERED, "REJECTED", "as told")
    (letter,) = await ground.letters()
    assert (letter.code, letter.error, letter.tries, letter.at) == ("REJECTED", "as told", 1, ground.now)


async def test_what_was_never_tried_shows_no_try(ground: Ground) -> None:
    await ground.accept(HANAKO)
    await ground.settle(await ground.claim(), Verdict.DEAD, code="render_error", is_tried=False)
    (letter,) = await ground.letters()
    assert letter.tries == 0


async def test_what_is_suppressed_before_a_send_gives_its_quota_back(ground: Ground) -> None:  # N5.1
    batch_id = await ground.accept(HANAKO)
    assert await _used(ground) == 1
    await ground.settle(await ground.claim(), Verdict.SUPPRESSED, code="expired", is_tried=False)
    assert await _used(ground) == 0
    view = await ground.view(batch_id)
    assert (view.status, view.reason) == (Status.SUPPRESSED, "expired")


async def test_what_was_sent_and_failed_keeps_its_quota(ground: Ground) -> None:  # N8.2
    await ground.accept(HANAKO)
    await ground.settle(await ground.claim(), Verdict.DEAD, code="REJECTED")
    assert await _used(ground) == 1


# many devices (N1.10)


async def test_a_push_is_sent_at_the_first_device_that_takes_it(ground: Ground) -> None:  # N1.10
    batch_id = await ground.accept(JIRO, channels=["push"])
    phone, tablet, watch = (await ground.take(PUSH)).claims
    assert sorted(claim.address for claim in (phone, tablet, watch)) == sorted(JIRO.devices)
    await ground.settle(phone, Verdict.DEAD, code="REJECTED")
    assert (await ground.view(batch_id)).status is Status.SENDING
    await ground.settle(tablet, Verdict.SENT)
    assert (await ground.view(batch_id)).status is Status.SENT
    await ground.settle(watch, Verdict.RETRY, after=SECOND, code="BUSY")
    assert (await ground.view(batch_id)).status is Status.SENT
    ground.clock.move(SECOND)
    await ground.settle(await ground.claim(PUSH), Verdict.DEAD, code="BUSY")
    assert (await ground.view(batch_id)).status is Status.SENT
    assert len(await ground.letters()) == 2


async def test_a_push_is_dead_only_when_all_devices_have_ended(ground: Ground) -> None:  # N1.10
    batch_id = await ground.accept(JIRO, channels=["push"])
    claims = (await ground.take(PUSH)).claims
    for claim in claims[:-1]:
        await ground.settle(claim, Verdict.DEAD, code="REJECTED")
        assert (await ground.view(batch_id)).status is Status.SENDING
    await ground.settle(claims[-1], Verdict.DEAD, code="EXPIRED_TOKEN")
    view = await ground.view(batch_id)
    assert (view.status, view.reason) == (Status.DEAD_LETTERED, "EXPIRED_TOKEN")
    assert len(await ground.letters()) == 3


async def test_devices_that_end_in_one_commit_end_their_notification(ground: Ground) -> None:  # N1.10
    batch_id = await ground.accept(JIRO, channels=["push"])
    claims = (await ground.take(PUSH)).claims
    await ground.store.queue.settle([ground.settlement(claim, Verdict.DEAD, code="REJECTED") for claim in claims])
    assert (await ground.view(batch_id)).status is Status.DEAD_LETTERED


async def test_a_gone_device_is_deactivated_and_the_next_push_spares_it(ground: Ground) -> None:  # N1.11
    await ground.accept(JIRO, channels=["push"])
    claims = (await ground.take(PUSH)).claims
    gone, *others = claims
    await ground.settle(gone, Verdict.DEAD, code="UNREGISTERED", is_gone=True)
    for claim in others:
        await ground.settle(claim, Verdict.SENT)
    devices = await ground.store.devices.list_devices(HERE, JIRO.user_id)
    assert devices is not None
    assert {d.device_token for d in devices if not d.is_active} == {gone.address}
    await ground.accept(JIRO, channels=["push"])
    assert {claim.address for claim in (await ground.take(PUSH)).claims} == set(JIRO.devices) - {gone.address}


# pauses


async def test_deliveries_of_a_paused_category_are_set_aside_and_nothing_is_lost(ground: Ground) -> None:  # N4.7
    waiting = await ground.accept(HANAKO, category="social")
    await ground.accept(TARO)
    taken = await ground.take(paused=["social"])
    assert people_of(taken.claims) == ["taro"]
    assert (await ground.take()).claims == []
    assert await ground.store.queue.waiting() == {}
    assert await ground.store.queue.unfinished() == 2
    assert (await ground.view(waiting)).status is Status.QUEUED
    assert await ground.store.queue.resume(frozenset({"social"}), 10) == 0
    assert await ground.store.queue.resume(frozenset(), 10) == 1
    claim = await ground.claim()
    assert (claim.recipient.user_id, claim.claims) == ("hanako", 1)


async def test_what_was_set_aside_comes_back_in_pages(ground: Ground) -> None:  # N4.7
    await ground.accept(*await ground.crowd(5), category="social")
    await ground.take(paused=["social"])
    pages = [await ground.store.queue.resume(frozenset(), 2) for _ in range(4)]
    assert pages == [2, 2, 1, 0]
    assert len((await ground.take()).claims) == 5


async def test_a_pause_does_not_hide_what_stands_behind_the_paused(ground: Ground) -> None:  # N4.7
    await ground.accept(*await ground.crowd(4), category="social")
    ground.clock.move(SECOND)
    await ground.accept(TARO)
    first = await ground.take(limit=2, paused=["social"])
    assert (first.claims, first.has_more) == ([], True)
    second = await ground.take(limit=2, paused=["social"])
    assert (second.claims, second.has_more) == ([], True)
    assert people_of((await ground.take(limit=2, paused=["social"])).claims) == ["taro"]


# cancelled batches


async def test_a_claim_of_a_withdrawn_batch_says_so(ground: Ground) -> None:  # N4.3
    batch_id = await ground.accept(HANAKO)
    await ground.store.batches.begin_cancel(HERE, batch_id)
    assert (await ground.claim()).is_cancelled


@pytest.mark.parametrize("verdict", [Verdict.RETRY, Verdict.RELEASE, Verdict.RESEND])
async def test_what_would_be_tried_again_is_cancelled_once_its_batch_is_withdrawn(
    ground: Ground, verdict: Verdict
) -> None:  # N4.3
    batch_id = await ground.accept(HANAKO)
    claim = await ground.claim()
    await ground.store.batches.begin_cancel(HERE, batch_id)
    while await ground.store.batches.cancel_page(10):
        pass
    assert (await ground.view(batch_id)).status is Status.SENDING
    assert (await ground.settle(claim, verdict, code="BUSY")).finished == 1
    assert (await ground.view(batch_id)).status is Status.CANCELLED
    assert await ground.store.queue.unfinished() == 0


async def test_what_was_sent_before_a_withdrawal_stays_sent(ground: Ground) -> None:  # N4.3
    batch_id = await ground.accept(HANAKO)
    claim = await ground.claim()
    await ground.store.batches.begin_cancel(HERE, batch_id)
    await ground.settle(claim, Verdict.SENT)
    while await ground.store.batches.cancel_page(10):
        pass
    assert (await ground.view(batch_id)).status is Status.SENT


# tenants


async def test_tenants_share_a_lane_and_keep_their_rows_apart(ground: Ground) -> None:
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    await ground.write(tenant=ELSEWHERE)
    await ground.accept(HANAKO)
    await ground.accept(MALLORY, tenant=ELSEWHERE)
    claims = (await ground.take()).claims
    assert {(c.key.tenant, c.address) for c in claims} == {(HERE, HANAKO.email), (ELSEWHERE, MALLORY.email)}
    for claim in claims:
        await ground.settle(claim, Verdict.DEAD, code="REJECTED")
    assert [letter.user_id for letter in await ground.letters(HERE)] == ["hanako"]
    assert [letter.user_id for letter in await ground.letters(ELSEWHERE)] == ["mallory"]


async def _used(ground: Ground) -> int:
    usage = await ground.store.people.usage(HERE, HANAKO.user_id)
    assert usage is not None
    return usage["email"].hour if "email" in usage else 0
