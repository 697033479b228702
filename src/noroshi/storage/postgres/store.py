"""PostgresStore: a database's URL in, every port of the store on it out."""

from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.meter import Meter
from noroshi.ports.sealer import Sealer
from noroshi.storage.postgres.connection import Pool, check_server, connect, migrate
from noroshi.storage.postgres.days import make_days_ahead
from noroshi.storage.postgres.history import PostgresHistory
from noroshi.storage.postgres.turns import PostgresReadings, PostgresStatements, PostgresTurns
from noroshi.storage.store import Store

WRITERS = 4
READERS = 3
"""Connections of one process; a few suffice, for every statement carries many rows."""


class PostgresStore(Store):
    """All ports over two pools: readers can never use up what writers need. `clock` is for tests: without it the
    time is the database's."""

    def __init__(
        self,
        url: str,
        *,
        sealer: Sealer,
        meter: Meter,
        crash_points: CrashPoints,
        is_unsafe: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._url = url
        self._is_unsafe = is_unsafe
        self._clock = clock
        self._writing = Pool(url, WRITERS)
        self._reading = Pool(url, READERS)
        turns = PostgresTurns(self._writing, clock, meter, crash_points)
        readings = PostgresReadings(self._reading, clock)
        super().__init__(turns, readings, sealer, is_alone=False)
        self.history = PostgresHistory(turns, readings, url)

    async def start(self) -> int:
        number = await self._migrate()
        await self._writing.open()
        await self._reading.open()
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
        await self._reading.close()
        await self._writing.close()
