"""Live inboxes: what commits put into inboxes goes in, and out to whoever looks at them, each entry once and in order.

Nothing depends on being told: every follower knows the last number it was told, numbers have no gap, and a follower who
finds one reads on from the store. So hints may be lost, doubled or late, and a reader who is too slow costs no memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

import structlog

from noroshi.domain.inbox import InboxEntry, InboxHead, News, Owner
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.ports.clock import Clock
from noroshi.ports.inbox import Inbox
from noroshi.ports.live import Outlet
from noroshi.ports.meter import Meter

EVERY = timedelta(seconds=10)
"""How often everybody's inbox is looked into, for hints that were lost."""

PAGE = 100
"""Entries read at once for one follower who is behind."""

_ROOM = 8
"""Entries read at once for each of many followers; who lacks more reads alone."""

_TOLD_AT_ONCE = 1_000
"""News put into form before any of it is written. A write wakes its reader: forming and writing by turns took half as
long again (decision 15). But the first readers should not have to wait until the last one's are formed."""

_OWNERS_AT_ONCE = 200
_BYTES_AT_ONCE = 65_536
"""Content told in one go; who has room for no more must not make us hold it meanwhile."""

_READERS = 4
_TICK = timedelta(seconds=1)
_BEATS = 20
"""Each follower gets a sign of life every so many ticks."""

_PATIENCE = timedelta(seconds=60)
"""So long a connection that takes nothing is waited for."""

_MOST_OF_ONE_PERSON = 32
"""Streams that one person's passes open: one browser must not take up the room of all."""

_AGAIN_AFTER = timedelta(seconds=5)

Told = list[tuple[Outlet, Sequence[bytes]]]

_log = structlog.get_logger(__name__)


class Follower:
    """Implements ports/live.py Following. `seen` is the last number told. While it reads on from the store by itself
    (`is_reading`) nothing is handed to it, only noted that there is more."""

    __slots__ = (
        "_head",
        "_live",
        "_told",
        "is_behind",
        "is_gone",
        "is_reading",
        "key_id",
        "outlet",
        "owner",
        "seen",
        "until",
    )

    def __init__(
        self, live: "LiveStreams", owner: Owner, seen: int, outlet: Outlet, key_id: str, until: Instant | None
    ) -> None:
        self._live = live
        self._head: InboxHead | None = None
        self._told: InboxHead | None = None
        self.owner = owner
        self.seen = seen
        self.outlet = outlet
        self.key_id = key_id
        self.until = until
        self.is_reading = True
        self.is_behind = False
        self.is_gone = False

    async def find(self, *, is_from_now_on: bool) -> bool:
        """Looks at the inbox for the first time; False if there is no such user."""
        self._head = await self._live.read_head(self.owner)
        if self._head is not None and is_from_now_on:
            self.seen = self._head.last_number
        return self._head is not None

    def offer(self, news: News, told: Told) -> bool:
        """Adds to `told` what is to be written. False if it has to read on by itself: something is missing before
        these, or there is no room."""
        if self.is_reading:
            self.is_behind = True
            return True
        entries = news.entries
        if entries and entries[0].number <= self.seen:
            entries = tuple(entry for entry in entries if entry.number > self.seen)
        has_gap = bool(entries) and entries[0].number > self.seen + 1
        is_too_much = len(entries) > 1 and len(_fitting(entries)) < len(entries)
        if has_gap or is_too_much or self.outlet.is_full:
            return False
        if entries is not news.entries:
            news = News(self.owner, news.head, entries)
        told.append((self.outlet, self._form(news)))
        return self.seen >= news.head.last_number

    def _tell(self, head: InboxHead, entries: tuple[InboxEntry, ...]) -> None:
        self.outlet.put(self._form(News(self.owner, head, entries)))

    def _form(self, news: News) -> Sequence[bytes]:
        """Nothing, if this follower knows it all."""
        head, entries, told = news.head, news.entries, self._told
        # Of two heads one is never older in one figure and newer in the other: both figures only rise.
        if told is None or (head.last_number >= told.last_number and head.changes >= told.changes):
            self._told = head
        else:
            head, news = told, News(self.owner, told, entries)
        if entries:
            self.seen = entries[-1].number
        return self.outlet.form(news) if entries or head != told else ()

    async def catch_up(self) -> None:
        try:
            await self._read_on()
        except Exception as error:  # noqa: BLE001 - the store could not be read: the next connection reads on
            _log.warning("inbox_not_read", error=type(error).__name__)
            self.outlet.close()

    async def _read_on(self) -> None:
        """Until nothing is missing any more. Whoever has seen more than there is (the store was restored from a
        backup) goes on from what there is."""
        head, self._head = self._head, None
        self.is_reading = True
        while not self.is_gone:
            if head is None or self.is_behind:
                self.is_behind = False
                head = await self._live.read_head(self.owner)
                if head is None:
                    self.outlet.close()
                    return
            await self._read_up_to(head)
            if not self.is_behind:
                self.is_reading = False
                return

    async def _read_up_to(self, head: InboxHead) -> None:
        self.seen = min(self.seen, head.last_number)
        if self.seen == head.last_number:
            self._tell(head, ())
        while self.seen < head.last_number and not self.is_gone:
            entries = _fitting(await self._live.read_after(self.owner, self.seen))
            if not entries:
                self.seen = head.last_number  # what is missing was forgotten
            self._tell(head, entries)
            del entries  # before waiting for room
            await self._live.make_room(self)

    def end(self) -> None:
        self.is_gone = True
        self._live.forget(self)


