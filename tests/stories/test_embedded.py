"""Noroshi inside an application: no server, no port, no key, and the same promises."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from noroshi.client import Noroshi, NoroshiError
from noroshi.client.answers import BatchStatus
from noroshi.settings import read_settings
from tests.cast import HANAKO
from tests.stories.conftest import OpenStore

Open = Callable[[], AbstractAsyncContextManager[Noroshi]]


@pytest.fixture
def embed(tmp_path: Path, store: OpenStore) -> Open:
    """Opens it, always on the same store."""
    settings = read_settings({}, {"data": str(tmp_path / "data"), "catcher": "on", **store()})
    return lambda: Noroshi(settings)


async def introduce(noroshi: Noroshi) -> None:
    await noroshi.put_user("hanako", name="Hanako", email=HANAKO.email, locale="en")
    await noroshi.add_template("welcome", "email", "en", "Hello {{ user.name }}", subject="Welcome to {{ shop }}")


async def finished(noroshi: Noroshi, batch_id: str) -> BatchStatus:
    *_, last = [status async for status in noroshi.follow(batch_id)]
    return last


async def test_an_application_sends_without_any_server(embed: Open) -> None:  # DESIGN 7.2
    async with embed() as noroshi:
        await introduce(noroshi)
        accepted = await noroshi.send("hanako", "welcome", {"shop": "Noroshi"})
        assert (await finished(noroshi, accepted.batch_id)).statuses == {"SENT": 1}
        (message,) = (await noroshi.caught()).items
        assert (message.subject, message.body) == ("Welcome to Noroshi", "Hello Hanako")
        (listed,) = (await noroshi.batches()).items
        assert listed.created_by == "embedded"


async def test_what_was_accepted_before_the_end_is_sent_after_the_next_start(embed: Open) -> None:  # I1
    async with embed() as noroshi:
        await introduce(noroshi)
        await noroshi.pause("everything")
        accepted = await noroshi.send("hanako", "welcome", {"shop": "Noroshi"}, idempotency_key="once")
    async with embed() as noroshi:
        assert (await noroshi.caught()).items == []
        (pause,) = (await noroshi.pauses()).items
        await noroshi.resume(pause.pause_id)
        assert (await finished(noroshi, accepted.batch_id)).statuses == {"SENT": 1}
        again = await noroshi.send("hanako", "welcome", {"shop": "Noroshi"}, idempotency_key="once")
        assert again.batch_id == accepted.batch_id
        assert len((await noroshi.caught()).items) == 1


async def test_many_callers_share_it(embed: Open) -> None:
    async with embed() as noroshi:
        await introduce(noroshi)
        await noroshi.put_preferences("hanako", {"frequency_limit": {"email": {"per_hour": 1000, "per_day": 1000}}})
        sent = await asyncio.gather(*(noroshi.send("hanako", "welcome", {"shop": str(n)}) for n in range(50)))
        assert {(await finished(noroshi, one.batch_id)).delivered for one in sent} == {1}
        assert len({message.subject for message in (await noroshi.caught(limit=100)).items}) == 50


async def test_what_is_refused_says_the_same_as_over_http(embed: Open) -> None:
    async with embed() as noroshi:
        with pytest.raises(NoroshiError) as refused:
            await noroshi.send("hanako", "no-such")
    assert (refused.value.code, refused.value.status) == ("unknown_template", 422)


async def test_once_stopped_it_takes_nothing_more_and_may_be_started_again(embed: Open) -> None:
    noroshi = embed()
    assert isinstance(noroshi, Noroshi)
    for _ in range(2):
        await noroshi.start()
        await introduce(noroshi)
        await noroshi.stop()
    await noroshi.stop()
    with pytest.raises(NoroshiError, match="not_started"):
        await noroshi.send("hanako", "welcome")


async def test_what_keeps_it_from_starting_is_one_error(tmp_path: Path, store: OpenStore) -> None:
    settings = read_settings({}, {"data": str(tmp_path), "catcher": "on", **store(), "channels": "no.such:channel"})
    with pytest.raises(NoroshiError) as refused:
        await Noroshi(settings).start()
    assert refused.value.code == "cannot_start"
    assert "no.such:channel" in refused.value.detail
