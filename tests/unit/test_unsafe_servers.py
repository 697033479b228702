"""A PostgreSQL that may forget what it has committed: nothing starts on it, unless that is meant (W3)."""

from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tests.faults.machinery.processes import NotReadyError, ServedNoroshi, WorkingNoroshi

from noroshi.storage.errors import UnsafeStoreError
from noroshi.storage.postgres.connection import check_server

DURABLE = {"server_version_num": "150000", "fsync": "on", "synchronous_commit": "on"}
FORGETFUL = [{"fsync": "off"}, {"synchronous_commit": "off"}]


class Server:
    """A connection to one that has these settings."""

    def __init__(self, **settings: str) -> None:
        self._settings = {**DURABLE, **settings}

    async def fetchval(self, query: str) -> str:
        return self._settings[query.removeprefix("SHOW ")]


async def test_a_server_that_keeps_its_commits_is_taken() -> None:
    await check_server(Server(), is_unsafe=False)
    await check_server(Server(synchronous_commit="remote_apply"), is_unsafe=False)


@pytest.mark.parametrize("settings", FORGETFUL, ids=lambda settings: next(iter(settings)))
async def test_a_server_that_may_forget_is_refused_by_the_setting_that_makes_it_so(settings: dict[str, str]) -> None:
    (name,) = settings
    with pytest.raises(UnsafeStoreError, match=rf"{name}=off.*--unsafe"):
        await check_server(Server(**settings), is_unsafe=False)
    await check_server(Server(**settings), is_unsafe=True)


@pytest.fixture
def forgetful_url(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
    return postgres_url


@pytest.mark.parametrize("kind", [ServedNoroshi, WorkingNoroshi], ids=["serve", "worker"])
def test_serve_and_worker_are_refused_with_exit_code_2_and_start_if_it_is_meant(
    kind: type[ServedNoroshi], forgetful_url: str, tmp_path: Path
) -> None:
    def start(*words: str) -> int:
        with kind(tmp_path / "data", {"NOROSHI_STORE": forgetful_url}, words=words) as process:
            process.start()
            return process.stop()

    with pytest.raises(NotReadyError, match=r"noroshi: the server runs with synchronous_commit=off.*--unsafe") as why:
        start()
    assert why.value.code == 2
    assert start("--unsafe") == 0
