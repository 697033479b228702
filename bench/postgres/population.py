"""P1 on PostgreSQL: the population of one file in; a database to be copied for each measurement out."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw
import psycopg
from msgspec import Struct
from psycopg import sql

from bench.population import Population
from noroshi.bootstrap.back import opened_back
from noroshi.domain.ids import BatchId
from noroshi.settings import read_settings

TABLES = (
    "api_keys",
    "users",
    "endpoints",
    "suppressions",
    "templates",
    "batches",
    "batch_bodies",
    "notifications",
    "ledger",
    "message_ids",
)
_CHUNK = 20_000
_BOOLEANS = {"is_zone_confirmed", "is_active", "is_scheduled"}


class PgPopulation(Struct, frozen=True):
    """A database that processes can be started on, the folder with their secrets, and where its history ends."""

    folder: Path
    key: str
    last_batch: BatchId
    server: str
    database: str

    @property
    def url(self) -> str:
        return f"{self.server.rpartition('/')[0]}/{self.database}"

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.url, autocommit=True, options="-c search_path=noroshi")

    def number(self, question: str, *parameters: object) -> int:
        """The answer to a question that has one number; 0 for none."""
        with self.connect() as connection:
            row = connection.execute(question, parameters).fetchone()
        return int(str(row[0] or 0)) if row else 0


class PgPopulations:
    """P1 in a template database, made once from the file."""

    def __init__(self, server: str, of: Population) -> None:
        self._server = server
        self._copies = count(1)
        self._template = PgPopulation(of.folder, of.key, of.last_batch, server, "p1")
        _create(server, "p1")
        asyncio.run(_migrate(self._template))
        _pour(of, self._template)

    @contextmanager
    def copy(self) -> Iterator[PgPopulation]:
        """A population to be used up; on the disk before it is measured."""
        name = f"copy_{next(self._copies)}"
        _create(self._server, name, template=self._template.database)
        copied = PgPopulation(self._template.folder, self._template.key, self._template.last_batch, self._server, name)
        try:
            yield copied
        finally:
            with psycopg.connect(self._server, autocommit=True) as admin:
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _create(server: str, name: str, template: str = "template1") -> None:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
        admin.execute("CHECKPOINT")


async def _migrate(population: PgPopulation) -> None:
    async with opened_back(read_settings({}, {"data": str(population.folder), "store": population.url})):
        pass


def _pour(of: Population, into: PgPopulation) -> None:
    reader = of.open(is_reader=True)
    with into.connect() as connection:
        for table in TABLES:
            _pour_table(reader, connection, table)
        connection.execute("INSERT INTO person_locks SELECT DISTINCT noroshi_person(tenant, user_id) FROM users")
        connection.execute("VACUUM ANALYZE")
    reader.close()


def _pour_table(reader: apsw.Connection, connection: "psycopg.Connection[tuple[object, ...]]", table: str) -> None:
    cursor = reader.execute(f"SELECT * FROM {table}")  # noqa: S608 - a name of ours
    description = [name for name, _ in cursor.get_description()]
    places = [place for place, name in enumerate(description) if name in _BOOLEANS]
    columns = sql.SQL(", ").join(map(sql.Identifier, description))
    copying = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), columns)
    with connection.cursor() as writer, writer.copy(copying) as copy:
        for row in cursor:
            values = list(row)
            for place in places:
                values[place] = bool(values[place])
            copy.write_row(values)
