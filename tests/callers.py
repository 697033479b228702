"""Callers of `enqueue`: commands in, done in a process of their own, answers out.

A process that serves a file must not open it with another copy of SQLite as well: each would drop the other's locks."""

import atexit
import contextlib
import pickle
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any, Self

import psycopg

from noroshi import enqueue


class CallersProcess:
    """One for as many callers as need one; started on first use."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, *command: Any) -> Any:
        with self._lock:
            answer = self._exchange(command)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _exchange(self, command: tuple[Any, ...]) -> Any:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.callers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(command, self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)  # noqa: S301 - our own child's

    def close(self) -> None:
        if self._process is not None and self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()


_SHARED = CallersProcess()
atexit.register(_SHARED.close)


class ForeignCaller:
    """A connection of a caller's own to where a store lies: the path of a file, or the URL of a database."""

    def __init__(self, place: str) -> None:
        self._process = _SHARED
        self._number: int = self._process.ask("connect", place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.ask("close", self._number)

    def enqueue(self, **fields: Any) -> str:
        request_id: str = self._process.ask("enqueue", self._number, fields)
        return request_id

    def commit(self) -> None:
        self._process.ask("commit", self._number)

    def rollback(self) -> None:
        self._process.ask("rollback", self._number)

    def spoil(self, body: bytes) -> None:
        """Writes another body into every request, by hand."""
        self._process.ask("spoil", self._number, body)

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._process.ask("rows", self._number, question)
        return found


def connect(place: str) -> Any:
    if place.startswith("postgresql://"):
        return psycopg.connect(place, options="-c search_path=noroshi")
    connection = sqlite3.connect(place)
    connection.execute("PRAGMA wal_autocheckpoint=0")
    return connection


def _obey(connections: list[Any], action: str, *words: Any) -> Any:
    if action == "connect":
        connections.append(connect(words[0]))
        return len(connections) - 1
    connection = connections[words[0]]
    if action == "enqueue":
        return enqueue(connection, **words[1])
    if action == "spoil":
        literal = f"'\\x{words[1].hex()}'" if isinstance(connection, psycopg.Connection) else f"x'{words[1].hex()}'"
        return connection.execute(f"UPDATE requests SET body = {literal}").rowcount  # noqa: S608 - a test's own bytes
    if action == "rows":
        return connection.execute(words[1]).fetchall()
    return getattr(connection, action)()


def _commands(told: IO[bytes]) -> Iterator[tuple[Any, ...]]:
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(told)  # noqa: S301 - our own parent's


def main() -> None:
    connections: list[Any] = []
    for command in _commands(sys.stdin.buffer):
        try:
            answer = _obey(connections, *command)
        except Exception as error:
            answer = error
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
