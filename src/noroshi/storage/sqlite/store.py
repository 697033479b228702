"""SqliteStore: a file's path in, every port of the store on it out."""

from collections.abc import Callable

import apsw

from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.meter import Meter
from noroshi.ports.sealer import Sealer
from noroshi.storage.duties import SoleDuties
from noroshi.storage.sqlite.checkpoints import Checkpoints
from noroshi.storage.sqlite.connection import BUSY_PATIENCE_MS, migrate, open_connection
from noroshi.storage.sqlite.loop_writer import HELD_PATIENCE_MS, LoopWriter
from noroshi.storage.sqlite.readers import InlineReaders, Readers, ThreadReaders
from noroshi.storage.sqlite.writer import CommitGroup, InlineWriter, ThreadWriter, Writer
from noroshi.storage.store import Store


class SqliteStore(Store):
    """All ports over one writer and its readers. `close` commits what waits."""

    def __init__(self, writer: Writer, readers: Readers, sealer: Sealer, schema: int) -> None:
        super().__init__(writer, readers, sealer, SoleDuties(), is_alone=True)
        self._schema = schema
        self._writer = writer
        self._readers = readers

    def close(self) -> None:
        self._readers.close()
        self._writer.close()

    async def start(self) -> int:
        """Everything was opened and brought up to date when the store was made."""
        return self._schema

    async def stop(self) -> None:
        self.close()


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
    is_apart: bool = False,
) -> SqliteStore:
    """The store of a serving process, with readers beside its writer. `on_broken` is called on the loop when the disk
    has failed under a commit, `on_full` when it is full, maybe in another thread. One that `is_apart` has a process to
    itself: its turns hold the loop, and a disk that cannot be read ends the process. Else the writer has a thread."""
    connection = open_connection(path, vfs=vfs, synchronous=synchronous, is_mapped=is_apart)
    schema = migrate(connection)
    patience = HELD_PATIENCE_MS if is_apart else BUSY_PATIENCE_MS
    group = CommitGroup(connection, clock, meter, crash_points, on_full, patience)
    near = connection if is_apart else None  # its turns and these readings follow each other on the loop
    readers = ThreadReaders(lambda: open_connection(path, vfs=vfs, is_reader=True), clock, near=near)
    checkpoints = Checkpoints(lambda: open_connection(path, vfs=vfs, synchronous=synchronous, cache_kib=1024))
    writer = (LoopWriter if is_apart else ThreadWriter)(group, checkpoints, on_broken)
    return SqliteStore(writer, readers, sealer, schema)


def open_inline_store(
    connection: apsw.Connection, *, sealer: Sealer, clock: Clock, meter: Meter, crash_points: CrashPoints
) -> SqliteStore:
    """The store in the caller's own thread, on a connection it opened: for the simulator and the command line."""
    schema = migrate(connection)
    group = CommitGroup(connection, clock, meter, crash_points)
    return SqliteStore(InlineWriter(group), InlineReaders(connection, clock), sealer, schema)
