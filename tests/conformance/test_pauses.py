"""Pauses: what an operator has stopped, once, until it is resumed (N4.7)."""

from noroshi.domain.records import PauseKind
from tests.conformance.ground import ELSEWHERE, HERE, MINUTE, Ground


async def test_a_pause_is_listed_until_it_is_removed(ground: Ground) -> None:  # N4.7
    pause = await ground.store.pauses.add(HERE, PauseKind.CHANNEL, "email", "operator")
    assert (pause.kind, pause.name, pause.created_at, pause.created_by) == (
        PauseKind.CHANNEL,
        "email",
        ground.now,
        "operator",
    )
    assert await ground.store.pauses.list_pauses(HERE, 0, 10) == [pause]
    assert await ground.store.pauses.in_force() == [pause]
    assert await ground.store.pauses.remove(HERE, pause.pause_id)
    assert not await ground.store.pauses.remove(HERE, pause.pause_id)
    assert await ground.store.pauses.in_force() == []


async def test_a_second_pause_of_the_same_thing_is_the_first_one(ground: Ground) -> None:
    for kind, name in ((PauseKind.CATEGORY, "social"), (PauseKind.EVERYTHING, None)):
        first = await ground.store.pauses.add(HERE, kind, name, "operator")
        ground.clock.move(MINUTE)
        assert await ground.store.pauses.add(HERE, kind, name, "another") == first
    assert len(await ground.store.pauses.in_force()) == 2


async def test_the_same_name_of_another_kind_is_another_thing(ground: Ground) -> None:
    for kind in (PauseKind.ACCOUNT, PauseKind.CHANNEL, PauseKind.CATEGORY):
        await ground.store.pauses.add(HERE, kind, "email", "operator")
    assert {pause.kind for pause in await ground.store.pauses.in_force()} == {
        PauseKind.ACCOUNT,
        PauseKind.CHANNEL,
        PauseKind.CATEGORY,
    }


async def test_everything_has_no_name(ground: Ground) -> None:
    pause = await ground.store.pauses.add(HERE, PauseKind.EVERYTHING, None, "operator")
    assert pause.name is None
    assert (await ground.store.pauses.in_force())[0].name is None


async def test_pauses_come_in_pages(ground: Ground) -> None:
    added = [await ground.store.pauses.add(HERE, PauseKind.CATEGORY, f"c{n}", "operator") for n in range(5)]
    first = await ground.store.pauses.list_pauses(HERE, 0, 3)
    second = await ground.store.pauses.list_pauses(HERE, first[-1].pause_id, 3)
    assert first + second == added


async def test_dispatch_obeys_every_tenant_but_each_sees_only_its_own(ground: Ground) -> None:
    mine = await ground.store.pauses.add(HERE, PauseKind.CHANNEL, "email", "operator")
    theirs = await ground.store.pauses.add(ELSEWHERE, PauseKind.CHANNEL, "push", "mallory")
    assert {pause.pause_id for pause in await ground.store.pauses.in_force()} == {mine.pause_id, theirs.pause_id}
    assert await ground.store.pauses.list_pauses(HERE, 0, 10) == [mine]
    assert await ground.store.pauses.list_pauses(ELSEWHERE, 0, 10) == [theirs]
    assert not await ground.store.pauses.remove(ELSEWHERE, mine.pause_id)
    assert len(await ground.store.pauses.in_force()) == 2
