"""History: every notification with the trail that explains it, paged, kept for its time and then forgotten (N11)."""

from datetime import timedelta

import pytest

from noroshi.domain.deliveries import Verdict
from noroshi.domain.ids import NotificationId
from noroshi.domain.instants import Instant, plus
from noroshi.domain.people import Preferences
from noroshi.domain.records import NotificationView
from noroshi.domain.states import Status
from tests.cast import HANAKO, JIRO, MALLORY, STRANGER, TARO
from tests.conformance.ground import ELSEWHERE, HERE, MINUTE, PUSH, SECOND, Ground, kinds

DAY = timedelta(days=1)
KEPT = timedelta(days=90)


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, JIRO)
    await ground.write("welcome", "email", "push")


async def send(ground: Ground) -> None:
    for claim in (await ground.take()).claims:
        await ground.settle(claim, Verdict.SENT)


async def test_a_batch_shows_each_notification_with_its_template_and_trail(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO, TARO, channels=["email", "push"])
    began = ground.now
    ground.clock.move(SECOND)
    await send(ground)
    views = {(v.user_id, v.channel): v for v in await ground.views(batch_id)}
    assert {key: view.status for key, view in views.items()} == {
        ("hanako", "email"): Status.SENT,
        ("hanako", "push"): Status.QUEUED,
        ("taro", "email"): Status.SENT,
        ("taro", "push"): Status.SUPPRESSED,
    }
    sent, no_device = views["hanako", "email"], views["taro", "push"]
    assert (sent.batch_id, sent.decided_at, sent.sent_at) == (batch_id, began, ground.now)
    assert (sent.template_id, sent.template_version, sent.template_locale) == ("welcome", 1, "en")
    assert [(entry.at, entry.kind) for entry in sent.trail] == [(began, "queued"), (ground.now, "sent")]
    assert (no_device.reason, no_device.template_id) == ("no_device", None)
    assert no_device.trail[0].detail == {"code": "no_device"}


async def test_a_batch_is_read_in_pages_in_the_order_of_ids(ground: Ground) -> None:
    batch_id = await ground.accept(*await ground.crowd(10))
    await ground.accept(HANAKO)  # a neighbour that must not slip in
    seen: list[NotificationId] = []
    after: NotificationId | None = None
    while page := await ground.store.history.of_batch(HERE, batch_id, after, 3):
        assert len(page) <= 3
        seen += [view.notification_id for view in page]
        after = seen[-1]
    assert len(seen) == 10
    assert seen == sorted(set(seen))


async def test_a_persons_history_is_newest_first_and_paged(ground: Ground) -> None:  # N11.1
    for _ in range(7):
        await ground.accept(HANAKO, TARO, channels=["push", "email"])
        ground.clock.move(MINUTE)
    seen: list[NotificationView] = []
    before: tuple[Instant, NotificationId] | None = None
    while page := await ground.store.history.of_user(HERE, "hanako", before, 4):
        assert len(page) <= 4
        seen += page
        before = seen[-1].decided_at, seen[-1].notification_id
    assert {view.user_id for view in seen} == {"hanako"}
    places = [(view.decided_at, view.notification_id) for view in seen]
    assert len(places) == len(set(places)) == 14
    assert places == sorted(places, reverse=True)


async def test_what_was_not_sent_is_in_the_history_too(ground: Ground) -> None:
    await ground.wish(HANAKO, Preferences(channels={"email": False}))
    await ground.accept(HANAKO)
    (view,) = await ground.store.history.of_user(HERE, "hanako", None, 10)
    assert (view.status, view.reason, kinds(view)) == (Status.SUPPRESSED, "channel_off", ["suppressed"])


async def test_the_history_outlives_the_person(ground: Ground) -> None:
    await ground.accept(HANAKO)
    assert await ground.store.history.has_user(HERE, "hanako")
    assert not await ground.store.history.has_user(HERE, STRANGER)
    assert await ground.store.history.has_user(HERE, "taro")
    for person in ("hanako", "taro"):
        await ground.store.people.remove_user(HERE, person)
    assert await ground.store.history.has_user(HERE, "hanako")
    assert not await ground.store.history.has_user(HERE, "taro")


