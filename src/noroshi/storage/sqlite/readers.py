"""Readers beside the writer: a reading function in, its answer out, from a consistent view of the last commit."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import apsw

from noroshi.domain.problems import ProblemError
from noroshi.ports.clock import Clock
from noroshi.storage.sqlite.connection import DISK_ERRORS, SqliteStatements, at_once
from noroshi.storage.turns import Readings, Statements

T = TypeVar("T")


Question = Callable[[Statements], Coroutine[Any, Any, T]]


class Readers(Readings, Protocol):
    def close(self) -> None: ...


class InlineReaders:
    """Reads on a given connection, in the caller's thread: for the simulator and the command line."""

    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self._statements = SqliteStatements(connection, clock)

    async def read(self, question: Question[T], *, is_brief: bool = False) -> T:  # noqa: ARG002 - all are read at once
        return await question(self._statements)

    def close(self) -> None:
        """The connection belongs to the writer."""


class ThreadReaders:
    """A few threads, each with a connection of its own. All are opened at once: under load, when the second thread
    is first needed, the process may have no file left to open. `near` is a connection on which the loop itself may read
    what is brief: a thread would want the interpreter at the same time as the loop, and each waits for the other."""

    def __init__(
        self,
        open_reader: Callable[[], apsw.Connection],
        clock: Clock,
        threads: int = 2,
        near: apsw.Connection | None = None,
    ) -> None:
        self._clock = clock
        self._near = None if near is None else SqliteStatements(near, clock)
        self._opened = [open_reader() for _ in range(threads)]
        self._unused = list(self._opened)
        self._here = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="noroshi-reader", initializer=self._settle_in)

    def _settle_in(self) -> None:
        self._here.statements = SqliteStatements(self._unused.pop(), self._clock)

    def _ask_here(self, question: Question[T]) -> T:
        return self._ask(self._here.statements, question)

    def _ask(self, statements: SqliteStatements, question: Question[T]) -> T:
        try:
            statements.connection.execute("BEGIN")
            try:
                return at_once(question(statements))
            finally:
                statements.connection.execute("COMMIT")
        except DISK_ERRORS as failure:
            raise ProblemError("store_unavailable", f"the store cannot be read ({type(failure).__name__})") from None

    async def read(self, question: Question[T], *, is_brief: bool = False) -> T:
        near = self._near
        if is_brief and near is not None and not near.connection.in_transaction:  # one that could not be undone stays
            return self._ask(near, question)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask_here, question)

    def close(self) -> None:
        self._pool.shutdown()
        for connection in self._opened:
            connection.close()
