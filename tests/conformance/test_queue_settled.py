"""The queue: what each settlement does to a delivery, its counters and its notification."""

import pytest

from noroshi.domain.deliveries import Claim, Verdict
from noroshi.domain.instants import plus
from noroshi.domain.states import Status
from tests.cast import ALICE, HANAKO, JIRO, MALLORY, TARO
from tests.conformance.ground import ELSEWHERE, HERE, PUSH, SECOND, Ground, kinds


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, ALICE, JIRO)
    await ground.write("welcome", "email", "push", "in_app")


def people_of(claims: list[Claim]) -> list[str]:
    return [claim.recipient.user_id for claim in claims]


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


async def test_the_innocent_pass_however_many_suspects_wait_before_them(ground: Ground) -> None:  # W27, F21
    await ground.accept(HANAKO, TARO)
    for _ in range(2):
        for claim in (await ground.take()).claims:
            await ground.settle(claim, Verdict.RESEND, is_tried=False)
    ground.clock.move(SECOND)
    await ground.accept(ALICE)
    (suspect,) = (await ground.take(limit=1)).claims
    beside = await ground.take(limit=1)
    assert (people_of(beside.claims), beside.has_more) == (["alice"], True)
    blocked = await ground.take(limit=1)
    assert (blocked.claims, blocked.has_more) == ([], True)
    await ground.settle(suspect, Verdict.SENT)
    assert len((await ground.take(limit=1)).claims) == 1


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


# many devices


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


async def test_the_time_of_the_first_success_stands(ground: Ground) -> None:  # N1.10
    batch_id = await ground.accept(JIRO, channels=["push"])
    first = ground.now
    for claim in (await ground.take(PUSH)).claims:
        await ground.settle(claim, Verdict.SENT)
        ground.clock.move(SECOND)
    view = await ground.view(batch_id)
    assert (view.sent_at, view.retry_count) == (first, 0)


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
