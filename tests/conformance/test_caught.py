"""What the catcher kept: newest first, addresses masked, the latest only."""

import msgspec
import pytest

from noroshi.domain.attachments import Attachment
from noroshi.domain.deliveries import Attempt, DeliveryKey, Recipient
from noroshi.domain.ids import EndpointId, TenantId, new_batch_id, notification_id
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content
from tests.cast import HANAKO, MALLORY, TARO, Person
from tests.conformance.ground import ELSEWHERE, HERE, SECOND, Ground

KEPT = 10_000


def attempt(person: Person, channel: str = "email", tenant: TenantId = HERE, body: str = "Hello") -> Attempt:
    return Attempt(
        DeliveryKey(tenant, notification_id(new_batch_id(1, 1), 0, 0), EndpointId(1)),
        Lane(channel, "catcher", Priority.NORMAL),
        "general",
        Recipient(person.user_id, person.name, None, None, {}),
        person.email or "",
        Content(body=body, subject="Subject", title="Title", metadata={"data": {"a": 1}}),
        1,
        None,
    )


async def bodies(ground: Ground, channel: str | None = None, user_id: str | None = None) -> list[str]:
    return [m.body for m in await ground.store.caught.list_caught(HERE, channel, user_id, None, 100)]


async def test_what_was_caught_is_shown_as_the_recipient_would_have_got_it(ground: Ground) -> None:
    await ground.store.caught.keep_caught([attempt(HANAKO)])
    (message,) = await ground.store.caught.list_caught(HERE, None, None, None, 10)
    assert (message.subject, message.title, message.body) == ("Subject", "Title", "Hello")
    assert (message.channel, message.user_id, message.metadata) == ("email", "hanako", {"data": {"a": 1}})
    assert message.caught_at == ground.now


@pytest.mark.parametrize("address", ["hanako@example.com", "+819012345678", "token-of-hanakos-phone"])
async def test_an_address_is_masked(ground: Ground, address: str) -> None:  # N17.2
    await ground.store.caught.keep_caught([attempt(Person("hanako", "Hanako", email=address))])
    (message,) = await ground.store.caught.list_caught(HERE, None, None, None, 10)
    assert message.address
    assert address not in message.address
    assert address.partition("@")[0] not in message.address


async def test_messages_are_newest_first_and_filtered(ground: Ground) -> None:
    await ground.store.caught.keep_caught([attempt(HANAKO, body="1"), attempt(TARO, body="2")])
    ground.clock.move(SECOND)
    await ground.store.caught.keep_caught([attempt(HANAKO, "push", body="3")])
    assert await bodies(ground) == ["3", "2", "1"]
    assert await bodies(ground, channel="email") == ["2", "1"]
    assert await bodies(ground, user_id="hanako") == ["3", "1"]
    assert await bodies(ground, "push", "taro") == []


async def test_messages_come_in_pages(ground: Ground) -> None:
    await ground.store.caught.keep_caught([attempt(HANAKO, body=str(n)) for n in range(5)])
    first = await ground.store.caught.list_caught(HERE, None, None, None, 3)
    second = await ground.store.caught.list_caught(HERE, None, None, first[-1].caught_id, 3)
    assert [m.body for m in first + second] == ["4", "3", "2", "1", "0"]


async def test_only_what_was_caught_after_another_is_asked_for(ground: Ground) -> None:
    await ground.store.caught.keep_caught([attempt(HANAKO, body=str(n)) for n in range(3)])
    oldest = (await ground.store.caught.list_caught(HERE, None, None, None, 10))[-1]
    newer = await ground.store.caught.list_caught(HERE, None, None, None, 10, after=oldest.caught_id)
    assert [message.body for message in newer] == ["2", "1"]
    assert await ground.store.caught.list_caught(HERE, None, None, None, 10, after=newer[0].caught_id) == []


async def test_only_the_latest_are_kept_of_each_tenant(ground: Ground) -> None:
    await ground.store.caught.keep_caught([attempt(MALLORY, tenant=ELSEWHERE, body="theirs")])
    await ground.store.caught.keep_caught([attempt(HANAKO, body="first")])
    for _ in range(KEPT // 1000):
        await ground.store.caught.keep_caught([attempt(TARO)] * 1000)
    assert await bodies(ground, user_id="hanako") == []
    (theirs,) = await ground.store.caught.list_caught(ELSEWHERE, None, None, None, 10)
    assert theirs.body == "theirs"


async def test_what_was_attached_is_told_with_the_message(ground: Ground) -> None:  # N1.4
    files = (Attachment("請求書.pdf", "application/pdf", 5), Attachment("logo.png", "image/png", 7, "logo"))
    with_files = msgspec.structs.replace(attempt(HANAKO), attachments=files)
    await ground.store.caught.keep_caught([with_files, attempt(TARO)])
    bare, full = await ground.store.caught.list_caught(HERE, None, None, None, 10)
    assert (full.attachments, bare.attachments) == (files, ())


async def test_another_tenant_sees_none_of_it(ground: Ground) -> None:
    await ground.store.caught.keep_caught([attempt(HANAKO)])
    assert await ground.store.caught.list_caught(ELSEWHERE, None, None, None, 10) == []
