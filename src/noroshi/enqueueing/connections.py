"""A caller's connection in, the way to run statements through it out; a driver that is not there is never imported."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from noroshi.enqueueing.statements import Dialect, Statement

Rows = Sequence[Any]
Connection = Any
"""Whatever the caller has; the drivers' types are known by name only."""


class Way(Struct, frozen=True):
    """How a connection is used. `run` answers rows, or an awaitable of them where `is_async`."""

    dialect: Dialect
    run: Callable[[Statement], Any]
    is_async: bool = False


def way_through(connection: Connection) -> Way:
    """Raises TypeError for what is no connection of a kind we know."""
    if isinstance(connection, str):
        return _django_alias(connection)
    for kind in type(connection).__mro__:
        known = _KINDS.get(f"{kind.__module__}.{kind.__qualname__}")
        if known is not None:
            return known(connection)
    kinds = "psycopg, asyncpg, SQLAlchemy, Django or sqlite3"
    raise TypeError(f"expected a connection of {kinds}, not {type(connection).__module__}.{type(connection).__name__}")


def _sqlite3(connection: Connection) -> Way:
    def run(statement: Statement) -> Rows:
        cursor = connection.cursor()
        cursor.row_factory = None
        return list(cursor.execute(statement.with_marks("?"), tuple(statement.values.values())))

    return Way(Dialect.SQLITE, run)


def _psycopg(connection: Connection) -> Way:
    psycopg = sys.modules["psycopg"]

    def run(statement: Statement) -> Rows:
        with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(statement.with_marks("%s"), tuple(statement.values.values()))
            rows: Rows = cursor.fetchall()
        return rows

    return Way(Dialect.POSTGRES, run)


def _psycopg_async(connection: Connection) -> Way:
    psycopg = sys.modules["psycopg"]

    async def run(statement: Statement) -> Rows:
        async with psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(statement.with_marks("%s"), tuple(statement.values.values()))
            rows: Rows = await cursor.fetchall()
        return rows

    return Way(Dialect.POSTGRES, run, is_async=True)


def _asyncpg(connection: Connection) -> Way:
    async def run(statement: Statement) -> Rows:
        rows: Rows = await connection.fetch(statement.with_marks("$"), *statement.values.values())
        return rows

    return Way(Dialect.POSTGRES, run, is_async=True)


def _sqlalchemy(connection: Connection) -> Way:
    def run(statement: Statement) -> Rows:
        text = sys.modules["sqlalchemy"].text(statement.with_marks(":"))
        rows: Rows = connection.execute(text, dict(statement.values)).all()
        return rows

    return Way(_dialect_of_sqlalchemy(connection), run)


def _sqlalchemy_async(connection: Connection) -> Way:
    async def run(statement: Statement) -> Rows:
        text = sys.modules["sqlalchemy"].text(statement.with_marks(":"))
        rows: Rows = (await connection.execute(text, dict(statement.values))).all()
        return rows

    return Way(_dialect_of_sqlalchemy(connection), run, is_async=True)


def _dialect_of_sqlalchemy(connection: Connection) -> Dialect:
    is_session = hasattr(connection, "get_bind")
    return _dialect((connection.get_bind() if is_session else connection).dialect.name)


def _django(connection: Connection) -> Way:
    def run(statement: Statement) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(statement.with_marks("%s"), tuple(statement.values.values()))
            rows: Rows = cursor.fetchall()
        return rows

    return Way(_dialect(connection.vendor), run)


def _django_alias(alias: str) -> Way:
    if "django.db" not in sys.modules:
        raise TypeError("a name stands for a connection of Django, and Django is not loaded here")
    return _django(sys.modules["django.db"].connections[alias])


def _dialect(name: str) -> Dialect:
    try:
        return Dialect(name)
    except ValueError:
        raise TypeError(f"Noroshi's tables lie in PostgreSQL or SQLite, not in {name}") from None


_KINDS: dict[str, Callable[[Connection], Way]] = {
    "sqlite3.Connection": _sqlite3,
    "psycopg.Connection": _psycopg,
    "psycopg.AsyncConnection": _psycopg_async,
    "asyncpg.connection.Connection": _asyncpg,
    "asyncpg.pool.PoolConnectionProxy": _asyncpg,
    "sqlalchemy.engine.base.Connection": _sqlalchemy,
    "sqlalchemy.orm.session.Session": _sqlalchemy,
    "sqlalchemy.orm.scoping.scoped_session": _sqlalchemy,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": _sqlalchemy_async,
    "sqlalchemy.ext.asyncio.session.AsyncSession": _sqlalchemy_async,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": _sqlalchemy_async,
    "django.db.backends.base.base.BaseDatabaseWrapper": _django,
    "django.utils.connection.ConnectionProxy": _django,
}
