"""Dead letters: listed, inspected, replayed and discarded, singly and by filter (N6.3)."""

import pytest

from noroshi.domain.deliveries import Verdict
from noroshi.domain.ids import BatchId, show
from noroshi.domain.priorities import Priority
from noroshi.domain.records import DeadLetter, DeadLetterFilter
from noroshi.domain.states import Status
from tests.cast import HANAKO, JIRO, MALLORY, TARO
from tests.conformance.ground import ELSEWHERE, EMAIL, HERE, MINUTE, PUSH, SECOND, Ground, kinds

ANY = DeadLetterFilter()


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, JIRO)
    await ground.write("welcome", "email", "push")


async def kill(ground: Ground, code: str = "REJECTED", *, is_gone: bool = False) -> None:
    """Everything that waits ends dead."""
    for lane in (EMAIL, PUSH):
        for claim in (await ground.take(lane)).claims:
            await ground.settle(claim, Verdict.DEAD, code=code, is_gone=is_gone)


async def dead(ground: Ground, code: str = "REJECTED") -> tuple[BatchId, DeadLetter]:
    batch_id = await ground.accept(HANAKO)
    await kill(ground, code)
    return batch_id, (await ground.letters())[0]


async def test_a_dead_letter_tells_what_ended_and_why(ground: Ground) -> None:  # N6.3
    batch_id = await ground.accept(HANAKO, category="social")
    ground.clock.move(SECOND)
    await ground.settle(await ground.claim(), Verdict.RETRY, code="BUSY")
    await kill(ground, "SERVER_ERROR")
    (letter,) = await ground.letters()
    assert (letter.user_id, letter.channel, letter.priority, letter.category) == ("hanako", "email", "normal", "social")
    assert (letter.code, letter.error, letter.tries, letter.at) == ("SERVER_ERROR", "as told", 2, ground.now)
    assert letter.notification_id == (await ground.view(batch_id)).notification_id
    inspected = await ground.store.dead_letters.get(HERE, letter.dead_letter_id)
    assert inspected is not None
    assert [entry.kind for entry in inspected.trail] == ["failed", "dead_lettered"]


async def test_dead_letters_are_listed_newest_first_and_paged(ground: Ground) -> None:
    await ground.accept(*await ground.crowd(7))
    await kill(ground)
    seen: list[int] = []
    before: int | None = None
    while page := await ground.store.dead_letters.list_dead_letters(HERE, ANY, before, 3):
        assert len(page) <= 3
        seen += [letter.dead_letter_id for letter in page]
        before = seen[-1]
    assert len(seen) == 7
    assert seen == sorted(set(seen), reverse=True)


async def test_every_filter_narrows_and_all_must_match(ground: Ground) -> None:
    first = await ground.accept(HANAKO, category="social")
    await kill(ground, "ONE")
    await ground.accept(TARO)
    await ground.accept(JIRO, channels=["push"])
    await kill(ground, "TWO")
    assert len(await ground.letters()) == 5
    assert len(await ground.letters(channel="push")) == 3
    assert len(await ground.letters(code="TWO")) == 4
    assert len(await ground.letters(category="social")) == 1
    assert len(await ground.letters(user_id="taro")) == 1
    assert len(await ground.letters(batch_id=show(first))) == 1
    assert len(await ground.letters(code="TWO", channel="email")) == 1
    assert await ground.letters(code="ONE", user_id="taro") == []
    assert await ground.letters(batch_id="no id at all") == []


async def test_a_channel_filter_is_no_pattern(ground: Ground) -> None:
    await ground.accept(HANAKO)
    await kill(ground)
    assert await ground.letters(channel="%") == []
    assert await ground.letters(channel="emai_") == []


