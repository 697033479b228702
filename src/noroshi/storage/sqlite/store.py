"""SqliteStore: a file's path in, every port of the store on it out."""

from collections.abc import Callable

import apsw

from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.meter import Meter
from noroshi.ports.sealer import Sealer
from noroshi.storage.sqlite.batches import SqliteBatches
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.dead_letters import SqliteDeadLetters
from noroshi.storage.sqlite.history import SqliteHistory
from noroshi.storage.sqlite.people import SqliteDevices, SqlitePeople
from noroshi.storage.sqlite.queue import SqliteQueue
from noroshi.storage.sqlite.readers import InlineReaders, Readers, ThreadReaders
from noroshi.storage.sqlite.records import SqliteAccounts, SqliteCaught, SqliteKeys, SqlitePauses
from noroshi.storage.sqlite.templates import SqliteTemplates
from noroshi.storage.sqlite.writer import CommitGroup, InlineWriter, ThreadWriter, Writer


class SqliteStore:
    """All ports over one writer and its readers. `close` commits what waits."""

    def __init__(self, writer: Writer, readers: Readers, sealer: Sealer, clock: Clock) -> None:
        self._writer = writer
        self._readers = readers
        self.accounts = SqliteAccounts(writer, readers, clock)
        self.batches = SqliteBatches(writer, readers)
        self.caught = SqliteCaught(writer, readers)
        self.dead_letters = SqliteDeadLetters(writer, readers)
        self.devices = SqliteDevices(writer, readers, sealer)
        self.history = SqliteHistory(writer, readers)
        self.keys = SqliteKeys(writer, readers)
        self.pauses = SqlitePauses(writer, readers)
        self.people = SqlitePeople(writer, readers, sealer, clock)
        self.queue = SqliteQueue(writer, readers, sealer, clock)
        self.templates = SqliteTemplates(writer, readers)

    def close(self) -> None:
        self._readers.close()
        self._writer.close()


def open_store(
    path: str,
    *,
    sealer: Sealer,
    clock: Clock,
    meter: Meter,
    crash_points: CrashPoints,
    on_broken: Callable[[], None],
    on_full: Callable[[], None] = lambda: None,
    vfs: str | None = None,
    synchronous: str = "FULL",
) -> SqliteStore:
    """The store of a serving process: the writer in a thread, readers beside it. `on_broken` is called on the
    loop when the disk has failed under a commit, `on_full` in the writer's thread when it is full."""
    connection = open_connection(path, vfs=vfs, synchronous=synchronous)
    migrate(connection)
    group = CommitGroup(connection, clock, meter, crash_points, on_full)
    readers = ThreadReaders(lambda: open_connection(path, vfs=vfs, is_reader=True, cache_kib=8192))
    return SqliteStore(ThreadWriter(group, on_broken), readers, sealer, clock)


def open_inline_store(
    connection: apsw.Connection, *, sealer: Sealer, clock: Clock, meter: Meter, crash_points: CrashPoints
) -> SqliteStore:
    """The store in the caller's own thread, on a connection it opened: for the simulator and the command line."""
    migrate(connection)
    group = CommitGroup(connection, clock, meter, crash_points)
    return SqliteStore(InlineWriter(group), InlineReaders(connection), sealer, clock)
