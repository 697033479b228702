"""Live inboxes: each follower is told each entry once and in order, whatever becomes of hints, readers and stores."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import msgspec
import pytest

from noroshi.domain.ids import DEFAULT_TENANT, NotificationId
from noroshi.domain.inbox import InboxEntry, InboxFilter, InboxHead, Marked, News, Owner
from noroshi.domain.instants import Instant, plus
from noroshi.domain.problems import ProblemError
from noroshi.flow.send.in_app.inbox import live
from noroshi.flow.send.in_app.inbox.live import Follower, LiveStreams
from noroshi.machine.meter import NullMeter

HANAKO = Owner(DEFAULT_TENANT, "hanako")
TARO = Owner(DEFAULT_TENANT, "taro")
JIRO = Owner(DEFAULT_TENANT, "jiro")
SECOND = timedelta(seconds=1)


class StepClock:
    """Time passes when the test says so; whoever sleeps wakes at the right moment."""

    def __init__(self) -> None:
        self._now = Instant(1_000_000_000)
        self._sleepers: list[tuple[Instant, asyncio.Future[None]]] = []

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._now / 1_000_000

    async def sleep(self, span: timedelta) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((plus(self._now, span), future))
        await future

    async def pass_by(self, seconds: int) -> None:
        await settled()
        for _ in range(seconds):
            self._now = plus(self._now, SECOND)
            for due, future in self._sleepers:
                if due <= self._now and not future.done():
                    future.set_result(None)
            self._sleepers = [(due, future) for due, future in self._sleepers if not future.done()]
            await settled()


class ShelfInbox:
    """Implements ports/inbox.py as far as looking needs it: numbers from 1 on, for those who are known."""

    def __init__(self, *owners: Owner) -> None:
        self.entries: dict[Owner, list[InboxEntry]] = {owner: [] for owner in owners}
        self.changes = 0
        self.is_broken = False
        self.reads = 0
        self.before_after = asyncio.Event()
        self.before_after.set()

    def put(self, owner: Owner, count: int = 1, content: str = "{}") -> News:
        """A commit; answers what its process would hand over."""
        kept = self.entries[owner]
        new = [
            InboxEntry(len(kept) + n, NotificationId(bytes(16)), "general", content, Instant(0))
            for n in range(1, count + 1)
        ]
        kept += new
        return News(owner, self._head(owner), tuple(new))

    def _head(self, owner: Owner) -> InboxHead:
        kept = self.entries[owner]
        return InboxHead(kept[-1].number if kept else 0, len(kept), self.changes)

    async def head(self, owner: Owner) -> InboxHead | None:
        self._read()
        return self._head(owner) if owner in self.entries else None

    async def after(self, owner: Owner, number: int, limit: int) -> list[InboxEntry]:
        self._read()
        found = [entry for entry in self.entries[owner] if entry.number > number][:limit]
        await self.before_after.wait()
        return found

    async def news(self, asked: Sequence[tuple[Owner, int]], limit: int) -> list[News]:
        self._read()
        return [
            News(owner, self._head(owner), tuple(found) if len(found) <= limit else ())
            for owner, seen in asked
            if owner in self.entries
            for found in [[entry for entry in self.entries[owner] if entry.number > seen]]
        ]

    def _read(self) -> None:
        self.reads += 1
        if self.is_broken:
            raise ProblemError("store_unavailable", "by order")

    async def page(self, owner: Owner, matching: InboxFilter, before: int | None, limit: int) -> list[InboxEntry]:
        raise NotImplementedError

    async def mark(self, owner: Owner, number: int, *, is_archived: bool) -> Marked | None:
        raise NotImplementedError

    async def read_all(self, owner: Owner, up_to: int, limit: int) -> int:
        raise NotImplementedError

    async def forget_before(self, moment: Instant, limit: int) -> int:
        raise NotImplementedError


class Ear:
    """An outlet that remembers; `room` is how many tellings fit in until it is emptied."""

    def __init__(self, room: int = 1000) -> None:
        self.numbers: list[int] = []
        self.heads: list[InboxHead] = []
        self.beats = 0
        self.is_closed = False
        self._room = self._left = room
        self._has_room = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def form(self, news: News) -> Sequence[bytes]:
        return (msgspec.msgpack.encode(news),)

    def put(self, formed: Sequence[bytes]) -> None:
        for one in formed:
            assert not self.is_full, "told although there was no room"
            self._left -= 1
            news = msgspec.msgpack.decode(one, type=News)
            self.numbers += [entry.number for entry in news.entries]
            self.heads.append(news.head)

    def beat(self) -> None:
        self.beats += 1

    async def drained(self) -> None:
        await self._has_room.wait()

    def empty(self) -> None:
        self._left = self._room
        self._has_room.set()
        self._has_room.clear()

    def close(self) -> None:
        self.is_closed = True


class NotingEar(Ear):
    """Notes what is asked of it, in a list that it shares with others."""

    def __init__(self, done: list[str]) -> None:
        super().__init__()
        self._done = done

    def form(self, news: News) -> Sequence[bytes]:
        self._done.append(f"form {news.owner.user_id}")
        return super().form(news)

    def put(self, formed: Sequence[bytes]) -> None:
        self._done.append("put")
        super().put(formed)


class Stage:
    """Streams over a shelf, on a clock of the test's own."""

    def __init__(self, most: int = 100) -> None:
        self.inbox = ShelfInbox(HANAKO, TARO, JIRO)
        self.clock = StepClock()
        self.dead_keys: set[str] = set()
        self.live = LiveStreams(self.inbox, self.clock, NullMeter(), self._is_live, most=most)

    async def _is_live(self, key_id: str) -> bool:
        return key_id not in self.dead_keys

    async def follow(
        self, ear: Ear, owner: Owner = HANAKO, after: int | None = None, until: Instant | None = None, key: str = "k"
    ) -> Follower:
        follower = await self.live.follow(owner, after, ear, key, until)
        assert follower is not None
        await follower.catch_up()
        return follower


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    await stage.live.start()
    yield stage
    await stage.live.stop()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# telling