def _fitting(entries: Sequence[InboxEntry]) -> tuple[InboxEntry, ...]:
    """The first of them, as far as they fit into one go; one always does."""
    size = 0
    for place, entry in enumerate(entries):
        size += len(entry.content)
        if size > _BYTES_AT_ONCE and place:
            return tuple(entries[:place])
    return tuple(entries)


class LiveStreams:
    """Implements ports/live.py LiveInboxes. `is_live_key` says whether an API key is still valid."""

    def __init__(
        self,
        inbox: Inbox,
        clock: Clock,
        meter: Meter,
        is_live_key: Callable[[str], Awaitable[bool]],
        *,
        most: int,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._meter = meter
        self._is_live_key = is_live_key
        self._most = most
        self._followers: dict[Owner, tuple[Follower, ...]] = {}
        self._count = 0
        self._is_closing = False
        self._dirty: dict[Owner, None] = {}
        self._has_dirty = asyncio.Event()
        self._is_followed = asyncio.Event()
        self._readers = asyncio.Semaphore(_READERS)
        self._rounds: list[asyncio.Task[None]] = []
        self._catching: set[asyncio.Task[None]] = set()

    async def follow(
        self, owner: Owner, after: int | None, outlet: Outlet, key_id: str, until: Instant | None
    ) -> Follower | None:
        if self._is_closing or self._count >= self._most:
            raise ProblemError("overloaded", "no further stream can be held here", retry_after=_AGAIN_AFTER)
        if until is not None and len(self._followers.get(owner, ())) >= _MOST_OF_ONE_PERSON:
            detail = f"a person may look at an inbox {_MOST_OF_ONE_PERSON} times at once"
            raise ProblemError("too_many_requests", detail, retry_after=_AGAIN_AFTER)
        follower = Follower(self, owner, after or 0, outlet, key_id, until)
        self._followers[owner] = (*self._followers.get(owner, ()), follower)  # first, so that nothing slips through
        self._counted(1)
        is_found = False
        try:
            is_found = await follower.find(is_from_now_on=after is None)
        finally:
            if not is_found:
                follower.end()
        return follower if is_found else None

    def forget(self, follower: Follower) -> None:
        left = tuple(one for one in self._followers.get(follower.owner, ()) if one is not follower)
        if left:
            self._followers[follower.owner] = left
        else:
            self._followers.pop(follower.owner, None)
        self._counted(-1)

    def _counted(self, by: int) -> None:
        self._count += by
        if self._count:
            self._is_followed.set()
        else:
            self._is_followed.clear()
        self._meter.gauge("inbox_streams", self._count)

    def hand_over(self, news: Sequence[News]) -> None:
        followers = self._followers
        if not followers:
            return
        for first in range(0, len(news), _TOLD_AT_ONCE):
            told: Told = []
            for one in news[first : first + _TOLD_AT_ONCE]:
                for follower in followers.get(one.owner, ()):
                    if not follower.offer(one, told):
                        self._set_off(follower)
            for outlet, formed in told:
                outlet.put(formed)

    def look_into(self, owners: Iterable[Owner]) -> None:
        self._dirty.update((owner, None) for owner in owners if owner in self._followers)
        if self._dirty:
            self._has_dirty.set()

    def look_everywhere(self) -> None:
        self.look_into(list(self._followers))

    # what followers ask for

    async def read_head(self, owner: Owner) -> InboxHead | None:
        async with self._readers:
            return await self._inbox.head(owner)

    async def read_after(self, owner: Owner, number: int) -> list[InboxEntry]:
        async with self._readers:
            return await self._inbox.after(owner, number, PAGE)

    async def make_room(self, follower: Follower) -> None:
        """Waits for a slow reader; one who takes nothing for a minute has to come again."""
        if not follower.outlet.is_full:
            return
        drained = asyncio.ensure_future(follower.outlet.drained())
        late = asyncio.ensure_future(self._clock.sleep(_PATIENCE))
        try:
            await asyncio.wait((drained, late), return_when=asyncio.FIRST_COMPLETED)
            if not drained.done():
                self._meter.count("inbox_streams_dropped_total")
                follower.is_gone = True
                follower.outlet.close()
        finally:
            drained.cancel()
            late.cancel()

    # the rounds

    async def start(self) -> None:
        rounds = (self._look_for_ever, self._tick_for_ever)
        self._rounds = [asyncio.create_task(work(), name="live inboxes") for work in rounds]

    def close_all(self) -> None:
        self._is_closing = True
        for follower in self._all():
            follower.outlet.close()

    async def stop(self) -> None:
        self.close_all()
        tasks = (*self._rounds, *self._catching)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _look_for_ever(self) -> None:
        """Reads for all who were named since the last round at once, however many they are."""
        while True:
            await self._has_dirty.wait()
            self._has_dirty.clear()
            while self._dirty:
                owners = list(islice(self._dirty, _OWNERS_AT_ONCE))
                for owner in owners:
                    del self._dirty[owner]
                await self._see_through(self._look(owners))

    async def _look(self, owners: list[Owner]) -> None:
        asked = [(owner, min(f.seen for f in self._followers[owner])) for owner in owners if owner in self._followers]
        async with self._readers:
            news = await self._inbox.news(asked, _ROOM)
        self.hand_over(news)
        for owner in {owner for owner, _ in asked} - {one.owner for one in news}:
            for follower in self._followers.get(owner, ()):
                follower.outlet.close()

    def _set_off(self, follower: Follower) -> None:
        """It reads on by itself, first waiting for room."""
        follower.is_reading = True
        task = asyncio.create_task(self._lead_on(follower))
        self._catching.add(task)
        task.add_done_callback(self._catching.discard)

    async def _lead_on(self, follower: Follower) -> None:
        await self.make_room(follower)
        await follower.catch_up()

    async def _see_through(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the next round, or the next connection, makes it good
            _log.warning("inbox_not_read", error=type(error).__name__)

    async def _tick_for_ever(self) -> None:
        ticks, looks = 0, EVERY // _TICK
        while True:
            await self._is_followed.wait()
            await self._clock.sleep(_TICK)
            ticks += 1
            self._tick(ticks % _BEATS)
            await self._see_through(self._end_revoked())
            if ticks % looks == 0:
                self.look_everywhere()

    def _tick(self, beat: int) -> None:
        now = self._clock.now()
        for number, follower in enumerate(list(self._all())):
            if follower.until is not None and follower.until <= now:
                follower.outlet.close()
            elif number % _BEATS == beat and not follower.outlet.is_full:
                follower.outlet.beat()

    async def _end_revoked(self) -> None:
        for key_id in {follower.key_id for follower in self._all()}:
            if not await self._is_live_key(key_id):
                for follower in [one for one in self._all() if one.key_id == key_id]:
                    follower.outlet.close()

    def _all(self) -> Iterator[Follower]:
        return (follower for followers in self._followers.values() for follower in followers)
