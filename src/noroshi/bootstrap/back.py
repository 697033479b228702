"""Settings in, the store without a server out."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from noroshi.bootstrap.crashing import crash_points
from noroshi.bootstrap.minting import Minting, mint_key, minting
from noroshi.bootstrap.postgres import open_postgres
from noroshi.bootstrap.shop import find_line, open_shop
from noroshi.bootstrap.tickets import write_ticket
from noroshi.domain.records import KeyScope
from noroshi.machine.clock import SystemClock
from noroshi.machine.dice import SystemDice
from noroshi.machine.meter import NullMeter
from noroshi.machine.outgoing.opening import LateOutgoing
from noroshi.machine.sealing import AesSealer
from noroshi.machine.secrets import load_secrets
from noroshi.ports.clock import Clock
from noroshi.ports.line import Line
from noroshi.reservations.shop import Shop
from noroshi.settings import Settings
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.store import open_inline_store
from noroshi.storage.store import Store


class Back:
    """The store without a server: for commands that write a little beside serving processes."""

    def __init__(self, store: Store, schema: int, minting: Minting, shop: Shop) -> None:
        self.store = store
        self.shop = shop
        self.schema = schema
        self._minting = minting

    async def mint_key(
        self,
        name: str,
        scopes: Sequence[KeyScope],
        per_minute: int | None = None,
        expires_in: timedelta | None = None,
    ) -> str:
        return await mint_key(self.store, self._minting, name, scopes, per_minute, expires_in)

    async def write_ticket(self) -> str:
        """For a link that opens the console once."""
        return await write_ticket(self.store, self._minting)


@asynccontextmanager
async def opened_back(
    settings: Settings, *, clock: Clock | None = None, line: Line | None = None
) -> AsyncIterator[Back]:
    """The store at its current schema, for as long as the block lasts. `clock` and `line` stand in for the system's
    clock and the LINE of the settings."""
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    clock, dice, points = clock or SystemClock(), SystemDice(), crash_points(settings)
    secrets = load_secrets(settings.data, settings.secret_key)
    sealer = AesSealer(secrets.masters, secrets.blind_index)
    store: Store
    if settings.is_on_postgres:
        database = open_postgres(settings, sealer, NullMeter())
        schema = await database.start()
        store = database
    else:
        connection = open_connection(str(settings.store_path))
        schema = migrate(connection)
        store = open_inline_store(connection, sealer=sealer, clock=clock, meter=NullMeter(), crash_points=points)
    outgoing = LateOutgoing(settings.http_ca)
    line = line or find_line(settings, outgoing, store.caught if settings.catcher else None)
    shop = open_shop(settings, store, line, clock=clock, dice=dice, crash_points=points, secrets=secrets)
    try:
        yield Back(store, schema, minting(clock, dice, secrets), shop)
    finally:
        await outgoing.close()
        await store.stop()