async def test_whoever_comes_hears_at_once_how_the_inbox_stands(stage: Stage) -> None:
    stage.inbox.put(HANAKO, 3)
    ear = Ear()
    await stage.follow(ear)
    assert (ear.numbers, ear.heads) == ([], [InboxHead(3, 3, 0)])


async def test_an_empty_inbox_is_told_too(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    assert ear.heads == [InboxHead()]


async def test_what_is_handed_over_is_told_without_asking_the_store(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    reads = stage.inbox.reads
    stage.live.hand_over([stage.inbox.put(HANAKO, 2), stage.inbox.put(TARO)])
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    assert (ear.numbers, stage.inbox.reads) == ([1, 2, 3], reads)


async def test_many_are_written_to_at_a_stretch_and_the_first_before_the_last_are_formed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # B8: forming and writing by turns took half as long again
    monkeypatch.setattr(live, "_TOLD_AT_ONCE", 2)
    done: list[str] = []
    for owner in (HANAKO, TARO, JIRO):
        await stage.follow(NotingEar(done), owner)
    done.clear()
    stage.live.hand_over([stage.inbox.put(owner) for owner in (HANAKO, TARO, JIRO)])
    assert done == ["form hanako", "form taro", "put", "put", "form jiro", "put"]


async def test_whoever_comes_again_hears_what_came_meanwhile(stage: Stage) -> None:
    stage.inbox.put(HANAKO, 5)
    ear = Ear()
    await stage.follow(ear, after=2)
    assert ear.numbers == [3, 4, 5]


async def test_more_than_a_page_is_read_page_by_page(stage: Stage) -> None:
    stage.inbox.put(HANAKO, live.PAGE * 2 + 1)
    ear = Ear()
    await stage.follow(ear, after=0)
    assert ear.numbers == list(range(1, live.PAGE * 2 + 2))


async def test_what_comes_while_one_catches_up_is_told_after_it(stage: Stage) -> None:
    stage.inbox.put(HANAKO, 3)
    ear = Ear()
    follower = await stage.live.follow(HANAKO, 0, ear, "k", None)
    assert follower is not None
    stage.inbox.before_after.clear()
    catching = asyncio.create_task(follower.catch_up())
    await settled()
    stage.live.hand_over([stage.inbox.put(HANAKO, 2)])
    assert ear.numbers == []
    stage.inbox.before_after.set()
    await catching
    assert ear.numbers == [1, 2, 3, 4, 5]


async def test_what_comes_between_coming_and_catching_up_is_not_missed(stage: Stage) -> None:
    ear = Ear()
    follower = await stage.live.follow(HANAKO, None, ear, "k", None)
    assert follower is not None
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    await follower.catch_up()
    assert ear.numbers == [1]


async def test_commits_that_are_told_in_the_wrong_order_are_heard_in_the_right_one(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    first, second = stage.inbox.put(HANAKO), stage.inbox.put(HANAKO, 2)
    stage.live.hand_over([second])
    await settled()
    stage.live.hand_over([first])
    stage.live.hand_over([second])
    await settled()
    assert ear.numbers == [1, 2, 3]


async def test_a_later_state_is_never_followed_by_an_earlier_one(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    put = stage.inbox.put(HANAKO)
    stage.inbox.changes = 1
    stage.live.hand_over([News(HANAKO, InboxHead(1, 0, 1))])
    stage.live.hand_over([put])
    await settled()
    assert ear.numbers == [1]
    assert ear.heads[-1].changes == 1 and ear.heads == sorted(ear.heads, key=lambda head: head.changes)


async def test_two_who_look_at_one_inbox_both_hear(stage: Stage) -> None:
    first, second, other = Ear(), Ear(), Ear()
    await stage.follow(first)
    gone = await stage.follow(second)
    await stage.follow(other, TARO)
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    gone.end()
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    assert (first.numbers, second.numbers, other.numbers) == ([1, 2], [1], [])


async def test_who_has_seen_more_than_there_is_goes_on_from_what_there_is(stage: Stage) -> None:  # W31
    stage.inbox.put(HANAKO, 3)
    ear = Ear()
    await stage.follow(ear, after=40)
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    assert ear.numbers == [4]


async def test_what_was_forgotten_meanwhile_does_not_hold_up_the_rest(stage: Stage) -> None:
    stage.inbox.put(HANAKO, 6)
    del stage.inbox.entries[HANAKO][:4]
    ear = Ear()
    await stage.follow(ear, after=1)
    assert ear.numbers == [5, 6]


async def test_nobody_can_look_at_the_inbox_of_nobody(stage: Stage) -> None:
    assert await stage.live.follow(Owner(DEFAULT_TENANT, "nobody"), None, Ear(), "k", None) is None
    assert await stage.live.follow(Owner(DEFAULT_TENANT, "nobody"), 3, Ear(), "k", None) is None


# hints


async def test_a_hint_from_another_process_is_looked_after(stage: Stage) -> None:
    ear, other = Ear(), Ear()
    await stage.follow(ear)
    await stage.follow(other, TARO)
    stage.inbox.put(HANAKO, 2)
    stage.inbox.put(TARO)
    stage.live.look_into([HANAKO, TARO, Owner(DEFAULT_TENANT, "nobody")])
    await settled()
    assert (ear.numbers, other.numbers) == ([1, 2], [1])


async def test_many_hints_cost_one_question(stage: Stage) -> None:
    ear, other = Ear(), Ear()
    await stage.follow(ear)
    await stage.follow(other, TARO)
    reads = stage.inbox.reads
    for _ in range(50):
        stage.inbox.put(HANAKO)
        stage.live.look_into([HANAKO, TARO])
    stage.live.look_into([HANAKO])
    await settled()
    assert len(ear.numbers) == 50
    assert stage.inbox.reads - reads <= 4


async def test_what_no_hint_told_of_is_found_by_looking(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    stage.inbox.put(HANAKO)
    await stage.clock.pass_by(int(live.EVERY.total_seconds()))
    assert ear.numbers == [1]


async def test_a_store_that_cannot_be_read_ends_who_catches_up_and_spares_who_only_listens(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    stage.inbox.is_broken = True
    stage.inbox.put(HANAKO)
    stage.live.look_into([HANAKO])
    await settled()
    assert not ear.is_closed
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    await settled()
    assert ear.is_closed


# slow readers


async def test_a_full_reader_is_told_nothing_and_misses_nothing(stage: Stage) -> None:
    ear = Ear(room=2)
    await stage.follow(ear)
    for _ in range(100):
        stage.live.hand_over([stage.inbox.put(HANAKO)])
    await settled()
    assert ear.numbers == [1]
    for _ in range(3):
        ear.empty()
        await settled()
    assert ear.numbers == list(range(1, 101))


async def test_what_is_much_is_told_in_parts_and_none_is_held_for_who_has_no_room(stage: Stage) -> None:
    ear = Ear(room=2)
    await stage.follow(ear)
    stage.live.hand_over([stage.inbox.put(HANAKO, 10, "x" * 40_000)])
    await settled()
    assert ear.numbers == [1]
    for told in range(3, 10, 2):
        ear.empty()
        await settled()
        assert ear.numbers == list(range(1, told + 1))


async def test_one_who_takes_nothing_for_a_minute_has_to_come_again(stage: Stage) -> None:
    ear = Ear(room=1)
    await stage.follow(ear)
    stage.live.hand_over([stage.inbox.put(HANAKO)])
    await settled()
    await stage.clock.pass_by(59)
    assert not ear.is_closed
    await stage.clock.pass_by(2)
    assert ear.is_closed


# the end


async def test_everybody_gets_a_sign_of_life(stage: Stage) -> None:
    ears = [Ear() for _ in range(50)]
    for ear in ears:
        await stage.follow(ear)
    await stage.clock.pass_by(20)
    assert {ear.beats for ear in ears} == {1}


async def test_a_stream_ends_with_its_pass(stage: Stage) -> None:
    ear, other = Ear(), Ear()
    await stage.follow(ear, until=plus(stage.clock.now(), SECOND * 5))
    await stage.follow(other)
    await stage.clock.pass_by(6)
    assert (ear.is_closed, other.is_closed) == (True, False)


async def test_a_revoked_key_ends_the_streams_it_has_opened(stage: Stage) -> None:
    ear, other = Ear(), Ear()
    await stage.follow(ear, key="stolen")
    await stage.follow(other, key="fine")
    stage.dead_keys.add("stolen")
    await stage.clock.pass_by(2)
    assert (ear.is_closed, other.is_closed) == (True, False)


async def test_a_person_who_is_removed_is_no_longer_looked_at(stage: Stage) -> None:
    ear = Ear()
    await stage.follow(ear)
    del stage.inbox.entries[HANAKO]
    stage.live.look_everywhere()
    await settled()
    assert ear.is_closed


async def test_no_more_are_held_than_was_said() -> None:
    stage = Stage(most=2)
    first = await stage.follow(Ear())
    await stage.follow(Ear())
    with pytest.raises(ProblemError) as refused:
        await stage.follow(Ear())
    assert (refused.value.kind.code, refused.value.retry_after is not None) == ("overloaded", True)
    first.end()
    await stage.follow(Ear())


async def test_one_person_cannot_take_up_the_room_of_all() -> None:
    stage = Stage(most=1000)
    soon = plus(stage.clock.now(), SECOND)
    for _ in range(live._MOST_OF_ONE_PERSON):
        await stage.follow(Ear(), until=soon)
    with pytest.raises(ProblemError) as refused:
        await stage.follow(Ear(), until=soon)
    assert refused.value.kind.code == "too_many_requests"
    await stage.follow(Ear(), TARO, until=soon)
    await stage.follow(Ear())  # with a key of the product itself


async def test_at_the_end_all_are_sent_away_and_nobody_is_let_in(stage: Stage) -> None:
    ears = [Ear(), Ear()]
    for ear in ears:
        await stage.follow(ear)
    stage.live.close_all()
    assert all(ear.is_closed for ear in ears)
    with pytest.raises(ProblemError):
        await stage.follow(Ear())
