"""What tests ask for: the shared PostgreSQL, a database of their own on it, or a server of their own beside it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.services.browser import find_chromium
from tests.services.databases import Databases
from tests.services.installation import ServiceMissingError
from tests.services.postgres import PostgresServer, running_postgres
from tests.services.shared import url_of

StartPostgres = Callable[..., PostgresServer]


@contextmanager
def skipping(name: str) -> Iterator[None]:
    """A missing server skips the test, and fails it where services are required (tests/conftest.py)."""
    try:
        yield
    except ServiceMissingError as why:
        pytest.skip(f"service missing: {name}: {why}")


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of the maintenance database."""
    with skipping("postgres"):
        return url_of("postgres")


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """A browser; two processes of a run may both look for it, and apt waits for the other."""
    with skipping("chromium"):
        return find_chromium()


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: str) -> Iterator[Databases]:
    """`with postgres_databases.fresh(migrate) as url`: migrated once, then cleaned after each use."""
    databases = Databases(postgres_server, f"test_{os.getpid()}")
    yield databases
    databases.close()


@pytest.fixture
def postgres_url(postgres_databases: Databases) -> Iterator[str]:
    """An empty database."""
    with postgres_databases.fresh() as url:
        yield url


@pytest.fixture
def start_postgres() -> Iterator[StartPostgres]:
    """Servers for this test alone: `start_postgres(fsync="off")`, `start_postgres(standby_of=first)`."""
    with ExitStack() as ends:

        def start(*, standby_of: PostgresServer | None = None, **settings: str) -> PostgresServer:
            with skipping("postgres"):
                return ends.enter_context(running_postgres(standby_of=standby_of, **settings))

        yield start
