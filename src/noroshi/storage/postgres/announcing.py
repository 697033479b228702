"""Announcements over PostgreSQL: hints of this process go out by NOTIFY, those of the others come in by LISTEN.

Never inside a transaction that matters: a NOTIFY takes a lock on the whole server until its commit, and commits would
queue behind it. One connection of its own sends what was gathered, at most once in 20 ms; whatever it misses is found
by looking."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import msgspec
import structlog

from noroshi.domain.inbox import Owner
from noroshi.domain.lanes import Lane, read_lane
from noroshi.ports.clock import Clock
from noroshi.storage.announcing import LocalAnnouncements
from noroshi.storage.errors import UnreachableError
from noroshi.storage.postgres.connection import LOST, Connection, connect

CHANNEL = "noroshi"
INBOXES = "noroshi_inboxes"
EVERYBODY_LOOKS = "*"
"""A payload that is no lane's name; so is one of a newer version, and looking is right there, too."""

_BETWEEN = timedelta(milliseconds=20)
_BEFORE_RECONNECTING = timedelta(seconds=1)
_HEARTBEAT_SECONDS = 10.0
_ANSWER_SECONDS = 5.0

_CUT_OFF: tuple[type[Exception], ...] = (*LOST, UnreachableError)

_NOTIFY = "SELECT pg_notify($1, hint) FROM unnest($2::text[]) AS hint"

_LONGEST_HINT = 7_000
"""Bytes; PostgreSQL takes 8,000."""

_MOST_OWNERS = 10_000

_encode = msgspec.json.Encoder().encode
_decode_owners = msgspec.json.Decoder(list[Owner]).decode

_log = structlog.get_logger(__name__)


class PostgresAnnouncements(LocalAnnouncements):
    """Implements ports/announcements.py: this process hears itself at once, the others within some milliseconds."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__()
        self._url = url
        self._clock = clock
        self._hints: set[str] = set()
        self._owners: set[Owner] = set()
        self._has_hints = asyncio.Event()
        self._talking: asyncio.Task[None] | None = None

    def announce(self, lanes: Iterable[Lane]) -> None:
        lanes = list(lanes)
        super().announce(lanes)
        self._gather(lane.name for lane in lanes)

    def tell_change(self) -> None:
        super().tell_change()
        self._gather((EVERYBODY_LOOKS,))

    def announce_inboxes(self, owners: Iterable[Owner]) -> None:
        self._owners.update(owners)
        if len(self._owners) > _MOST_OWNERS:  # nobody could be told for a while: then everybody looks
            self._owners.clear()
            self._gather((EVERYBODY_LOOKS,))
        elif self._owners:
            self._has_hints.set()

    def _gather(self, hints: Iterable[str]) -> None:
        self._hints.update(hints)
        if self._hints:
            self._has_hints.set()

    async def start(self) -> None:
        self._talking = asyncio.create_task(self._talk_for_ever(), name="announcements")

    async def stop(self) -> None:
        """What is not yet said others find by looking."""
        if self._talking is not None:
            self._talking.cancel()
            await asyncio.wait((self._talking,))

    async def _talk_for_ever(self) -> None:
        while True:
            try:
                async with self._connected() as connection:
                    self._on_change()  # what was said before we listened is made good by looking
                    await self._talk(connection)
            except _CUT_OFF as error:
                _log.warning("announcements_cut_off", error=type(error).__name__)
            await self._clock.sleep(_BEFORE_RECONNECTING)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        connection = await connect(self._url)
        try:
            connection.add_termination_listener(lambda _connection: self._has_hints.set())
            await connection.add_listener(CHANNEL, self._hear)
            await connection.add_listener(INBOXES, self._hear_of_inboxes)
            yield connection
        finally:
            connection.terminate()

    async def _talk(self, connection: Connection) -> None:
        """Until the connection is lost. With nothing to say, a heartbeat finds out whether it is."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_hints.wait(), _HEARTBEAT_SECONDS)
            self._has_hints.clear()
            hints, self._hints = self._hints, set()
            await connection.fetch(_NOTIFY, CHANNEL, list(hints), timeout=_ANSWER_SECONDS)
            if self._owners:
                owners, self._owners = self._owners, set()
                await connection.fetch(_NOTIFY, INBOXES, list(_hints_of(owners)), timeout=_ANSWER_SECONDS)
            await self._clock.sleep(_BETWEEN)

    def _hear(self, connection: Connection, sender: int, _channel: str, hint: str) -> None:
        if sender == connection.get_server_pid():
            return  # we heard ourselves when we said it
        try:
            self._on_lanes([read_lane(hint)])
        except ValueError:
            self._on_change()

    def _hear_of_inboxes(self, connection: Connection, sender: int, _channel: str, hint: str) -> None:
        if sender == connection.get_server_pid():
            return
        try:
            self._on_inboxes(_decode_owners(hint))
        except msgspec.DecodeError:
            self._on_change()


def _hints_of(owners: Iterable[Owner]) -> Iterator[str]:
    """Many owners in few hints."""
    held: list[Owner] = []
    size = 0
    for owner in owners:
        size += len(owner.user_id.encode()) * 2 + 32  # what JSON may make of it
        if held and size > _LONGEST_HINT:
            yield _encode(held).decode()
            held, size = [], len(owner.user_id.encode()) * 2 + 32
        held.append(owner)
    if held:
        yield _encode(held).decode()
