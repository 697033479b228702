"""Settings that name a PostgreSQL in, its store out."""

from importlib import import_module

from noroshi.bootstrap.crashing import crash_points
from noroshi.ports.meter import Meter
from noroshi.ports.sealer import Sealer
from noroshi.settings import Settings
from noroshi.storage.errors import UnreachableError
from noroshi.storage.store import Store


def open_postgres(settings: Settings, sealer: Sealer, meter: Meter) -> Store:
    """Loaded on first use: whoever stays on SQLite pays nothing for it."""
    try:
        module = import_module("noroshi.storage.postgres.store")
    except ImportError as error:
        raise UnreachableError(f"PostgreSQL needs the package {error.name}: pip install asyncpg") from error
    store: Store = module.PostgresStore(
        settings.store,
        sealer=sealer,
        meter=meter,
        crash_points=crash_points(settings),
        is_unsafe=settings.unsafe,
    )
    return store