async def test_what_waits_shows_until_when(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO)
    assert (await ground.view(batch_id)).due_at == ground.now
    claim = await ground.claim()
    assert (await ground.view(batch_id)).due_at is None
    await ground.settle(claim, Verdict.RETRY, after=MINUTE, code="BUSY")
    assert (await ground.view(batch_id)).due_at == plus(ground.now, MINUTE)


async def test_finished_ones_are_forgotten_after_their_time_with_all_that_belongs_to_them(
    ground: Ground,
) -> None:  # N11.1
    old = await ground.accept(HANAKO, TARO)
    await send(ground)
    dead = await ground.accept(JIRO, channels=["push"])
    for claim in (await ground.take(PUSH)).claims:
        await ground.settle(claim, Verdict.DEAD, code="REJECTED")
    ground.clock.move(DAY)
    young = await ground.accept(HANAKO)
    await send(ground)
    moment = ground.now
    assert await ground.store.history.forget_before(plus(moment, -DAY), 100) == 0
    assert await ground.store.history.forget_before(moment, 100) == 3 + 2
    for batch_id in (old, dead):
        assert await ground.views(batch_id) == []
        assert await ground.store.batches.find(HERE, batch_id) is None
        assert await ground.store.batches.counts(HERE, batch_id) is None
    assert await ground.letters() == []
    assert len(await ground.views(young)) == 1
    assert len(await ground.store.history.of_user(HERE, "hanako", None, 10)) == 1
    assert await ground.store.history.forget_before(moment, 100) == 0


async def test_forgetting_goes_in_pages(ground: Ground) -> None:  # N11.1
    batch_id = await ground.accept(*await ground.crowd(5))
    await send(ground)
    ground.clock.move(KEPT)
    went = 0
    while gone := await ground.store.history.forget_before(ground.now, 2):
        went += gone
    assert went == 5 + 1
    assert await ground.views(batch_id) == []
    assert await ground.store.batches.find(HERE, batch_id) is None


async def test_nothing_unfinished_is_ever_forgotten(ground: Ground) -> None:  # N4.6
    waiting = await ground.accept(HANAKO)
    scheduled = ground.batch("taro", after=KEPT * 3)
    await ground.keep(scheduled)
    ground.clock.move(KEPT * 2)
    assert await ground.store.history.forget_before(ground.now, 100) == 0
    assert (await ground.claim()).recipient.user_id == "hanako"
    assert await ground.store.batches.find(HERE, waiting) is not None
    assert await ground.store.batches.find(HERE, scheduled.head.batch_id) is not None


async def test_what_is_unfinished_is_sent_though_others_of_its_day_are_forgotten(ground: Ground) -> None:  # N4.6
    finished = await ground.accept(TARO)
    await send(ground)
    waiting = await ground.accept(HANAKO)
    ground.clock.move(KEPT * 2)
    await ground.store.history.forget_before(ground.now, 100)
    await send(ground)
    assert (await ground.view(waiting)).status is Status.SENT
    while await ground.store.history.forget_before(ground.now, 100):
        pass
    for batch_id in (finished, waiting):
        assert await ground.store.batches.find(HERE, batch_id) is None


async def test_a_schedule_that_outlives_the_history_is_still_kept_to(ground: Ground) -> None:  # N4.6
    scheduled = ground.batch("taro", after=KEPT * 3)
    await ground.keep(scheduled)
    await ground.accept(HANAKO)
    await send(ground)
    ground.clock.move(KEPT * 3)
    await ground.store.history.make_ready()
    await ground.store.history.forget_before(ground.now, 100)
    await ground.keep()
    assert (await ground.claim()).recipient.user_id == "taro"


async def test_whom_a_batch_rejected_is_forgotten_with_it(ground: Ground) -> None:
    new = ground.batch(STRANGER)
    await ground.keep(new)
    ground.clock.move(DAY)
    assert await ground.store.history.forget_before(ground.now, 100) == 1
    assert await ground.store.batches.rejections(HERE, new.head.batch_id, -1, 10) == []


async def test_another_tenant_sees_none_of_it(ground: Ground) -> None:
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    batch_id = await ground.accept(HANAKO)
    assert await ground.views(batch_id, ELSEWHERE) == []
    assert await ground.store.history.of_user(ELSEWHERE, "hanako", None, 10) == []
    assert not await ground.store.history.has_user(ELSEWHERE, "hanako")
    assert not await ground.store.history.has_user(HERE, "mallory")
