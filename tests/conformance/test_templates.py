"""Templates: versions that are only ever added, counted per channel, locale and variant, and rolled back (N2)."""

from typing import Any

from noroshi.domain.ids import TenantId
from noroshi.domain.templates import TemplateVersion
from tests.cast import HANAKO
from tests.conformance.ground import ELSEWHERE, HERE, HOUR, Ground


async def add(ground: Ground, body: str, tenant: TenantId = HERE, **place: Any) -> TemplateVersion:
    where = {"channel": "email", "locale": "ja", "variant": ""} | place
    return await ground.store.templates.add(
        tenant,
        "news",
        **where,
        subject="S",
        title="T",
        body=body,
        metadata={"html_body": "<b>{{ x }}</b>", "data": {"link": "{{ url }}"}},
        created_by="editor",
    )


async def bodies(ground: Ground) -> dict[tuple[str, str, str, int], str]:
    """What is active."""
    versions = await ground.store.templates.versions(HERE, "news")
    return {(v.channel, v.locale, v.variant, v.version): v.body for v in versions if v.is_active}


async def test_a_version_comes_back_as_it_was_added(ground: Ground) -> None:  # N2.1
    added = await add(ground, "one")
    assert (added.version, added.is_active, added.created_by, added.created_at) == (1, True, "editor", ground.now)
    assert (added.subject, added.title, added.body) == ("S", "T", "one")
    assert added.metadata == {"html_body": "<b>{{ x }}</b>", "data": {"link": "{{ url }}"}}
    assert await ground.store.templates.versions(HERE, "news") == [added]


async def test_versions_count_per_channel_locale_and_variant(ground: Ground) -> None:  # N2.2
    assert [(await add(ground, "x")).version for _ in range(3)] == [1, 2, 3]
    assert (await add(ground, "x", channel="push")).version == 1
    assert (await add(ground, "x", locale="en")).version == 1
    assert (await add(ground, "x", variant="b")).version == 1
    rows = [v.row for v in await ground.store.templates.versions(HERE, "news")]
    assert len(set(rows)) == 6


async def test_versions_are_listed_newest_first_within_their_place(ground: Ground) -> None:
    for channel in ("push", "email"):
        for _ in range(2):
            await add(ground, "x", channel=channel)
    listed = [(v.channel, v.version) for v in await ground.store.templates.versions(HERE, "news")]
    assert listed == [("email", 2), ("email", 1), ("push", 2), ("push", 1)]


async def test_a_rollback_switches_off_the_later_versions(ground: Ground) -> None:  # N2.2
    for body in ("one", "two", "three"):
        await add(ground, body)
    await add(ground, "push", channel="push")
    chosen = await ground.store.templates.rollback(HERE, "news", "email", "ja", "", 2)
    assert chosen is not None
    assert (chosen.version, chosen.body, chosen.is_active) == (2, "two", True)
    assert await bodies(ground) == {
        ("email", "ja", "", 2): "two",
        ("email", "ja", "", 1): "one",
        ("push", "ja", "", 1): "push",
    }


async def test_after_a_rollback_the_next_version_gets_a_new_number_and_is_used(ground: Ground) -> None:  # N2.2
    for body in ("one", "two"):
        await add(ground, body)
    await ground.store.templates.rollback(HERE, "news", "email", "ja", "", 1)
    assert (await add(ground, "three")).version == 3
    assert max(await bodies(ground)) == ("email", "ja", "", 3)


async def test_one_can_go_forward_again_to_a_version_switched_off(ground: Ground) -> None:  # N2.2
    for body in ("one", "two", "three"):
        await add(ground, body)
    await ground.store.templates.rollback(HERE, "news", "email", "ja", "", 1)
    await ground.store.templates.rollback(HERE, "news", "email", "ja", "", 2)
    assert max(await bodies(ground)) == ("email", "ja", "", 2)


async def test_there_is_no_rollback_to_what_never_was(ground: Ground) -> None:
    await add(ground, "one")
    for place in (("email", "ja", "", 2), ("push", "ja", "", 1), ("email", "en", "", 1), ("email", "ja", "b", 1)):
        assert await ground.store.templates.rollback(HERE, "news", *place) is None
    assert await ground.store.templates.rollback(HERE, "other", "email", "ja", "", 1) is None
    assert await bodies(ground) == {("email", "ja", "", 1): "one"}


async def test_channels_are_those_with_an_active_version(ground: Ground) -> None:  # N4.1
    assert await ground.store.templates.channels(HERE, "news") == ()
    await add(ground, "x", channel="push")
    await add(ground, "x", channel="email", locale="en")
    assert await ground.store.templates.channels(HERE, "news") == ("email", "push")


async def test_what_is_queued_keeps_the_version_it_was_addressed_with(ground: Ground) -> None:  # N5.1
    await ground.meet(HANAKO)
    first = await add(ground, "one")
    await ground.accept(HANAKO, template_id="news")
    ground.clock.move(HOUR)
    second = await add(ground, "two")
    await ground.accept(HANAKO, template_id="news")
    claims = (await ground.take()).claims
    assert [claim.template for claim in claims] == [first, second]


async def test_a_template_belongs_to_its_tenant(ground: Ground) -> None:
    await add(ground, "mine")
    assert await ground.store.templates.versions(ELSEWHERE, "news") == []
    assert await ground.store.templates.channels(ELSEWHERE, "news") == ()
    assert await ground.store.templates.rollback(ELSEWHERE, "news", "email", "ja", "", 1) is None
    assert (await add(ground, "theirs", ELSEWHERE)).version == 1
    assert await bodies(ground) == {("email", "ja", "", 1): "mine"}
