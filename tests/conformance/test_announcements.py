"""Announcements are hints: dropped, doubled or out of order, every message is still sent, and once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import cycle

import pytest

from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome
from noroshi.domain.priorities import Priority
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller, NotificationRequest
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.send.catcher.channel import Catcher
from noroshi.flow.way import Way, WayParts
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.dice import SystemDice
from noroshi.machine.meter import NullMeter
from noroshi.machine.rendering.inline import InlineRenderer
from noroshi.ports.clock import Clock
from tests.cast import crowd
from tests.conformance.company import beside
from tests.conformance.ground import HERE, HOUR
from tests.conformance.spoiling import (
    Spoil,
    SpoiledAnnouncements,
    doubled,
    dropped,
    reversed_in_threes,
    undisturbed,
)
from tests.conformance.stores import Store
from tests.onlookers import nobody_looks

PEOPLE = crowd(12)
OFTEN = timedelta(milliseconds=20)
ASKING = Caller(HERE, "key", "test", frozenset({KeyScope.SEND}))


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


class Arrivals:
    """What the catchers of all processes have got; `has_all` when it is as much as was awaited."""

    def __init__(self, awaited: int) -> None:
        self.count = 0
        self.has_all = asyncio.Event()
        self._awaited = awaited

    def note(self, count: int) -> None:
        self.count += count
        if self.count >= self._awaited:
            self.has_all.set()


class NotingCatcher(Catcher):
    def __init__(self, store: Store, clock: Clock, arrivals: Arrivals) -> None:
        super().__init__(store.caught, clock, frozenset({"email", "in_app"}))
        self._arrivals = arrivals

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        outcomes = await super().send(attempts)
        self._arrivals.note(len(attempts))
        return outcomes


def a_way(store: Store, clock: Clock, arrivals: Arrivals, spoil: Spoil, look_every: timedelta = OFTEN) -> Way:
    """A process that hears what `spoil` leaves of announcements."""
    return Way(
        WayParts(
            clock=clock,
            dice=SystemDice(),
            meter=NullMeter(),
            crash_points=NoCrashPoints(),
            batches=store.batches,
            queue=store.queue,
            accounts=store.accounts,
            announcements=SpoiledAnnouncements(store.announcements(clock), spoil),
            duties=store.duties,
            pauses=store.pauses,
            templates=store.templates,
            history=store.history,
            inbox=store.inbox,
            live=nobody_looks(store.inbox, clock, NullMeter()),
            requests=store.requests,
            renderer=InlineRenderer(),
            channels={"catcher": NotingCatcher(store, clock, arrivals)},
            served={"email": "catcher", "in_app": "catcher"},
            categories=Categories(),
            default_locale="en",
            dispatch=DispatchSettings(look_every=look_every, pauses_every=look_every),
            max_waiting=1000,
            max_unfinished=1000,
        )
    )


async def prepare(store: Store) -> None:
    for person in PEOPLE:
        await store.people.put_user(HERE, person.user)
    for channel in ("email", "in_app"):
        await store.templates.add(
            HERE,
            "news",
            channel=channel,
            locale="en",
            variant="",
            subject=None,
            title=None,
            body="Hello {{ user.name }}",
            metadata={},
            created_by="test",
        )


async def ask(*ways: Way) -> None:
    """A message of every priority, each asked of the next process."""
    for way, priority in zip(cycle(ways), reversed(Priority), strict=False):  # the lowest limit first
        request = NotificationRequest([p.user_id for p in PEOPLE], "news", data={"n": priority}, priority=priority)
        await way.accept(ASKING, request, None)


async def caught(store: Store) -> Counter[tuple[str, str]]:
    messages = await store.caught.list_caught(HERE, None, None, None, 1000)
    return Counter((message.user_id, message.channel) for message in messages)


WANTED = Counter({(person.user_id, channel): 4 for person in PEOPLE for channel in ("email", "in_app")})


@pytest.mark.parametrize("spoil", [dropped, doubled, reversed_in_threes])
async def test_whatever_becomes_of_announcements_every_message_is_sent_once(
    store: Store, clock: Clock, spoil: Spoil
) -> None:  # DESIGN 5.1, N9.3
    await prepare(store)
    arrivals = Arrivals(WANTED.total())
    async with beside(store, clock) as other:
        ways = [a_way(one, clock, arrivals, spoil) for one in (store, other)]
        for way in ways:
            await way.start()
        await ask(*ways)
        async with asyncio.timeout(10):
            await arrivals.has_all.wait()
        for way in ways:
            await way.stop()
    assert await store.queue.unfinished() == 0
    assert await caught(store) == WANTED


async def test_without_announcements_and_without_looking_nothing_is_sent(store: Store, clock: Clock) -> None:
    """Or the test above would prove nothing: it is looking that makes up for what was not heard."""
    await prepare(store)
    arrivals = Arrivals(WANTED.total())
    deaf = a_way(store, clock, arrivals, dropped, look_every=HOUR)
    await deaf.start()
    await ask(deaf)
    await clock.sleep(OFTEN * 10)
    assert arrivals.count == 0
    await deaf.stop()
    assert await store.queue.unfinished() == WANTED.total()


async def test_what_is_announced_is_sent_before_anyone_looks(store: Store, clock: Clock) -> None:
    await prepare(store)
    arrivals = Arrivals(WANTED.total())
    hearing = a_way(store, clock, arrivals, undisturbed, look_every=HOUR)
    await hearing.start()
    await ask(hearing)
    async with asyncio.timeout(10):
        await arrivals.has_all.wait()
    await hearing.stop()
    assert await caught(store) == WANTED
