"""Opening a store for care: settings in, its tables out, and errors of disk and database as one line."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module

import apsw

from noroshi.bootstrap.locking import DataLock
from noroshi.care.errors import CareError
from noroshi.domain.ids import TenantId
from noroshi.machine.clock import SystemClock
from noroshi.machine.sealing import AesSealer
from noroshi.machine.secrets import FILE_NAME, load_secrets
from noroshi.settings import Settings
from noroshi.storage.sqlite.tables import SqliteTables
from noroshi.storage.tables import StoreTables


@asynccontextmanager
async def opened_tables(settings: Settings, *, is_reader: bool) -> AsyncIterator[StoreTables]:
    """A reader sees one moment, and never makes a store that is not there."""
    tables = await _open(settings, is_reader=is_reader)
    try:
        yield tables
    except tables.failures as error:
        raise CareError(f"the store cannot be used: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise CareError(f"the disk failed: {error.strerror or error}") from error
    finally:
        await tables.close()


async def _open(settings: Settings, *, is_reader: bool) -> StoreTables:
    if settings.is_on_postgres:
        module = import_module("noroshi.storage.postgres.tables")
        opened: StoreTables = await module.open_postgres_tables(settings.store, SystemClock(), is_reader=is_reader)
        return opened
    path = settings.store_path
    if is_reader and not path.exists():
        raise CareError(f"there is no store at {path}")
    try:
        return SqliteTables(str(path), SystemClock(), is_reader=is_reader)
    except apsw.Error as error:
        raise CareError(f"{path} cannot be opened: {type(error).__name__}: {error}") from error


@contextmanager
def kept_to_ourselves(settings: Settings) -> Iterator[None]:
    """Nobody serves the file meanwhile. (A database says by itself who uses it.)"""
    if settings.is_on_postgres:
        yield
        return
    lock = DataLock(settings.data)
    try:
        yield
    finally:
        lock.release()


def proof_of_keys(settings: Settings) -> str:
    """The same for the same keys, and reveals nothing of them. Never makes keys: those of a store that is there
    already must be found."""
    if settings.secret_key is None and not (settings.data / FILE_NAME).exists():
        raise CareError(
            f"{settings.data / FILE_NAME} is missing: put the keys of the store there, or set NOROSHI_SECRET_KEY"
        )
    secrets = load_secrets(settings.data, settings.secret_key)
    return AesSealer(secrets.masters, secrets.blind_index).blind_index(TenantId(0), "backup", "keys").hex()
