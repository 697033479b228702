"""Lists for people who look around: batches, people, templates and alerts, in pages."""

from noroshi.domain.batches import BatchSummary
from noroshi.domain.deliveries import Verdict
from noroshi.domain.ids import BatchId, NotificationId, batch_of, last_id_of
from noroshi.domain.instants import Instant
from noroshi.domain.people import UserSummary
from noroshi.domain.records import Alert
from noroshi.domain.states import Status
from noroshi.domain.templates import TemplateSummary
from tests.cast import HANAKO, JIRO, MALLORY, SAKURA, TARO, Person
from tests.conformance.ground import ELSEWHERE, HERE, MINUTE, SECOND, Ground, kinds


async def batches(ground: Ground, limit: int = 100, after: BatchId | None = None) -> list[BatchSummary]:
    """Every page, one after the other."""
    seen: list[BatchSummary] = []
    before: BatchId | None = None
    while page := await ground.store.history.list_batches(HERE, before, after, limit):
        assert len(page) <= limit
        seen += page
        before = page[-1].head.batch_id
    return seen


async def test_batches_are_listed_newest_first_and_paged(ground: Ground) -> None:  # N16.3
    await ground.meet(HANAKO)
    await ground.write()
    kept: list[BatchId] = []
    for _ in range(5):
        kept.append(await ground.accept(HANAKO))
        ground.clock.move(MINUTE)
    listed = await batches(ground, limit=2)
    assert [batch.head.batch_id for batch in listed] == kept[::-1]
    assert {(b.head.template_id, b.head.channels, b.progress.total, b.cancelled_at) for b in listed} == {
        ("welcome", ("email",), 1, None)
    }


async def test_only_batches_after_one_that_was_seen_are_listed(ground: Ground) -> None:
    await ground.meet(HANAKO)
    await ground.write()
    kept: list[BatchId] = []
    for _ in range(4):
        kept.append(await ground.accept(HANAKO))
        ground.clock.move(SECOND)
    assert [b.head.batch_id for b in await batches(ground, limit=1, after=kept[1])] == [kept[3], kept[2]]
    assert await batches(ground, after=kept[3]) == []


async def test_a_small_batch_is_listed_with_its_counts_and_a_large_one_without(ground: Ground) -> None:
    await ground.meet(HANAKO, SAKURA)
    await ground.write("welcome", "email", "push")
    small = await ground.accept(HANAKO, SAKURA, channels=["email", "push"])
    await ground.settle(await ground.claim(), Verdict.SENT)
    ground.clock.move(SECOND)
    large = await ground.accept(*await ground.crowd(101))
    by_id = {batch.head.batch_id: batch for batch in await batches(ground)}
    counts = by_id[small].counts
    assert counts is not None
    assert counts == await ground.store.batches.counts(HERE, small)
    assert counts.by_channel[("email", Status.SENT)] == 1
    assert by_id[large].counts is None


async def test_a_withdrawn_batch_is_listed_as_such(ground: Ground) -> None:
    await ground.meet(HANAKO)
    await ground.write()
    batch_id = await ground.accept(HANAKO)
    await ground.store.batches.begin_cancel(HERE, batch_id)
    (batch,) = await batches(ground)
    assert batch.cancelled_at == ground.now
    assert batch.counts is not None
    assert batch.counts.is_cancelled


async def test_one_notification_is_found_by_its_id_with_its_trail(ground: Ground) -> None:  # N16.3
    await ground.meet(HANAKO, TARO)
    await ground.write()
    batch_id = await ground.accept(HANAKO, TARO)
    first, second = await ground.views(batch_id)
    assert await ground.store.history.find(HERE, second.notification_id) == second
    assert kinds(first) == ["queued"]
    for strange in (NotificationId(batch_id), last_id_of(batch_id), NotificationId(bytes(16))):
        assert await ground.store.history.find(HERE, strange) is None
    assert await ground.store.history.find(ELSEWHERE, first.notification_id) is None
    assert batch_of(first.notification_id) == batch_id


