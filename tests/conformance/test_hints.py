"""Announcements within a process: it hears its own words at once, each as often as it was said."""

from noroshi.domain.inbox import Owner
from tests.conformance.ground import EMAIL, HERE, PUSH
from tests.conformance.hearing import hearing
from tests.conformance.stores import Store


async def test_what_is_announced_is_heard_at_once_and_in_order(store: Store) -> None:
    async with hearing(store) as here:
        here.announcements.announce([EMAIL, PUSH])
        assert here.lanes == [EMAIL, PUSH]
        for _ in range(200):
            here.announcements.announce([EMAIL])
        assert here.lanes.count(EMAIL) == 201


async def test_of_changed_inboxes_nothing_is_heard_where_it_is_known_already(store: Store) -> None:
    async with hearing(store) as here:
        here.announcements.announce_inboxes({Owner(HERE, "hanako")})
        assert here.owners == set()


async def test_a_change_makes_everybody_look_again(store: Store) -> None:  # N4.7
    async with hearing(store) as here:
        before = here.changes
        here.announcements.tell_change()
        assert here.changes == before + 1
