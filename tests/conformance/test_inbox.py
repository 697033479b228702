"""The inbox: one entry a notification, numbers without a gap, counts that are always right."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import permutations

import pytest

from noroshi.domain.deliveries import Claim, Settled, Settlement, Verdict
from noroshi.domain.ids import BatchId
from noroshi.domain.inbox import EMPTY, Draft, InboxFilter, InboxHead, Owner
from noroshi.domain.instants import plus
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.states import Status
from tests.cast import ALICE, HANAKO, MALLORY, TARO, Person
from tests.conformance.company import beside
from tests.conformance.ground import ELSEWHERE, HERE, HOUR, LEASE, SECOND, Ground, kinds
from tests.conformance.stores import HandClock, Store

IN_APP = Lane("in_app", "acme", Priority.NORMAL)
HANAKOS = Owner(HERE, HANAKO.user_id)
EVERYTHING = InboxFilter(is_archived=None)
ARCHIVED = InboxFilter(is_archived=True)
UNREAD = InboxFilter(is_unread=True)


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, ALICE)
    await ground.write("welcome", "in_app")


def delivered(ground: Ground, claim: Claim, text: str = "hello") -> Settlement:
    draft = Draft(claim.recipient.user_id, claim.category, f'{{"body":"{text}"}}')
    return ground.settlement(claim, Verdict.DELIVERED)._replace(draft=draft, due_at=None)


async def deliver(ground: Ground, claims: Sequence[Claim], store: Store | None = None) -> Settled:
    settlements = [delivered(ground, claim, f"n{number}") for number, claim in enumerate(claims)]
    return await (store or ground.store).queue.settle(settlements)


async def tell(ground: Ground, *people: Person, times: int = 1) -> list[BatchId]:
    """People are told something in-app, each time in a commit of its own."""
    batches = []
    for _ in range(times):
        batches.append(await ground.accept(*people, channels=["in_app"]))
        await deliver(ground, (await ground.take(IN_APP, limit=500)).claims)
    return batches


async def numbers(ground: Ground, owner: Owner = HANAKOS, matching: InboxFilter = EVERYTHING) -> list[int]:
    return [entry.number for entry in await ground.store.inbox.page(owner, matching, None, 1000)]


async def head_of(ground: Ground, owner: Owner = HANAKOS) -> InboxHead:
    head = await ground.store.inbox.head(owner)
    assert head is not None
    return head


# what the settling commit keeps


async def test_the_entry_and_the_status_delivered_are_one_commit(ground: Ground) -> None:  # N5.4
    batch_id = await ground.accept(HANAKO, channels=["in_app"])
    ground.clock.move(SECOND)
    claim = await ground.claim(IN_APP)
    settled = await ground.store.queue.settle([delivered(ground, claim, "こんにちは")])
    (filled,) = settled.filled
    assert (filled.owner, filled.head) == (HANAKOS, InboxHead(last_number=1, unread=1))
    assert (settled.finished, filled.notification_ids) == (1, (claim.key.notification_id,))
    view = await ground.view(batch_id)
    assert (view.status, view.sent_at, kinds(view)) == (Status.DELIVERED, ground.now, ["queued", "delivered"])
    (entry,) = await ground.store.inbox.page(HANAKOS, EVERYTHING, None, 10)
    assert (entry.content, entry.at, entry.category) == ('{"body":"こんにちは"}', ground.now, "general")
    assert (entry.notification_id, entry.read_at) == (claim.key.notification_id, None)
    assert await ground.store.queue.unfinished() == 0


async def test_a_result_that_comes_twice_keeps_one_entry(ground: Ground) -> None:  # I3
    await ground.accept(HANAKO, channels=["in_app"])
    claim = await ground.claim(IN_APP)
    await deliver(ground, [claim])
    again = await deliver(ground, [claim])
    assert (again.finished, again.late, again.filled) == (0, (claim.key,), ())
    assert (await numbers(ground), await head_of(ground)) == ([1], InboxHead(1, 1))


async def test_a_claim_that_was_lost_keeps_nothing(ground: Ground) -> None:  # W9
    await ground.accept(HANAKO, channels=["in_app"])
    lost = await ground.claim(IN_APP)
    ground.clock.move(LEASE * 2)
    await ground.settle(lost, Verdict.RESEND, is_tried=False)
    await deliver(ground, [await ground.claim(IN_APP)])
    assert (await deliver(ground, [lost])).late == (lost.key,)
    assert await numbers(ground) == [1]


async def test_several_for_one_person_in_one_commit_are_numbered_in_their_order(ground: Ground) -> None:
    for _ in range(3):
        await ground.accept(HANAKO, TARO, channels=["in_app"])
        ground.clock.move(SECOND)
    settled = await deliver(ground, (await ground.take(IN_APP)).claims)
    assert {filled.head for filled in settled.filled} == {InboxHead(3, 3)}
    entries = await ground.store.inbox.after(HANAKOS, 0, 10)
    assert [entry.number for entry in entries] == [1, 2, 3]
    assert [entry.notification_id for entry in entries] == sorted(entry.notification_id for entry in entries)
    assert [entry.content for entry in entries] == [f'{{"body":"n{n}"}}' for n in (0, 2, 4)]


async def test_a_person_removed_meanwhile_leaves_a_dead_letter_and_no_entry(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO, TARO, channels=["in_app"])
    claims = (await ground.take(IN_APP)).claims
    await ground.store.people.remove_user(HERE, HANAKO.user_id)
    settled = await deliver(ground, claims)
    assert (settled.finished, settled.dead_letters, len(settled.filled)) == (2, 1, 1)
    assert {view.user_id: view.status for view in await ground.views(batch_id)} == {
        "hanako": Status.DEAD_LETTERED,
        "taro": Status.DELIVERED,
    }
    (letter,) = await ground.letters()
    assert letter.code == "NO_DEVICE"


async def test_processes_that_fill_one_inbox_at_once_leave_no_gap_and_no_twin(
    ground: Ground, clock: HandClock
) -> None:  # W6
    again = Counter[str]()
    people = [HANAKO, TARO, ALICE]
    for _ in range(20):
        await ground.accept(*people, channels=["in_app"])
    async with beside(ground.store, clock, again) as one, beside(ground.store, clock, again) as another:
        claims = (await ground.take(IN_APP, limit=500)).claims
        parts = [claims[n::10] for n in range(10)]
        settled = await asyncio.gather(
            *(deliver(ground, part[:: -1 if n % 2 else 1], (one, another)[n % 2]) for n, part in enumerate(parts))
        )
    for person in people:
        assert await numbers(ground, Owner(HERE, person.user_id)) == list(range(20, 0, -1))
    assert sum(len(filled.notification_ids) for one in settled for filled in one.filled) == 60
    assert not again


async def test_tenants_have_inboxes_of_their_own(ground: Ground) -> None:
    await ground.meet(HANAKO, MALLORY, tenant=ELSEWHERE)
    await ground.write("welcome", "in_app", tenant=ELSEWHERE)
    await ground.accept(HANAKO, channels=["in_app"], tenant=ELSEWHERE)
    await tell(ground, HANAKO, times=2)
    assert (await head_of(ground)).last_number == 2
    assert (await head_of(ground, Owner(ELSEWHERE, "hanako"))).last_number == 1
    assert await ground.store.inbox.head(Owner(HERE, "mallory")) is None


async def test_an_inbox_nobody_wrote_to_is_empty_and_one_of_nobody_is_none(ground: Ground) -> None:
    assert await head_of(ground) == EMPTY
    assert await ground.store.inbox.head(Owner(HERE, "nobody")) is None


# reading on


async def test_pages_go_from_the_newest_to_the_oldest(ground: Ground) -> None:  # N1.6
    await tell(ground, HANAKO, times=5)
    first = await ground.store.inbox.page(HANAKOS, EVERYTHING, None, 2)
    assert [entry.number for entry in first] == [5, 4]
    second = await ground.store.inbox.page(HANAKOS, EVERYTHING, 4, 10)
    assert [entry.number for entry in second] == [3, 2, 1]


async def test_news_of_many_inboxes_come_at_once(ground: Ground) -> None:
    await tell(ground, HANAKO, times=3)
    await tell(ground, TARO)
    taros = Owner(HERE, TARO.user_id)
    asked = [(HANAKOS, 1), (taros, 1), (Owner(HERE, ALICE.user_id), 0), (Owner(HERE, "nobody"), 0)]
    news = {one.owner: one for one in await ground.store.inbox.news(asked, 10)}
    assert set(news) == {HANAKOS, taros, Owner(HERE, ALICE.user_id)}
    assert [entry.number for entry in news[HANAKOS].entries] == [2, 3]
    assert (news[taros].entries, news[taros].head) == ((), InboxHead(1, 1))
    assert news[Owner(HERE, ALICE.user_id)].head == EMPTY


async def test_news_leaves_out_the_entries_of_whom_too_many_wait_for(ground: Ground) -> None:
    await tell(ground, HANAKO, times=4)
    (news,) = await ground.store.inbox.news([(HANAKOS, 1)], 2)
    assert (news.head.last_number, news.entries) == (4, ())


# marks


async def test_reading_opens_the_notification_in_the_same_commit(ground: Ground) -> None:  # N5.4
    batch_id, _ = await tell(ground, HANAKO, times=2)
    ground.clock.move(SECOND)
    marked = await ground.store.inbox.mark(HANAKOS, 1, is_archived=False)
    assert marked is not None
    assert (marked.read_at, marked.archived_at, marked.head) == (ground.now, None, InboxHead(2, 1, 1))
    view = await ground.view(batch_id)
    assert (view.status, kinds(view)) == (Status.OPENED, ["queued", "delivered", "opened"])
    assert await numbers(ground, matching=UNREAD) == [2]


async def test_a_second_reading_changes_nothing(ground: Ground) -> None:
    (batch_id,) = await tell(ground, HANAKO)
    first = await ground.store.inbox.mark(HANAKOS, 1, is_archived=False)
    ground.clock.move(HOUR)
    assert await ground.store.inbox.mark(HANAKOS, 1, is_archived=False) == first
    assert kinds(await ground.view(batch_id)) == ["queued", "delivered", "opened"]


async def test_what_is_archived_unread_no_longer_counts_and_is_not_opened(ground: Ground) -> None:
    (batch_id, _) = await tell(ground, HANAKO, times=2)
    marked = await ground.store.inbox.mark(HANAKOS, 1, is_archived=True)
    assert marked is not None
    assert (marked.read_at, marked.archived_at, marked.head.unread) == (None, ground.now, 1)
    assert (await ground.view(batch_id)).status is Status.DELIVERED
    assert (await numbers(ground, matching=InboxFilter()), await numbers(ground, matching=ARCHIVED)) == ([2], [1])
    read = await ground.store.inbox.mark(HANAKOS, 1, is_archived=False)
    assert read is not None and read.head.unread == 1


async def test_what_is_not_there_cannot_be_marked(ground: Ground) -> None:
    await tell(ground, HANAKO)
    for owner, number in ((HANAKOS, 2), (HANAKOS, 0), (Owner(HERE, TARO.user_id), 1), (Owner(ELSEWHERE, "hanako"), 1)):
        assert await ground.store.inbox.mark(owner, number, is_archived=False) is None


async def test_all_are_read_in_pages_up_to_the_one_that_was_seen(ground: Ground) -> None:
    await tell(ground, HANAKO, times=6)
    await ground.store.inbox.mark(HANAKOS, 2, is_archived=True)
    pages = [await ground.store.inbox.read_all(HANAKOS, 5, 3) for _ in range(3)]
    assert pages == [3, 1, 0]
    assert await numbers(ground, matching=UNREAD) == [6]
    assert (await head_of(ground)).unread == 1


async def test_marks_doubled_and_in_any_order_end_the_same(ground: Ground) -> None:  # F20, I10
    marks = [(1, False), (1, True), (2, False), (3, True)]
    for round_, order in enumerate(permutations(marks)):
        batches = await tell(ground, HANAKO, times=3)
        ground.clock.move(HOUR * 24)
        for number, is_archived in (*order, *order[::-1]):
            marked = await ground.store.inbox.mark(HANAKOS, round_ * 3 + number, is_archived=is_archived)
            assert marked is not None
        statuses = [(await ground.view(batch_id)).status for batch_id in batches]
        assert statuses == [Status.OPENED, Status.OPENED, Status.DELIVERED]
        assert (await head_of(ground)).unread == 0


async def test_the_count_is_right_whatever_is_done_in_whatever_order(ground: Ground, clock: HandClock) -> None:
    dice = random.Random(4)
    async with beside(ground.store, clock) as other:
        for _ in range(12):
            await tell(ground, HANAKO, times=dice.randrange(3))
            last = (await head_of(ground)).last_number + 1
            await asyncio.gather(
                *(
                    dice.choice((ground.store, other)).inbox.mark(
                        HANAKOS, dice.randrange(1, last + 1), is_archived=dice.random() < 0.4
                    )
                    for _ in range(4)
                )
            )
            if dice.random() < 0.2:
                await other.inbox.read_all(HANAKOS, last // 2, 5)
            assert (await head_of(ground)).unread == len(await numbers(ground, matching=UNREAD))


# the end


async def test_entries_are_forgotten_with_their_time_and_the_numbers_go_on(ground: Ground) -> None:  # N11.1
    await tell(ground, HANAKO, TARO, times=3)
    await ground.store.inbox.mark(HANAKOS, 1, is_archived=False)
    ground.clock.move(timedelta(days=3))
    await tell(ground, HANAKO)
    boundary = plus(ground.now, -HOUR)
    assert [await ground.store.inbox.forget_before(boundary, 4) for _ in range(3)] == [4, 2, 0]
    assert (await numbers(ground), (await head_of(ground)).unread) == ([4], 1)
    assert (await head_of(ground, Owner(HERE, TARO.user_id))).unread == 0


async def test_who_is_removed_has_no_inbox_and_who_comes_back_no_old_number(ground: Ground) -> None:
    await tell(ground, HANAKO, times=2)
    assert await ground.store.people.remove_user(HERE, HANAKO.user_id)
    assert await ground.store.inbox.head(HANAKOS) is None
    assert await numbers(ground) == []
    await ground.meet(HANAKO)
    await tell(ground, HANAKO)
    assert (await numbers(ground), (await head_of(ground)).unread) == ([3], 1)


# tickets


async def test_a_ticket_is_good_once_over_all_processes(ground: Ground, clock: HandClock) -> None:
    expires_at = plus(ground.now, SECOND)
    async with beside(ground.store, clock) as other:
        for number in range(10):
            both = (one.tickets.spend(HERE, bytes([number]), expires_at) for one in (ground.store, other))
            assert sorted(await asyncio.gather(*both)) == [False, True]
    assert await ground.store.tickets.spend(ELSEWHERE, bytes(1), expires_at)
