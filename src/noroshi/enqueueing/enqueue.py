"""enqueue: a request in, its id out; it exists if and only if the caller's own transaction commits."""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from noroshi.domain.ids import show
from noroshi.enqueueing.connections import Connection, Rows, way_through
from noroshi.enqueueing.errors import BadRequestError, NoStoreError, UnsafeConnectionError
from noroshi.enqueueing.fields import RequestFields, body_of, check_name
from noroshi.enqueueing.statements import AUTOCHECKPOINT, FILES, FIND, INSERT, LIBRARY_VERSION, Dialect, Statement
from noroshi.machine.request_ids import draw_request_id

_SAFE_LIBRARY = (3, 51, 3)
_NO_SUCH_THING = {"42P01", "3F000", "42883", "42703"}
"""What PostgreSQL calls a table, schema, function or column that is not there."""

_SQLITE_LACKS = ("no such table: main.", "table main.requests has no column")

_NO_STORE = "there are no tables of Noroshi here, or older ones: run `noroshi migrate`, or `noroshi serve`, on it first"
_TWO_COPIES = (
    "this process serves the file itself, with a copy of SQLite of its own, and two copies in one process drop each "
    "other's locks: enqueue from another process, or send through the API"
)
_UNSAFE = (
    "this SQLite {version} can spoil the file when it moves the log into it while the server writes (fixed in 3.51.3): "
    "run `PRAGMA wal_autocheckpoint=0` on the connection and leave that to the server"
)

Steps = Generator[Statement, Rows, str]
"""Statements to run; rows are sent in, and in the end there is the id."""


def enqueue(
    connection: Connection, *, tenant: str = "default", created_by: str = "enqueue", **fields: Unpack[RequestFields]
) -> str:
    """Writes the request through the caller's connection and answers its id; with an idempotency key that is held,
    the id of the request that holds it. Nothing is committed or rolled back here. `connection`: psycopg, SQLAlchemy
    (Connection or Session), Django (a connection or its alias) or sqlite3. Raises BadRequestError before anything is
    written."""
    way = way_through(connection)
    if way.is_async:
        raise TypeError("this connection is asynchronous: use `await aenqueue(...)`")
    steps = _steps(way.dialect, fields, tenant, created_by)
    try:
        statement = next(steps)
        while True:
            with _explaining():
                rows = way.run(statement)
            statement = steps.send(rows)
    except StopIteration as end:
        return str(end.value)


async def aenqueue(
    connection: Connection, *, tenant: str = "default", created_by: str = "enqueue", **fields: Unpack[RequestFields]
) -> str:
    """`enqueue` for asyncpg, psycopg's AsyncConnection and SQLAlchemy's AsyncConnection and AsyncSession."""
    way = way_through(connection)
    if not way.is_async:
        raise TypeError("this connection is synchronous: use `enqueue(...)`")
    steps = _steps(way.dialect, fields, tenant, created_by)
    try:
        statement = next(steps)
        while True:
            with _explaining():
                rows = await way.run(statement)
            statement = steps.send(rows)
    except StopIteration as end:
        return str(end.value)


def _steps(dialect: Dialect, fields: RequestFields, tenant: str, created_by: str) -> Steps:
    check_name(tenant, "tenant")
    check_name(created_by, "created_by")
    body, key = body_of(fields), fields.get("idempotency_key")
    if dialect is Dialect.SQLITE:
        yield from _refuse_unsafe()
    request_id, now = draw_request_id()
    values = {"request_id": request_id, "idempotency_key": key, "body": body, "created_by": created_by}
    moment = {"created_at": now} if dialect is Dialect.SQLITE else {}  # PostgreSQL has one for all processes
    rows = yield Statement(INSERT[dialect], {**values, **moment, "tenant": tenant})
    if not rows and key is not None:
        rows = yield Statement(FIND[dialect], {"tenant": tenant, "idempotency_key": key})
    if not rows:
        raise BadRequestError("bad_field", "there is no such tenant", "tenant")
    return show(bytes(rows[0][0]))


def _refuse_unsafe() -> Generator[Statement, Rows, None]:
    if "apsw" in sys.modules:
        [path] = [row[2] for row in (yield FILES) if row[1] == "main"]
        if any(_is_same_file(path, ours.filename) for ours in sys.modules["apsw"].connections()):
            raise UnsafeConnectionError(_TWO_COPIES)
    [(version, *_)] = yield LIBRARY_VERSION
    if tuple(int(part) for part in version.split(".")) >= _SAFE_LIBRARY:
        return
    [(pages, *_)] = yield AUTOCHECKPOINT
    if pages:
        raise UnsafeConnectionError(_UNSAFE.format(version=version))


def _is_same_file(path: str, other: str) -> bool:
    return bool(path and other) and Path(other).exists() and Path(path).samefile(other)


@contextmanager
def _explaining() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if _is_store_missing(error):
            raise NoStoreError(_NO_STORE) from error
        raise


def _is_store_missing(error: BaseException | None) -> bool:
    """Whether the driver's error, or the one that a library has wrapped, says so."""
    while error is not None:
        if getattr(error, "sqlstate", None) in _NO_SUCH_THING or str(error).startswith(_SQLITE_LACKS):
            return True
        error = getattr(error, "orig", None) or error.__cause__
    return False
