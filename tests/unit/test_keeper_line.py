"""The line between a server and its keeper: frames cut anywhere, many calls at once, errors, callers that go away."""

import asyncio
import pickle
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from noroshi.domain.attachments import Attachment
from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Claim, DeliveryKey, Recipient, Taken
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, NotificationId
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.templates import TemplateVersion
from noroshi.flow.address.decide import Addresser
from noroshi.keeper.answering import Answering, Told
from noroshi.keeper.claims import opened, pack_taken
from noroshi.keeper.line import CLOSE, OPEN, Line, Notice, RemotePorts
from noroshi.keeper.methods import METHODS, Method
from noroshi.keeper.process import Keeper, KeptStore, Order
from noroshi.keeper.wire import Form, Splitter, decode, encode, encode_error, revive
from noroshi.ports.meter import Meter
from noroshi.ports.store import StorePorts

LARGE = 3_000_000


class Books:
    """A store of which the tests need little: it remembers accounts, and answers when it is told to."""

    def __init__(self, meter: Meter, told: Told) -> None:
        self.accounts = self.history = self
        self.meter = meter
        self.told = told
        self.asked: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.is_stopped = False

    async def start(self) -> int:
        return 7

    async def stop(self) -> None:
        self.is_stopped = True

    async def block(self, account: str, until: Instant, why: str) -> None:
        self.asked.append(account)
        self.meter.observe("store_commit_seconds", 0.5)
        if account == "full":
            self.told(Notice.FULL)
        if account == "broken":
            raise ProblemError("store_unavailable", why, retry_after=timedelta(seconds=5))
        if account == "lambda":
            error = RuntimeError()
            error.args = (lambda: None,)
            raise error
        await self.gates.setdefault(account, asyncio.Event()).wait()

    async def has_user(self, tenant: int, user_id: str) -> bool:
        return len(user_id) == LARGE

    async def blocked(self) -> dict[str, Instant]:
        return {name: Instant(2**80) for name in self.asked}


