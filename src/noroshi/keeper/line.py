"""The server's end of the line: calls on the ports in, frames to the keeper and its answers out."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, cast

import msgspec

from noroshi.domain.problems import ProblemError
from noroshi.keeper.methods import METHODS, Method
from noroshi.keeper.wire import Form, Frame, Splitter, decode, encode
from noroshi.ports.accounts import Accounts
from noroshi.ports.alerts import Alerts
from noroshi.ports.announcements import Announcements
from noroshi.ports.attachments import Attachments
from noroshi.ports.batches import Batches
from noroshi.ports.caught import Caught
from noroshi.ports.clock import Clock
from noroshi.ports.dead_letters import DeadLetters
from noroshi.ports.devices import Devices
from noroshi.ports.doubts import RestoredDoubts
from noroshi.ports.duties import Duties
from noroshi.ports.history import History
from noroshi.ports.inbox import Inbox
from noroshi.ports.keys import Keys
from noroshi.ports.marks import Marks
from noroshi.ports.meter import Meter
from noroshi.ports.notification_jobs import NotificationJobs
from noroshi.ports.pauses import Pauses
from noroshi.ports.people import People
from noroshi.ports.queue import Queue
from noroshi.ports.requests import Requests
from noroshi.ports.reservations import Reservations
from noroshi.ports.suppressions import Suppressions
from noroshi.ports.templates import Templates
from noroshi.ports.tickets import Tickets
from noroshi.storage.announcing import LocalAnnouncements

OPEN = 0
"""The topic of the first call; the others are the numbers of METHODS."""

CLOSE = 255

_MOST_CALLS = (1 << 32) - 1


class Notice(IntEnum):
    """What a keeper says unasked."""

    METERED = 1
    FULL = 2
    BROKEN = 3


class Metered(msgspec.Struct, array_like=True):
    """One observation, as the meter was told it."""

    kind: str
    name: str
    value: float
    labels: dict[str, str] = {}


_decode_metered = msgspec.msgpack.Decoder(list[Metered]).decode
_decode_any = msgspec.msgpack.Decoder().decode

Heed = Callable[[Notice], None]


class Line(asyncio.Protocol):
    """Many calls at once, each joined to its answer by a number. `heed` hears of a full or broken disk, `on_lost`
    is called once when the keeper is gone."""

    def __init__(self, meter: Meter, heed: Heed, on_lost: Callable[[], None]) -> None:
        self._meter = meter
        self._heed = heed
        self._on_lost = on_lost
        self._splitter = Splitter()
        self._waiting: dict[int, tuple[asyncio.Future[Any], Method | None]] = {}
        self._last = 0
        self._is_closing = False
        self._transport: asyncio.WriteTransport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def ask(self, topic: int, value: Any, method: Method | None = None) -> "asyncio.Future[Any]":
        """The future of the answer; whoever no longer waits for it lets it pass."""
        if self._transport is None or self._is_closing:
            raise _gone()
        self._is_closing = topic == CLOSE  # a write that comes too late would cut the line before the answer is read
        self._last = self._last % _MOST_CALLS + 1
        frame = encode(self._last, topic, value)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._last] = (future, method)
        self._transport.write(frame)
        return future

    def data_received(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            if frame.number:
                self._answer(frame)
            elif frame.topic == Notice.METERED:
                self._meter_all(decode(frame, _decode_metered))
            else:
                self._heed(Notice(frame.topic))

    def _answer(self, frame: Frame) -> None:
        future, method = self._waiting.pop(frame.number)
        if future.done():
            return
        try:
            answer = decode(frame, _decode_any if method is None else method.unpack)
            if frame.form is Form.ERROR:
                future.set_exception(answer)
            else:
                future.set_result(answer if method is None else method.opened(answer))
        except Exception as error:  # noqa: BLE001 - an answer that cannot be read is this caller's alone
            future.set_exception(error)

    def _meter_all(self, told: list[Metered]) -> None:
        for one in told:
            getattr(self._meter, one.kind)(one.name, one.value, **one.labels)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it went, it is gone
        self._transport = None
        waiting, self._waiting = self._waiting, {}
        for future, _ in waiting.values():
            if not future.done():
                future.set_exception(_gone())
        if not self.closed.done():
            self.closed.set_result(None)
        self._on_lost()


class RemotePort:
    """One port, its methods made from the table."""

    def __init__(self, ask: Callable[[int, Any, Method], Awaitable[Any]], port: str) -> None:
        for method in METHODS.values():
            if method.port == port:
                setattr(self, method.name, _caller(ask, method))


def _caller(ask: Callable[[int, Any, Method], Awaitable[Any]], method: Method) -> Callable[..., Awaitable[Any]]:
    number = method.number

    async def call(*given: Any, **named: Any) -> Any:
        return await ask(number, method.row(given, named), method)

    return call


class RemotePorts:
    """Every port of a store that lives at the other end."""

    def __init__(self, ask: Callable[[int, Any, Method], Awaitable[Any]]) -> None:
        def port(name: str) -> Any:
            return RemotePort(ask, name)

        self.accounts: Accounts = port("accounts")
        self.alerts: Alerts = port("alerts")
        self.attachments: Attachments = port("attachments")
        self.batches: Batches = port("batches")
        self.caught: Caught = port("caught")
        self.dead_letters: DeadLetters = port("dead_letters")
        self.devices: Devices = port("devices")
        self.doubts: RestoredDoubts = port("doubts")
        self.duties: Duties = port("duties")
        self.history: History = port("history")
        self.inbox: Inbox = port("inbox")
        self.keys: Keys = port("keys")
        self.marks: Marks = port("marks")
        self.notification_jobs: NotificationJobs = port("notification_jobs")
        self.pauses: Pauses = port("pauses")
        self.people: People = port("people")
        self.queue: Queue = port("queue")
        self.requests: Requests = port("requests")
        self.reservations: Reservations = port("reservations")
        self.suppressions: Suppressions = port("suppressions")
        self.templates: Templates = port("templates")
        self.tickets: Tickets = port("tickets")

    def announcements(self, clock: Clock) -> Announcements:  # noqa: ARG002 - nobody else serves this store
        return LocalAnnouncements()

    async def trouble(self) -> str | None:
        """None: a keeper that cannot go on says so, or dies, and the server with it."""
        return None


def _gone() -> ProblemError:
    return ProblemError("store_unavailable", "the store's keeper is gone")
