"""The one writer: turns from many callers in, one commit for all that arrived during the last fsync out."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any, Protocol, TypeVar

import apsw
import structlog

from noroshi.domain.problems import ProblemError
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.meter import Meter
from noroshi.storage.sqlite.checkpoints import Checkpoints
from noroshi.storage.sqlite.connection import BUSY_PATIENCE_MS, DISK_ERRORS, SqliteStatements, at_once
from noroshi.storage.turns import Group, Turn, Turns

T = TypeVar("T")

Work = Callable[[Turn], Coroutine[Any, Any, T]]

_log = structlog.get_logger(__name__)

GROUP_BUDGET_SECONDS = 0.020
"""A group stops taking in turns after this long, so that nobody waits behind a long queue of them."""

_CHECKPOINT_PAGES = 8000
_WAL_LIMIT_PAGES = 14_000
"""Beyond this (about 57 MB) the writer waits a moment for readers, so that the log can begin anew."""

_RETRY_PAGES = 2000
"""So much is written between two such waits, if a reader stays."""

_READER_PATIENCE_MS = 200
"""Our own readers are done long before; a foreign one may stay for hours, and nobody should wait for it."""

_COME_BACK = timedelta(seconds=5)


class SqliteTurn(SqliteStatements):
    """What a caller's work gets: statements inside the group's transaction, the time, and rising numbers."""

    __slots__ = ("_writer", "now")

    def __init__(self, connection: apsw.Connection, writer: "CommitGroup") -> None:
        super().__init__(connection, writer.clock)
        self._writer = writer
        self.now = writer.clock.now()

    async def lock_people(self, people: Sequence[Group]) -> None:
        """There is one writer: nobody else decides about anybody."""

    def next_number(self, how_many: int = 1) -> int:
        """The first of `how_many` numbers never given before, in the order of time: fences, ledger places, ids."""
        first = max(self._writer.last_number + 1, self.now)
        self._writer.last_number = first + how_many - 1
        return first


class Job:
    """One turn that waits: its name (a crash point), its work, and where the result goes."""

    __slots__ = ("error", "future", "name", "result", "work")

    def __init__(self, name: str, work: Work[Any], future: "asyncio.Future[Any]") -> None:
        self.name = name
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: Exception | None = None

    def answer(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class CommitGroup:
    """Runs a group of jobs in one transaction, each of several in its own savepoint: a failing one takes no other with
    it."""

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Clock,
        meter: Meter,
        crash_points: CrashPoints,
        on_full: Callable[[], None] = lambda: None,
        busy_patience_ms: int = BUSY_PATIENCE_MS,
    ) -> None:
        self.connection = connection
        self._busy_patience_ms = busy_patience_ms
        connection.set_busy_timeout(busy_patience_ms)
        self.clock = clock
        self.last_number = 0
        self.is_broken = False
        self._on_full = on_full
        self._meter = meter
        self._crash_points = crash_points
        self._wal_pages = 0
        self._wal_pages_before = 0
        self._checkpoint_at = _CHECKPOINT_PAGES
        self._is_moved_beside = False
        connection.set_wal_hook(self._note_wal_pages)

    def _note_wal_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def commit(self, jobs: Sequence[Job], *, may_come_back: bool = False) -> int:
        """Commits as many jobs as fit the budget (at least one) and answers how many; the rest stay for the
        next group. After a failed commit every job of the group has its error; nothing was stored, unless the
        disk failed: what it then holds is known after a restart only. Who `may_come_back` hears 0 while another process
        is writing."""
        started = perf_counter()
        done: list[Job] = []
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            if len(jobs) == 1:
                done.append(jobs[0])
                if not self._run_alone(jobs[0]):
                    return 1
            else:
                for job in jobs:
                    done.append(job)
                    self._run(job)
                    if perf_counter() - started > GROUP_BUDGET_SECONDS:
                        break
            for job in done:
                self._crash_points.reach(f"commit.{job.name}.before")
            self.connection.execute("COMMIT")
        except Exception as failure:  # noqa: BLE001 - a writer that died in silence would be waited for, for ever
            if may_come_back and not done and isinstance(failure, apsw.BusyError):
                return 0
            victims = done or jobs  # none begun: the transaction itself could not begin
            self._fail(victims, failure)
            return len(victims)
        for job in done:
            self._crash_points.reach(f"commit.{job.name}.after")
        self._meter.observe("store_commit_group_size", len(done))
        self._meter.observe("store_commit_seconds", perf_counter() - started)
        return len(done)

    def _run_alone(self, job: Job) -> bool:
        """Without a savepoint, for which every page that is changed would be copied first; whether there is anything to
        commit."""
        try:
            job.result = at_once(job.work(SqliteTurn(self.connection, self)))
        except DISK_ERRORS:
            raise
        except Exception as failure:  # noqa: BLE001 - the caller gets it
            self.connection.execute("ROLLBACK")
            job.error = failure
            return False
        return True

    def _run(self, job: Job) -> None:
        connection = self.connection
        connection.execute("SAVEPOINT job")
        try:
            job.result = at_once(job.work(SqliteTurn(connection, self)))
        except DISK_ERRORS:
            raise
        except Exception as failure:  # noqa: BLE001 - the caller gets it; the group goes on
            connection.execute("ROLLBACK TO job")
            job.error = failure
        connection.execute("RELEASE job")

    def _fail(self, jobs: Sequence[Job], failure: Exception) -> None:
        _log.error("store_commit_failed", error=type(failure).__name__, jobs=len(jobs))
        self._judge(failure)
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except apsw.Error:
            self.is_broken = True  # neither kept nor undone
        for job in jobs:
            job.error = unavailable(f"the store cannot commit ({type(failure).__name__})")

    def _judge(self, failure: Exception) -> None:
        """A lock that is held and a full disk pass; after anything else, above all a failed fsync, a later success
        would lie: it is never tried again (W29)."""
        if _is_out_of_space(failure):
            self._on_full()
        elif not isinstance(failure, apsw.BusyError | apsw.CantOpenError | apsw.NoMemError):
            self.is_broken = True

    def checkpoint_if_large(self, beside: Checkpoints) -> None:
        """Has the log moved into the file once it has grown, beside the writer, who then moves what came meanwhile, so
        that the log can begin anew. Readers are not waited for until it is very large. Under a reader that stays it
        grows on, by what is written meanwhile, and shrinks when the reader is gone."""
        pages = self._wal_pages
        if pages < self._wal_pages_before:
            self._checkpoint_at = _CHECKPOINT_PAGES  # the log began anew
        self._wal_pages_before = pages
        if pages < self._checkpoint_at:
            return
        if not self._is_moved_beside:
            self._is_moved_beside = True
            beside.begin()
        if pages >= _WAL_LIMIT_PAGES:
            beside.wait()
        if beside.is_idle:
            self._is_moved_beside = False
            if (failure := beside.take_failure()) is not None:
                self._note_failed_checkpoint(failure)
            else:
                self._checkpoint(pages)
            is_large = pages >= _WAL_LIMIT_PAGES
            self._checkpoint_at = pages + _RETRY_PAGES if is_large else min(pages + _CHECKPOINT_PAGES, _WAL_LIMIT_PAGES)

    def _checkpoint(self, pages: int) -> None:
        mode = apsw.SQLITE_CHECKPOINT_PASSIVE if pages < _WAL_LIMIT_PAGES else apsw.SQLITE_CHECKPOINT_RESTART
        self.connection.set_busy_timeout(_READER_PATIENCE_MS)
        try:
            self.connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            _log.warning("checkpoint_waits_for_a_reader", pages=pages)
        except apsw.Error as failure:
            self._note_failed_checkpoint(failure)
        finally:
            self.connection.set_busy_timeout(self._busy_patience_ms)

    def _note_failed_checkpoint(self, failure: apsw.Error) -> None:
        _log.error("checkpoint_failed", error=type(failure).__name__)
        self._judge(failure)

    def close(self) -> None:
        """A file whose disk has failed is left as it is: closing it must not sync it once more."""
        if self.is_broken:
            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close()


def unavailable(detail: str) -> ProblemError:
    return ProblemError("store_unavailable", detail, retry_after=_COME_BACK)


def _is_out_of_space(failure: Exception) -> bool:
    """Also where the log's index cannot grow, which SQLite calls an I/O error."""
    return isinstance(failure, apsw.FullError) or (getattr(failure, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE)


class Writer(Turns, Protocol):
    """Runs turns in the next group's transaction."""

    def close(self) -> None: ...


class InlineWriter:
    """The writer without a thread: commits when the loop comes round. For the simulator and the command line."""

    def __init__(self, group: CommitGroup) -> None:
        self._group = group
        self._waiting: list[Job] = []

    async def turn(self, name: str, work: Work[T], *, is_urgent: bool = False) -> T:  # noqa: ARG002
        loop = asyncio.get_running_loop()
        job = Job(name, work, loop.create_future())
        if not self._waiting:
            loop.call_soon(self._drain)
        self._waiting.append(job)
        result: T = await job.future
        return result

    def _drain(self) -> None:
        jobs, self._waiting = self._waiting, []
        while jobs:
            count = self._group.commit(jobs)
            for job in jobs[:count]:
                job.answer()
            jobs = jobs[count:]

    def close(self) -> None:
        self._group.close()


class ThreadWriter:
    """The writer in its own thread, so that an fsync stops no one else."""

    def __init__(self, group: CommitGroup, checkpoints: Checkpoints, on_broken: Callable[[], None]) -> None:
        self._group = group
        self._checkpoints = checkpoints
        self._on_broken = on_broken
        self._urgent: deque[Job] = deque()
        self._usual: deque[Job] = deque()
        self._arrived = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="noroshi-writer", daemon=True)
        self._thread.start()

    async def turn(self, name: str, work: Work[T], *, is_urgent: bool = False) -> T:
        job = Job(name, work, asyncio.get_running_loop().create_future())
        with self._arrived:
            if self._is_closing or self._group.is_broken:
                raise unavailable("the store is closed")
            (self._urgent if is_urgent else self._usual).append(job)
            self._arrived.notify()
        result: T = await job.future
        return result

    def _next_jobs(self) -> list[Job]:
        with self._arrived:
            while not (self._urgent or self._usual or self._is_closing):
                self._arrived.wait()
            jobs = [*self._urgent, *self._usual]
            self._urgent.clear()
            self._usual.clear()
            return jobs

    def _put_back(self, jobs: Sequence[Job]) -> None:
        with self._arrived:
            self._usual.extendleft(reversed(jobs))

    def _work(self) -> None:
        while jobs := self._next_jobs():
            count = self._group.commit(jobs)
            if count < len(jobs):
                self._put_back(jobs[count:])
            loop = jobs[0].future.get_loop()
            loop.call_soon_threadsafe(_answer_all, jobs[:count])
            if not self._group.is_broken:
                self._group.checkpoint_if_large(self._checkpoints)
            if self._group.is_broken:
                self._abandon(loop)
                return

    def _abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._arrived:
            left = [*self._urgent, *self._usual]
            self._urgent.clear()
            self._usual.clear()
        for job in left:
            job.error = unavailable("the disk failed before this was begun")
        loop.call_soon_threadsafe(_answer_all, left)
        loop.call_soon_threadsafe(self._on_broken)

    def close(self) -> None:
        """Commits what waits, then ends the thread and closes the file."""
        with self._arrived:
            self._is_closing = True
            self._arrived.notify()
        self._thread.join()
        self._checkpoints.close(is_broken=self._group.is_broken)
        self._group.close()


def _answer_all(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.answer()