async def people(ground: Ground, prefix: str = "", limit: int = 100) -> list[UserSummary]:
    seen: list[UserSummary] = []
    after: str | None = None
    while page := await ground.store.people.list_users(HERE, prefix, after, limit):
        assert len(page) <= limit
        seen += page
        after = page[-1].user_id
    return seen


async def test_people_are_listed_by_id_without_addresses(ground: Ground) -> None:  # N17.2
    await ground.meet(TARO, HANAKO, JIRO, SAKURA)
    listed = await people(ground, limit=3)
    assert {user.user_id: user.reachable_by for user in listed} == {
        "hanako": ("email", "phone", "push"),
        "jiro": ("push",),
        "sakura": (),
        "taro": ("email",),
    }
    assert [user.user_id for user in listed] == ["hanako", "jiro", "sakura", "taro"]
    assert (listed[0].name, listed[0].locale, listed[0].timezone) == ("Hanako", "ja", "Asia/Tokyo")
    assert "hanako@example.com" not in repr(listed)


async def test_people_are_found_by_the_beginning_of_their_id(ground: Ground) -> None:
    ids = ["a", "shop", "shop-1", "shop-10", "shop-\u72fc", "shop-\U0010ffff", "shoq", "SHOP-1", "t"]
    await ground.meet(*(Person(user_id, "Someone") for user_id in ids))
    found = [user.user_id for user in await people(ground, "shop", limit=2)]
    assert found == ["shop", "shop-1", "shop-10", "shop-\u72fc", "shop-\U0010ffff"]
    assert await people(ground, "nobody") == []


async def test_templates_are_listed_by_id_with_what_is_active(ground: Ground) -> None:  # N2.1
    first = ground.now
    await ground.write("welcome", "email", "push")
    await ground.write("alarm", "sms", locale="ja")
    ground.clock.move(MINUTE)
    await ground.write("welcome", "email", locale="ja")
    await ground.write("welcome", "email")
    seen: list[TemplateSummary] = []
    after: str | None = None
    while page := await ground.store.templates.list_templates(HERE, after, 1):
        seen += page
        after = page[-1].template_id
    assert seen == [
        TemplateSummary("alarm", ("sms",), ("ja",), 1, first, first),
        TemplateSummary("welcome", ("email", "push"), ("en", "ja"), 2, first, ground.now),
    ]


async def test_alerts_are_listed_by_when_they_were_last_raised(ground: Ground) -> None:
    first, second = Alert("dead_letters", "warning", "email"), Alert("account_misconfigured", "warning", "acme:401")
    await ground.store.queue.settle((), [first])
    began = ground.now
    ground.clock.move(MINUTE)
    await ground.store.queue.settle((), [second])
    assert [alert.kind for alert in await ground.store.alerts.list_alerts(HERE, None, 10)] == [second.kind, first.kind]
    ground.clock.move(MINUTE)
    await ground.store.queue.settle((), [first])
    (latest,) = await ground.store.alerts.list_alerts(HERE, None, 1)
    assert (latest.subject, latest.since, latest.last_at, latest.count) == ("email", began, ground.now, 2)
    place = (Instant(latest.last_at), latest.kind, latest.subject)
    assert [alert.kind for alert in await ground.store.alerts.list_alerts(HERE, place, 10)] == [second.kind]


async def test_another_tenant_sees_none_of_it(ground: Ground) -> None:  # DESIGN 5.10
    await ground.meet(HANAKO)
    await ground.write()
    await ground.accept(HANAKO)
    await ground.store.queue.settle((), [Alert("dead_letters", "warning", "email")])
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    store = ground.store
    assert await store.history.list_batches(ELSEWHERE, None, None, 10) == []
    assert [user.user_id for user in await store.people.list_users(ELSEWHERE, "", None, 10)] == ["mallory"]
    assert await store.templates.list_templates(ELSEWHERE, None, 10) == []
    assert await store.alerts.list_alerts(ELSEWHERE, None, 10) == []
