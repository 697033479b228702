"""Suppressions: who can be reached no longer, or again, in whatever order that is heard."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from noroshi.domain.categories import Categories
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.people import User
from noroshi.domain.priorities import Priority
from noroshi.domain.receipts import Reach
from noroshi.domain.states import Status
from noroshi.flow.address.decide import Addresser
from tests.conformance.ground import ACCOUNTS, ELSEWHERE, HERE, Ground

HER_ID = "U" + "1" * 32
HIS_ID = "U" + "2" * 32
LINE = Lane("line", "acme", Priority.NORMAL)

decide_line = Addresser(Categories(), ACCOUNTS | {"line": "acme"}, "ja").decide


def word(at: int, *, is_reachable: bool, address: str = HER_ID, reason: str = "unfollowed") -> Reach:
    return Reach("line", address, Instant(at), is_reachable, reason)


LEFT, BACK = word(10, is_reachable=False), word(20, is_reachable=True)
LEFT_AGAIN = word(30, is_reachable=False)


async def hear(ground: Ground, *reaches: Reach) -> int:
    return await ground.store.suppressions.hear(HERE, reaches)


async def befriend(ground: Ground, user_id: str = "hanako", address: str = HER_ID) -> None:
    await ground.store.people.put_user(HERE, User(user_id, line_user_id=address))


async def fate(ground: Ground, user_id: str = "hanako") -> str:
    """What becomes of a message to her on LINE."""
    if not await ground.store.templates.versions(HERE, "welcome"):
        await ground.write("welcome", "line")
    batch = ground.batch(user_id, channels=["line"])
    await ground.store.batches.keep([batch], 500, decide_line)
    (view,) = await ground.views(batch.head.batch_id)
    return view.reason or Status(view.status).name


async def test_a_line_user_id_comes_back_as_it_was_put_and_goes_with_the_next(ground: Ground) -> None:  # N3.5
    await befriend(ground)
    found = await ground.store.people.get_user(HERE, "hanako")
    assert found is not None and found.line_user_id == HER_ID
    await ground.store.people.put_user(HERE, User("hanako", name="Hanako"))
    found = await ground.store.people.get_user(HERE, "hanako")
    assert found is not None and found.line_user_id is None


async def test_a_message_on_line_is_claimed_with_her_id(ground: Ground) -> None:  # N1.8
    await befriend(ground)
    assert await fate(ground) == "QUEUED"
    claim = await ground.claim(LINE)
    assert (claim.address, claim.key.endpoint_id) == (HER_ID, 3)


async def test_without_a_line_user_id_there_is_nothing_to_reach_her_by(ground: Ground) -> None:
    await ground.store.people.put_user(HERE, User("hanako", email="hanako@example.com"))
    assert await fate(ground) == "no_device"


async def test_whoever_left_is_suppressed_and_whoever_came_back_is_not(ground: Ground) -> None:  # N12.3
    await befriend(ground)
    await befriend(ground, "jiro", HIS_ID)
    assert await hear(ground, LEFT) == 1
    assert await fate(ground) == "suppressed"
    assert await fate(ground, "jiro") == "QUEUED"
    assert await hear(ground, BACK) == 1
    assert await fate(ground) == "QUEUED"


async def test_hearing_it_again_changes_nothing(ground: Ground) -> None:  # N12.4
    await befriend(ground)
    assert [await hear(ground, one) for one in (LEFT, LEFT, BACK, BACK, LEFT)] == [1, 0, 1, 0, 0]
    assert await fate(ground) == "QUEUED"


async def test_in_every_order_the_newest_word_stands(ground: Ground) -> None:  # N12.4, I10
    for number, order in enumerate(permutations([LEFT, BACK, LEFT_AGAIN, BACK])):
        friend, address = f"friend-{number}", f"U{number:032x}"
        await befriend(ground, friend, address)
        for one in order:
            await hear(ground, replace(one, address=address))
        assert await fate(ground, friend) == "suppressed", order
        assert await hear(ground, replace(BACK, address=address, at=Instant(31))) == 1
        assert await fate(ground, friend) == "QUEUED", order


@pytest.mark.parametrize("is_reachable", [True, False])
async def test_of_two_words_at_one_moment_the_bad_one_stands(ground: Ground, is_reachable: bool) -> None:
    await befriend(ground)
    await hear(ground, word(10, is_reachable=is_reachable))
    await hear(ground, word(10, is_reachable=not is_reachable))
    assert await fate(ground) == "suppressed"


async def test_whoever_left_before_she_was_registered_is_not_written_to(ground: Ground) -> None:
    await hear(ground, LEFT)
    await befriend(ground)
    assert await fate(ground) == "suppressed"


async def test_registering_her_again_does_not_undo_that_she_left(ground: Ground) -> None:
    await befriend(ground)
    await hear(ground, LEFT)
    await befriend(ground)
    assert await fate(ground) == "suppressed"


async def test_another_id_of_hers_is_free(ground: Ground) -> None:
    await befriend(ground)
    await hear(ground, LEFT)
    await befriend(ground, address=HIS_ID)
    assert await fate(ground) == "QUEUED"


async def test_coming_back_lifts_no_suppression_that_has_another_reason(ground: Ground) -> None:
    await befriend(ground)
    await hear(ground, word(5, is_reachable=False, reason="complained"))
    await hear(ground, BACK)
    assert await fate(ground) == "suppressed"


async def test_what_one_tenant_hears_is_nothing_to_another(ground: Ground) -> None:
    await befriend(ground)
    await ground.store.suppressions.hear(ELSEWHERE, [LEFT])
    assert await fate(ground) == "QUEUED"