class Heard:
    """What the server's end was told unasked."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.observed: list[tuple[str, float]] = []
        self.lost = 0

    def lose(self) -> None:
        self.lost += 1

    def observe(self, name: str, value: float, **_labels: str) -> None:
        self.observed.append((name, value))

    def count(self, name: str, by: float = 1, **_labels: str) -> None:
        self.observed.append((name, by))

    gauge = observe


class Ends:
    """Both ends of a line."""

    def __init__(self) -> None:
        self.heard = Heard()
        self.books: Books
        self.line: Line
        self.ports = RemotePorts(self.ask)

    async def ask(self, topic: int, value: Any, method: Method) -> Any:
        return await self.line.ask(topic, value, method)

    def open(self, _order: bytes, meter: Meter, told: Told) -> Any:
        self.books = Books(meter, told)
        return self.books


@asynccontextmanager
async def ends() -> AsyncIterator[Ends]:
    both = Ends()
    loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()
    _, both.line = await loop.create_unix_connection(
        lambda: Line(both.heard, both.heard.notices.append, both.heard.lose), sock=ours
    )
    keeper, _ = await loop.create_unix_connection(lambda: Answering(both.open), sock=theirs)
    assert await both.line.ask(OPEN, None) == 7
    try:
        yield both
    finally:
        keeper.abort()
        await both.line.closed


# frames


def test_frames_are_found_wherever_the_bytes_are_cut() -> None:
    sent = [encode(number, number % 7, {"n": number, "text": "x" * number}) for number in range(1, 40)]
    whole = b"".join(sent)
    for step in (1, 3, 10, 11, 4096):
        splitter = Splitter()
        frames = [f for at in range(0, len(whole), step) for f in splitter.feed(whole[at : at + step])]
        assert [f.number for f in frames] == list(range(1, 40))
        assert [encode(f.number, f.topic, {"n": f.number, "text": "x" * f.number}) for f in frames] == sent


def test_what_msgpack_has_no_words_for_is_sent_all_the_same() -> None:
    (frame,) = Splitter().feed(encode(1, 2, {"a": 2**80}))
    assert frame.form is Form.PICKLED
    assert decode(frame, lambda _body: None) == {"a": 2**80}


def test_a_problem_crosses_whole() -> None:
    told = ProblemError("conflict", "why", field="f", retry_after=timedelta(1), extra={"x": 1}, headers={"y": "z"})
    (frame,) = Splitter().feed(encode_error(1, told))
    error = decode(frame, lambda _body: None)
    assert (error.kind, error.detail, error.field) == (told.kind, "why", "f")
    assert (error.retry_after, error.extra, error.headers) == (timedelta(1), {"x": 1}, {"y": "z"})


def test_the_same_decision_comes_out_as_one_and_the_same_function() -> None:
    sent = pickle.dumps(Addresser(Categories(), {"email": "acme"}, "ja").decide)
    assert revive(object, sent).__self__ is revive(object, bytes(sent)).__self__


def test_every_method_of_every_port_has_a_number_of_its_own() -> None:
    assert len({(m.port, m.name) for m in METHODS.values()}) == len(METHODS) > 40
    assert not {OPEN, CLOSE} & METHODS.keys()


def test_what_claims_share_is_sent_once_and_shared_again() -> None:
    template = TemplateVersion(1, "welcome", "email", "en", "", 1, None, None, "b", {})
    data = {"a": 1}
    claims = [
        Claim(
            key=DeliveryKey(DEFAULT_TENANT, NotificationId(bytes([n]) * 16), EndpointId(1)),
            lane=Lane("email", "acme", Priority.LOW),
            fence=n,
            claims=1,
            tries=0,
            category="general",
            wanted_at=Instant(n),
            expires_at=None,
            lease_until=Instant(99),
            recipient=Recipient(f"user-{n}", None, "ja", None, {"n": n}),
            address=f"{n}@example.com",
            data=data if n else {"a": 1},
            template=template,
            is_cancelled=False,
            attachments=(Attachment("a.pdf", "application/pdf", 3),) if n else (),
        )
        for n in range(3)
    ]
    taken = Taken(claims, Instant(5), has_more=True)
    packed = pack_taken(taken)
    assert (len(packed.data), len(packed.templates), len(packed.attachments)) == (2, 1, 1)
    assert opened(packed) == taken
    empty = Taken([], None, has_more=False)
    assert opened(pack_taken(empty)) == empty


# calls


async def test_many_calls_are_under_way_at_once_and_each_gets_its_own_answer() -> None:
    async with ends() as both:
        calls = [asyncio.create_task(both.ports.accounts.block(f"a{n}", Instant(0), "")) for n in range(200)]
        while len(both.books.asked) < 200:
            await asyncio.sleep(0)
        assert both.books.asked == [f"a{n}" for n in range(200)]
        for n in reversed(range(200)):
            both.books.gates[f"a{n}"].set()
            await calls[n]
            assert not any(call.done() for call in calls[:n])


async def test_a_huge_argument_arrives_whole() -> None:
    async with ends() as both:
        assert await both.ports.history.has_user(DEFAULT_TENANT, "x" * LARGE)


async def test_an_error_is_raised_where_the_call_was_made() -> None:
    async with ends() as both:
        with pytest.raises(ProblemError) as raised:
            await both.ports.accounts.block("broken", Instant(0), "the disk")
        assert (raised.value.detail, raised.value.retry_after) == ("the disk", timedelta(seconds=5))
        with pytest.raises(RuntimeError, match="RuntimeError"):
            await both.ports.accounts.block("lambda", Instant(0), "")


async def test_a_caller_who_goes_away_disturbs_nobody() -> None:
    async with ends() as both:
        gone = asyncio.create_task(both.ports.accounts.block("gone", Instant(0), ""))
        while "gone" not in both.books.asked:
            await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait((gone,))
        both.books.gates["gone"].set()
        assert await both.ports.accounts.blocked() == {"gone": 2**80}


async def test_metrics_and_notices_of_the_keeper_come_before_the_answer_they_belong_to() -> None:
    async with ends() as both:
        call = asyncio.create_task(both.ports.accounts.block("full", Instant(0), ""))
        while "full" not in both.books.asked:
            await asyncio.sleep(0)
        both.books.gates["full"].set()
        await call
        assert both.heard.notices == [Notice.FULL]
        assert both.heard.observed == [("store_commit_seconds", 0.5)]


async def test_when_the_keeper_is_gone_every_caller_hears_of_it_at_once() -> None:
    async with ends() as both:
        waiting = asyncio.create_task(both.ports.accounts.block("a", Instant(0), ""))
        while not both.books.asked:
            await asyncio.sleep(0)
    with pytest.raises(ProblemError):
        await waiting
    with pytest.raises(ProblemError):
        await both.ports.accounts.blocked()
    assert both.heard.lost == 1


async def test_a_closed_store_ends_the_line() -> None:
    async with ends() as both:
        await both.line.ask(CLOSE, None)
        await both.line.closed
        assert both.books.is_stopped


async def test_whoever_asks_after_the_store_was_told_to_close_hears_that_it_is_gone() -> None:
    # W29: where the disk has failed nobody is stopped first, and a line written to when the keeper has closed it is cut
    async with ends() as both:
        closing = both.line.ask(CLOSE, None)
        with pytest.raises(ProblemError):
            both.line.ask(METHODS[1].number, None)
        await closing
        await both.line.closed


# how a store ends


class Fallen(Keeper):
    """A keeper whose other end is in this process."""

    def __init__(self, ours: socket.socket) -> None:
        super().__init__(0, ours)

    def end(self) -> int:
        return -9


@pytest.mark.parametrize(
    ("how", "is_broken"), [("it closes", False), ("it dies", True), ("the disk fails", True)], ids=str
)
async def test_a_server_that_stops_goes_by_whether_its_keeper_closed_the_store(how: str, *, is_broken: bool) -> None:
    # W29: a keeper may die of the same disk that the server stops for
    ours, theirs = socket.socketpair()
    broken: list[str] = []
    heard = Heard()
    store = KeptStore(
        Fallen(ours),
        Order("", "", {}, b"", None),
        meter=heard,
        on_broken=lambda: broken.append(how),
        on_full=lambda: None,
    )

    class Closing(Books):
        async def stop(self) -> None:
            if how == "it dies":
                keeper.abort()
            elif how == "the disk fails":
                raise OSError("not closed")

    keeper, _ = await asyncio.get_running_loop().create_unix_connection(
        lambda: Answering(lambda _order, meter, told: cast(StorePorts, Closing(meter, told))), sock=theirs
    )
    assert await store.start() == 7
    await store.stop()
    await store.stop()
    assert bool(broken) is is_broken