async def test_a_replay_queues_again_with_fresh_tries(ground: Ground) -> None:  # N6.3, N5.4
    batch_id = await ground.accept(HANAKO, expires_after=MINUTE)
    await ground.settle(await ground.claim(), Verdict.RETRY, code="BUSY")
    await kill(ground)
    ground.clock.move(2 * MINUTE)
    (letter,) = await ground.letters()
    assert await ground.store.dead_letters.replay(HERE, ANY, letter.dead_letter_id, "operator", 1) == (1, 0)
    assert await ground.letters() == []
    view = await ground.view(batch_id)
    assert (view.status, view.reason) == (Status.QUEUED, None)
    told = {"by": "operator", "endpoint": letter.endpoint_id}
    assert (view.trail[-1].kind, view.trail[-1].detail) == ("replayed", told)
    claim = await ground.claim()
    assert (claim.tries, claim.claims, claim.address) == (0, 1, HANAKO.email)
    assert (claim.expires_at, claim.wanted_at) == (None, ground.now)
    await ground.settle(claim, Verdict.SENT)
    assert (await ground.view(batch_id)).status is Status.SENT


async def test_of_many_letters_only_the_one_that_is_named_is_shown_replayed_or_discarded(
    ground: Ground,
) -> None:  # N6.3
    await ground.accept(*await ground.crowd(5))
    await kill(ground)
    letters, ids = ground.store.dead_letters, [letter.dead_letter_id for letter in await ground.letters()]
    shown = await letters.get(HERE, ids[3])
    assert shown is not None
    assert shown.dead_letter_id == ids[3]
    assert await letters.replay(HERE, ANY, ids[1], "operator", 1) == (1, 0)
    assert await letters.discard(HERE, ANY, ids[3], "operator", 1) == 1
    assert [letter.dead_letter_id for letter in await ground.letters()] == [ids[0], ids[2], ids[4]]


async def test_a_replay_by_filter_takes_what_matches_in_pages(ground: Ground) -> None:  # N6.3
    await ground.accept(*await ground.crowd(5))
    await kill(ground, "ONE")
    await ground.accept(TARO)
    await kill(ground, "TWO")
    matching = DeadLetterFilter(code="ONE")
    pages = [await ground.store.dead_letters.replay(HERE, matching, None, "operator", 2) for _ in range(4)]
    assert pages == [(2, 0), (2, 0), (1, 0), (0, 0)]
    assert [letter.code for letter in await ground.letters()] == ["TWO"]
    assert await ground.store.queue.unfinished() == 5


async def test_what_can_have_no_delivery_is_left_and_hides_nothing_behind_it(ground: Ground) -> None:  # N6.3
    await ground.accept(HANAKO)
    await kill(ground)
    ground.clock.move(SECOND)
    hopeless = await ground.accept(*await ground.crowd(4), template_id="never-written")
    assert {view.status for view in await ground.views(hopeless)} == {Status.DEAD_LETTERED}
    assert await ground.store.dead_letters.replay(HERE, ANY, None, "operator", 2) == (1, 2)
    assert await ground.store.dead_letters.replay(HERE, ANY, None, "operator", 9) == (0, 4)
    assert {letter.code for letter in await ground.letters()} == {"template_missing"}
    assert {view.status for view in await ground.views(hopeless)} == {Status.DEAD_LETTERED}


async def test_one_hopeless_letter_alone_is_left_untouched(ground: Ground) -> None:
    await ground.accept(HANAKO, template_id="never-written")
    (letter,) = await ground.letters()
    assert letter.endpoint_id == 0
    assert await ground.store.dead_letters.replay(HERE, ANY, letter.dead_letter_id, "operator", 1) == (0, 1)
    assert len(await ground.letters()) == 1


async def test_replaying_one_device_of_a_sent_push_leaves_it_sent(ground: Ground) -> None:  # N1.10
    batch_id = await ground.accept(JIRO, channels=["push"])
    sent, *others = (await ground.take(PUSH)).claims
    await ground.settle(sent, Verdict.SENT)
    for claim in others:
        await ground.settle(claim, Verdict.DEAD, code="REJECTED")
    assert await ground.store.dead_letters.replay(HERE, ANY, None, "operator", 10) == (2, 0)
    assert (await ground.view(batch_id)).status is Status.SENT
    assert len((await ground.take(PUSH)).claims) == 2


