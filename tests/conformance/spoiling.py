"""Announcements that go wrong: hints in; fewer, more or others out, for whatever must hold without them (DESIGN 4)."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import cycle

from noroshi.domain.batches import NewBatch
from noroshi.domain.deliveries import Taken
from noroshi.domain.inbox import Owner
from noroshi.domain.lanes import Lane
from noroshi.ports.announcements import Announcements
from noroshi.ports.batches import Turn
from tests.conformance.ground import EMAIL, LEASE, Ground
from tests.conformance.stores import HandClock, Store

Hear = Callable[..., None]
Spoil = Callable[[Hear], Hear]


def undisturbed(hear: Hear) -> Hear:
    return hear


def dropped(_hear: Hear) -> Hear:
    return lambda *_hint: None


def doubled(hear: Hear) -> Hear:
    def twice(*hint: object) -> None:
        for delay in (0.0, 0.0, 0.005, 0.03):
            asyncio.get_running_loop().call_later(delay, hear, *hint)

    return twice


def reversed_in_threes(hear: Hear) -> Hear:
    held_back: list[tuple[object, ...]] = []

    def later(*hint: object) -> None:
        held_back.append(hint)
        if len(held_back) >= 3:
            while held_back:
                hear(*held_back.pop())

    return later


def by_turns(hear: Hear) -> Hear:
    """The first is dropped, the second comes twice, the third only after the fourth; and so on."""
    held_back: list[tuple[object, ...]] = []
    ways = cycle(("dropped", "twice", "held back", "heard"))

    def spoiled(*hint: object) -> None:
        way = next(ways)
        if way == "held back":
            held_back.append(hint)
            return
        for _ in range({"dropped": 0, "twice": 2, "heard": 1}[way]):
            hear(*hint)
        if way == "heard":
            hear(*held_back.pop())

    return spoiled


class SpoiledAnnouncements:
    """Implements ports/announcements.py around another one. What is said goes out as it is; what is heard, from this
    process and from others, is spoiled."""

    def __init__(self, announcements: Announcements, spoil: Spoil) -> None:
        self._spoil = spoil
        self.announce = announcements.announce
        self.announce_inboxes = announcements.announce_inboxes
        self.tell_change = announcements.tell_change
        self.start = announcements.start
        self.stop = announcements.stop
        self._listen = announcements.listen

    def listen(
        self,
        on_lanes: Callable[[Iterable[Lane]], None],
        on_change: Callable[[], None],
        on_inboxes: Callable[[Iterable[Owner]], None] = lambda _owners: None,
    ) -> None:
        hear_lanes = self._spoil(on_lanes)
        self._listen(lambda lanes: hear_lanes(list(lanes)), self._spoil(on_change), on_inboxes)


class HintedGround(Ground):
    """The ground of a worker who takes from a lane only if he has heard of it or, where `is_looking`, finds by looking
    that something waits there. What he hears is spoiled."""

    def __init__(self, store: Store, clock: HandClock, spoil: Spoil = by_turns, *, is_looking: bool = True) -> None:
        super().__init__(store, clock)
        self._is_looking = is_looking
        self._heard: list[Lane] = []
        self._announcements = SpoiledAnnouncements(store.announcements(clock), spoil)
        self._announcements.listen(self._heard.extend, lambda: None)

    async def keep(self, *batches: NewBatch, room: int = 500) -> Turn:
        turn = await super().keep(*batches, room=room)
        self._announcements.announce(sorted(turn.lanes))
        return turn

    async def take(
        self, lane: Lane = EMAIL, limit: int = 100, paused: Sequence[str] = (), lease: timedelta = LEASE
    ) -> Taken:
        if lane in self._heard:
            self._heard.remove(lane)
        elif not self._is_looking or lane not in await self.store.queue.waiting():
            return Taken([], None, has_more=False)
        return await super().take(lane, limit, paused, lease)
