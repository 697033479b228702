"""Announcements are hints: dropped, doubled or out of order, every message is still sent, and once."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import pytest

from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Attempt
from noroshi.domain.lanes import Lane
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
from tests.conformance.ground import HERE
from tests.conformance.stores import Store
from tests.onlookers import nobody_looks

PEOPLE = crowd(12)
OFTEN = timedelta(milliseconds=20)
ASKING = Caller(HERE, "key", "test", frozenset({KeyScope.SEND}))

Announce = Callable[[Iterable[Lane]], None]


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


def dropped(_announce: Announce) -> Announce:
    return lambda _lanes: None


def doubled(announce: Announce) -> Announce:
    def twice(lanes: Iterable[Lane]) -> None:
        lanes = list(lanes)
        for delay in (0.0, 0.0, 0.005, 0.03):
            asyncio.get_running_loop().call_later(delay, announce, lanes)

    return twice


def reversed_in_threes(announce: Announce) -> Announce:
    held_back: list[Iterable[Lane]] = []

    def later(lanes: Iterable[Lane]) -> None:
        held_back.append(list(lanes))
        if len(held_back) >= 3:
            while held_back:
                announce(held_back.pop())

    return later


class AwaitedCatcher(Catcher):
    """Says when it has got as many messages as it was told to await."""

    def __init__(self, store: Store, clock: Clock, awaited: int) -> None:
        super().__init__(store.caught, clock, frozenset({"email", "in_app"}))
        self.has_all = asyncio.Event()
        self._left = awaited

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        outcomes = await super().send(attempts)
        self._left -= len(attempts)
        if self._left <= 0:
            self.has_all.set()
        return outcomes


def a_way(store: Store, clock: Clock, catcher: Catcher) -> Way:
    return Way(
        WayParts(
            clock=clock,
            dice=SystemDice(),
            meter=NullMeter(),
            crash_points=NoCrashPoints(),
            batches=store.batches,
            queue=store.queue,
            accounts=store.accounts,
            announcements=store.announcements(clock),
            duties=store.duties,
            pauses=store.pauses,
            templates=store.templates,
            history=store.history,
            inbox=store.inbox,
            live=nobody_looks(store.inbox, clock, NullMeter()),
            requests=store.requests,
            renderer=InlineRenderer(),
            channels={"catcher": catcher},
            served={"email": "catcher", "in_app": "catcher"},
            categories=Categories(),
            default_locale="en",
            dispatch=DispatchSettings(look_every=OFTEN, pauses_every=OFTEN),
            max_waiting=1000,
            max_unfinished=1000,
        )
    )


@pytest.mark.parametrize("spoil", [dropped, doubled, reversed_in_threes])
async def test_whatever_becomes_of_announcements_every_message_is_sent_once(
    store: Store, clock: Clock, spoil: Callable[[Announce], Announce], monkeypatch: pytest.MonkeyPatch
) -> None:  # DESIGN 5.1, N9.3
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
    wanted = Counter({(person.user_id, channel): 4 for person in PEOPLE for channel in ("email", "in_app")})
    catcher = AwaitedCatcher(store, clock, wanted.total())
    way = a_way(store, clock, catcher)
    monkeypatch.setattr(way.dispatcher, "announce", spoil(way.dispatcher.announce))
    await way.start()
    for priority in reversed(Priority):  # the lowest limit first
        request = NotificationRequest([p.user_id for p in PEOPLE], "news", data={"n": priority}, priority=priority)
        await way.accept(ASKING, request, None)
    async with asyncio.timeout(10):
        await catcher.has_all.wait()
    await way.stop()
    assert await store.queue.unfinished() == 0
    caught = await store.caught.list_caught(HERE, None, None, None, 1000)
    assert Counter((message.user_id, message.channel) for message in caught) == wanted