@pytest.mark.parametrize("verdict", [Verdict.SUPPRESSED, Verdict.CANCELLED])
async def test_a_dead_letter_of_one_device_outweighs_how_the_others_ended(ground: Ground, verdict: Verdict) -> None:
    # N6.3: a person may still replay it
    batch_id = await ground.accept(JIRO, channels=["push"])
    first, *others = (await ground.take(PUSH)).claims
    await ground.settle(first, Verdict.DEAD, code="GONE")
    for claim in others:
        await ground.settle(claim, verdict, is_tried=False)
    view = await ground.view(batch_id)
    assert (view.status, view.reason) == (Status.DEAD_LETTERED, "GONE")
    assert await ground.store.dead_letters.replay(HERE, ANY, None, "op", 10) == (1, 0)
    await ground.settle(await ground.claim(PUSH), Verdict.SENT)
    assert (await ground.view(batch_id)).status is Status.SENT


async def test_a_dead_letter_of_one_device_outweighs_a_withdrawal_of_the_others(ground: Ground) -> None:  # N6.3
    batch_id = await ground.accept(JIRO, channels=["push"])
    first, *others = (await ground.take(PUSH)).claims
    await ground.settle(first, Verdict.DEAD, code="GONE")
    for claim in others:
        await ground.settle(claim, Verdict.RELEASE, is_tried=False)
    assert await ground.store.batches.begin_cancel(HERE, batch_id)
    while await ground.store.batches.cancel_page(10):
        pass
    view = await ground.view(batch_id)
    assert (view.status, view.reason) == (Status.DEAD_LETTERED, "GONE")


async def test_what_dies_again_is_a_dead_letter_again(ground: Ground) -> None:
    batch_id, first = await dead(ground)
    await ground.store.dead_letters.replay(HERE, ANY, None, "operator", 10)
    await kill(ground, "AGAIN")
    (second,) = await ground.letters()
    assert (second.code, second.notification_id) == ("AGAIN", first.notification_id)
    assert second.dead_letter_id > first.dead_letter_id
    assert kinds(await ground.view(batch_id)) == ["queued", "dead_lettered", "replayed", "dead_lettered"]


async def test_a_discarded_letter_is_forgotten_and_its_notification_stays_dead(ground: Ground) -> None:  # N6.3
    batch_id, letter = await dead(ground)
    assert await ground.store.dead_letters.discard(HERE, ANY, letter.dead_letter_id, "operator", 1) == 1
    assert await ground.store.dead_letters.discard(HERE, ANY, letter.dead_letter_id, "operator", 1) == 0
    assert await ground.store.dead_letters.replay(HERE, ANY, letter.dead_letter_id, "operator", 1) == (0, 0)
    assert await ground.store.dead_letters.get(HERE, letter.dead_letter_id) is None
    view = await ground.view(batch_id)
    assert (view.status, view.trail[-1].kind, view.trail[-1].detail) == (
        Status.DEAD_LETTERED,
        "discarded",
        {"by": "operator", "endpoint": letter.endpoint_id},
    )


async def test_discarding_by_filter_goes_in_pages(ground: Ground) -> None:  # N6.3
    await ground.accept(*await ground.crowd(5))
    await kill(ground, "ONE")
    await ground.accept(TARO)
    await kill(ground, "TWO")
    matching = DeadLetterFilter(code="ONE")
    pages = [await ground.store.dead_letters.discard(HERE, matching, None, "operator", 2) for _ in range(4)]
    assert pages == [2, 2, 1, 0]
    assert [letter.code for letter in await ground.letters()] == ["TWO"]


async def test_a_dead_letter_keeps_its_priority(ground: Ground) -> None:
    await ground.accept(HANAKO, priority=Priority.HIGH)
    await ground.settle(await ground.claim(EMAIL._replace(priority=Priority.HIGH)), Verdict.DEAD, code="REJECTED")
    (letter,) = await ground.letters()
    assert letter.priority == "high"


async def test_another_tenant_neither_sees_nor_touches_a_dead_letter(ground: Ground) -> None:
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    _, letter = await dead(ground)
    letters, number = ground.store.dead_letters, letter.dead_letter_id
    assert await ground.letters(ELSEWHERE) == []
    assert await letters.get(ELSEWHERE, number) is None
    assert await letters.replay(ELSEWHERE, ANY, number, "thief", 1) == (0, 0)
    assert await letters.replay(ELSEWHERE, ANY, None, "thief", 10) == (0, 0)
    assert await letters.discard(ELSEWHERE, ANY, number, "thief", 1) == 0
    assert await letters.discard(ELSEWHERE, ANY, None, "thief", 10) == 0
    assert await ground.letters() == [letter]
