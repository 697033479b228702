"""PostgresStore: a database's URL in, every port of the store on it out."""

import os
import socket

from noroshi.ports.announcements import Announcements
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.meter import Meter
from noroshi.ports.sealer import Sealer
from noroshi.storage.postgres.announcing import PostgresAnnouncements
from noroshi.storage.postgres.connection import LOST, Pool, check_server, connect, migrate
from noroshi.storage.postgres.days import make_days_ahead
from noroshi.storage.postgres.duties import PostgresDuties
from noroshi.storage.postgres.history import PostgresHistory
from noroshi.storage.postgres.turns import PostgresReadings, PostgresStatements, PostgresTurns
from noroshi.storage.store import Store

WRITERS = 4
READERS = 3
LOOKERS = 2
"""Connections of one process; a few suffice, for every statement carries many rows."""

_PATIENCE_SECONDS = 3.0


class PostgresStore(Store):
    """All ports over three pools: readers never use up what writers need, and those who look through history never
    what either needs. `clock` is for tests: without it the time is the database's; so is `holder`, the name of this
    process."""

    def __init__(
        self,
        url: str,
        *,
        sealer: Sealer,
        meter: Meter,
        crash_points: CrashPoints,
        is_unsafe: bool = False,
        clock: Clock | None = None,
        holder: str | None = None,
    ) -> None:
        self._url = url
        self._is_unsafe = is_unsafe
        self._clock = clock
        self._writing = Pool(url, WRITERS)
        self._reading = Pool(url, READERS)
        self._showing = Pool(url, LOOKERS)
        turns = PostgresTurns(self._writing, clock, meter, crash_points)
        readings = PostgresReadings(self._reading, clock)
        shown = PostgresReadings(self._showing, clock)
        duties = PostgresDuties(turns, self._reading, holder or f"{socket.gethostname()}:{os.getpid()}")
        super().__init__(turns, readings, sealer, duties, is_alone=False, shown=shown)
        self.history = PostgresHistory(turns, shown, url)

    async def start(self) -> int:
        number = await self._migrate()
        await self._writing.open()
        await self._reading.open()
        await self._showing.open()
        return number

    async def _migrate(self) -> int:
        connection = await connect(self._url)
        try:
            await check_server(connection, is_unsafe=self._is_unsafe)
            number = await migrate(connection)
            await make_days_ahead(connection, await PostgresStatements(connection, self._clock).moment())
        finally:
            await connection.close()
        return number

    async def stop(self) -> None:
        await self._showing.close()
        await self._reading.close()
        await self._writing.close()

    def announcements(self, clock: Clock) -> Announcements:
        return PostgresAnnouncements(self._url, clock)

    async def trouble(self) -> str | None:
        try:
            async with self._reading.borrow(_PATIENCE_SECONDS) as connection:
                await connection.fetchval("SELECT 1", timeout=_PATIENCE_SECONDS)
        except LOST as error:
            return f"the database does not answer ({type(error).__name__})"
        return None
