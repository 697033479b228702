"""Readers beside the writer: a reading function in, its answer out, from a consistent view of the last commit."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import apsw

from noroshi.storage.sqlite.connection import Statements

T = TypeVar("T")


class Readers(Protocol):
    async def read(self, question: Callable[[Statements], T]) -> T: ...

    def close(self) -> None: ...


class InlineReaders:
    """Reads on a given connection, in the caller's thread: for the simulator and the command line."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._statements = Statements(connection)

    async def read(self, question: Callable[[Statements], T]) -> T:
        return question(self._statements)

    def close(self) -> None:
        """The connection belongs to the writer."""


class ThreadReaders:
    """A few threads, each with a connection of its own."""

    def __init__(self, open_reader: Callable[[], apsw.Connection], threads: int = 2) -> None:
        self._open_reader = open_reader
        self._here = threading.local()
        self._opened: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="noroshi-reader", initializer=self._open)

    def _open(self) -> None:
        connection = self._open_reader()
        self._opened.append(connection)
        self._here.statements = Statements(connection)

    def _ask(self, question: Callable[[Statements], T]) -> T:
        statements: Statements = self._here.statements
        statements.connection.execute("BEGIN")
        try:
            return question(statements)
        finally:
            statements.connection.execute("COMMIT")

    async def read(self, question: Callable[[Statements], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask, question)

    def close(self) -> None:
        self._pool.shutdown()
        for connection in self._opened:
            connection.close()
