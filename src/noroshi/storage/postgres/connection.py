"""Connections: a URL in, configured connections to a database at the current schema out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from noroshi.domain.problems import ProblemError
from noroshi.storage.errors import NewerSchemaError, UnreachableError, UnsafeStoreError
from noroshi.storage.postgres.sql import migrations

SCHEMA = "noroshi"
OLDEST_SERVER = 14
CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 60.0
"""A statement that takes longer is given up: the server is stuck, or the way to it is cut."""

LOST: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""What the server, or the way to it, is to blame for: another try may succeed."""

Connection = Any
"""An asyncpg connection, plain or from a pool."""


class _Connection(asyncpg.Connection):
    """Nothing is set on a connection that the next user would have to be protected from: no reset is asked for."""

    def get_reset_query(self) -> str:
        return ""


def unavailable(error: BaseException) -> ProblemError:
    return ProblemError("store_unavailable", f"the database cannot be reached ({type(error).__name__})")


async def connect(url: str) -> Connection:
    """A lone connection, for migrations and for listening."""
    try:
        return await asyncpg.connect(url, timeout=CONNECT_SECONDS, server_settings=_SETTINGS)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise UnreachableError(f"the database cannot be reached: {type(error).__name__}: {error}") from error


_SETTINGS = {"search_path": SCHEMA, "application_name": "noroshi", "jit": "off"}
_SILENT_AFTER = timedelta(seconds=10)
_OF_TURNS = {
    **_SETTINGS,
    "application_name": "noroshi turns",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": f"{_SILENT_AFTER.total_seconds():.0f}s",
}
"""A turn waits for nothing but the database: a process that is silent in the middle of one is frozen or cut off, and
must not keep its locks (an account's row is every sender's) until somebody notices. Its statements ask for sets whose
size the planner cannot see, of tables that were small when it last looked: none is meant to read a whole table."""

_END_SILENT = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = 'noroshi turns'
        AND state = 'active' AND wait_event_type = 'Client' AND wait_event = 'ClientRead'
        AND greatest(state_change, query_start) < clock_timestamp() - $1::interval"""


class Pool:
    """Up to `size` connections, each lent to one at a time; opened once, closed once."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._size = size
        self._pool: asyncpg.Pool[Any] | None = None

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=1,
            max_size=self._size,
            connection_class=_Connection,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            max_inactive_connection_lifetime=0,
            server_settings=_OF_TURNS,
        )

    async def close(self) -> None:
        """Politely if the server answers; else without it."""
        if self._pool is None:
            return
        try:
            await asyncio.wait_for(self._pool.close(), CONNECT_SECONDS)
        except LOST:
            self._pool.terminate()

    @asynccontextmanager
    async def borrow(self, within: float = CONNECT_SECONDS) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise asyncpg.InterfaceError("the store has not been started")
        async with self._pool.acquire(timeout=within) as connection:
            yield connection


async def end_silent(connection: Connection, after: timedelta = _SILENT_AFTER) -> int:
    """Ends the turns of processes that fell silent while a statement was being prepared or copied in: the server takes
    those for busy, so that its own limit for silence does not count. How many there were."""
    return int(await connection.fetchval(_END_SILENT, after))


async def check_server(connection: Connection, *, is_unsafe: bool) -> None:
    """Raises UnsafeStoreError if a commit of this server may be lost in a crash, unless that is meant."""
    number = int(await connection.fetchval("SHOW server_version_num"))
    if number < OLDEST_SERVER * 10_000:
        raise UnsafeStoreError(f"PostgreSQL {OLDEST_SERVER} or newer is needed; the server is {number // 10_000}")
    for setting in ("fsync", "synchronous_commit"):
        if await connection.fetchval(f"SHOW {setting}") == "off" and not is_unsafe:
            raise UnsafeStoreError(
                f"the server runs with {setting}=off and may forget what was accepted: set it to on, "
                "or start with --unsafe (NOROSHI_UNSAFE=on) if the data may be lost"
            )


async def migrate(connection: Connection, up_to: int | None = None) -> int:
    """Brings the database to the current schema, each step in its own transaction; answers the schema's number.
    Processes that start together wait for the first. `up_to` stops at an earlier one, for a backup that is to be
    restored into it."""
    steps = [step for step in migrations() if up_to is None or step[0] <= up_to]
    await connection.execute("SELECT pg_advisory_lock(7317, 0)")
    try:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (number integer PRIMARY KEY, name text NOT NULL)"
        )
        current = await connection.fetchval("SELECT coalesce(max(number), 0) FROM noroshi.migrations")
        if current > steps[-1][0]:
            raise NewerSchemaError(f"the database has schema {current}, this version knows {steps[-1][0]}")
        for number, name, script in steps:
            if number > current:
                async with connection.transaction():
                    await connection.execute(script)
                    await connection.execute("INSERT INTO noroshi.migrations VALUES ($1, $2)", number, name)
    finally:
        await connection.execute("SELECT pg_advisory_unlock(7317, 0)")
    return steps[-1][0]
