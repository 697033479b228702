"""Checkpoints: a log that has grown in, its pages in the file out, while the writer goes on writing."""

import threading
from collections.abc import Callable

import apsw
import structlog

_PATIENCE_SECONDS = 10.0
_ROUNDS = 4
_FEW_PAGES = 300

_log = structlog.get_logger(__name__)


class Checkpoints:
    """A thread with a connection of its own moves what the log holds at that moment. What the writer adds meanwhile is
    little, and left to the writer: only then can the log begin anew. All methods but the thread's are the writer's."""

    def __init__(self, open_connection: Callable[[], apsw.Connection]) -> None:
        self._connection = open_connection()
        self._is_wanted = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._is_closing = False
        self._failure: apsw.Error | None = None
        self._thread = threading.Thread(target=self._work, name="noroshi-checkpoints", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        return self._is_idle.is_set()

    def begin(self) -> None:
        self._is_idle.clear()
        self._is_wanted.set()

    def wait(self) -> None:
        """Until what is under way is done: a log that grows faster than it is moved must not grow for ever."""
        self._is_idle.wait(_PATIENCE_SECONDS)

    def take_failure(self) -> apsw.Error | None:
        """What went wrong since it was last asked."""
        failure, self._failure = self._failure, None
        return failure

    def close(self, *, is_broken: bool) -> None:
        self._is_closing = True
        self._is_wanted.set()
        self._thread.join()
        if is_broken:
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._connection.close()

    def _work(self) -> None:
        while True:
            self._is_wanted.wait()
            self._is_wanted.clear()
            if self._is_closing:
                return
            try:
                self._move()
            except apsw.BusyError:
                _log.info("checkpoint_elsewhere")
            except apsw.Error as failure:
                self._failure = failure
            self._is_idle.set()

    def _move(self) -> None:
        """Again and again, until what came meanwhile is little."""
        moved, before = 0, 0
        for _ in range(_ROUNDS):
            _, moved = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if moved - before < _FEW_PAGES:
                return
            before = moved
