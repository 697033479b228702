"""What only the SQLite store promises: its schema, its named queries, and how few statements addressing takes."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from noroshi.domain.people import Preferences, QuietHours
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.storage.errors import NewerSchemaError
from noroshi.storage.sqlite import writer
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.sql import SQL, migrations
from noroshi.storage.sqlite.store import open_inline_store
from tests.cast import Person
from tests.conformance.ground import Ground
from tests.conformance.stores import HandClock, a_sealer

SOURCES = Path(writer.__file__).parent
SMALL_TABLES = {"accounts", "pauses"}
"""A handful of rows each: reading all of them is meant."""


def schema_of(connection: apsw.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()


def a_fresh_connection() -> apsw.Connection:
    connection = open_connection(":memory:")
    migrate(connection)
    return connection


# the schema


def test_all_migrations_together_are_the_schema_of_a_fresh_store(tmp_path: Path) -> None:
    by_hand = apsw.Connection(str(tmp_path / "by-hand.db"))
    for _, _, script in migrations():
        by_hand.execute(script)
    assert schema_of(by_hand) == schema_of(a_fresh_connection())


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_migrating_twice_changes_nothing() -> None:
    connection = a_fresh_connection()
    before = schema_of(connection)
    assert migrate(connection) == len(migrations())
    assert schema_of(connection) == before


def test_a_file_of_a_newer_version_is_refused() -> None:
    connection = a_fresh_connection()
    connection.pragma("user_version", len(migrations()) + 1)
    with pytest.raises(NewerSchemaError, match=str(len(migrations()) + 1)):
        migrate(connection)


def test_the_tenant_stands_first_in_every_primary_and_unique_key() -> None:
    connection = a_fresh_connection()
    tables = [name for kind, name, _, _ in schema_of(connection) if kind == "table"]
    assert len(tables) > 15
    for table in tables:
        keys = [
            [column for _, _, column in connection.execute(f"PRAGMA index_info('{name}')")]
            for _, name, is_unique, *_ in connection.execute(f"PRAGMA index_list('{table}')")
            if is_unique
        ]
        columns = connection.execute(f"PRAGMA table_info('{table}')").fetchall()
        keys.append([column for rank, column in sorted((c[5], c[1]) for c in columns) if rank])
        assert {key[0] for key in keys} == {"tenant"}, table


# the queries


def plan_of(connection: apsw.Connection, name: str) -> list[str]:
    query = SQL[name]
    numbered = [int(number) for number in re.findall(r"\?(\d+)", query)]
    parameters = max(numbered) if numbered else query.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", [None] * parameters)]


@pytest.mark.parametrize("name", SQL)
def test_every_named_query_prepares_and_never_walks_through_a_table(name: str) -> None:
    walks = [
        step
        for step in plan_of(a_fresh_connection(), name)
        if (scan := re.fullmatch(r"SCAN (\w+)", step)) and scan[1] not in SMALL_TABLES
    ]
    in_memory = {"SCAN a", "SCAN dead", "SCAN lanes"}  # what the query itself has put together
    assert set(walks) <= in_memory


@pytest.mark.parametrize(
    "name", ["count_statuses_of_batches", "list_batches", "list_caught", "list_templates", "list_users"]
)
def test_a_page_of_a_list_is_read_without_reading_the_whole_tenant(name: str) -> None:
    plan = plan_of(a_fresh_connection(), name)
    assert [step for step in plan if "(tenant=?)" in step] == []


def test_every_named_query_is_used_and_every_used_one_exists() -> None:
    folders = (SOURCES.parent, SOURCES.parents[1] / "care")
    source = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.py"))
    assert [name for name in SQL if f'"{name}"' not in source] == []
    asked = set(
        re.findall(r'\.(?:rows|rows_for|one|run|has_changed|change_many|rows_for_people|run_many)\(\s*"(\w+)"', source)
    )
    assert len(asked) > 40
    assert asked <= set(SQL)


def test_every_query_says_what_it_is_for() -> None:
    for path in SOURCES.joinpath("queries").glob("*.sql"):
        for block in path.read_text(encoding="utf-8").split("-- name: ")[1:]:
            assert block.splitlines()[1].startswith("-- "), block.splitlines()[0]


# how many statements


class _Counting(writer.SqliteTurn):
    """A turn that remembers all there were."""

    __slots__ = ()
    seen: list["_Counting"]

    def __init__(self, connection: apsw.Connection, group: writer.CommitGroup) -> None:
        super().__init__(connection, group)
        self.seen.append(self)


def guests(count: int, devices: int) -> list[Person]:
    return [
        Person(f"guest-{n}", f"Guest {n}", email=f"{n}@example.com", devices=tuple(f"{n}-{d}" for d in range(devices)))
        for n in range(count)
    ]


async def statements_for(people: Sequence[Person], monkeypatch: pytest.MonkeyPatch, *, asleep: int = 0) -> int:
    """How many statements the keeping and deciding of one batch for these people took."""
    clock = HandClock()
    store = open_inline_store(
        open_connection(":memory:"), sealer=a_sealer(), clock=clock, meter=NullMeter(), crash_points=NoCrashPoints()
    )
    ground = Ground(store, clock)
    await ground.meet(*people)
    await ground.write("welcome", "email", "push", "in_app")
    for person in people[:asleep]:
        await ground.wish(person, Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00")))
    with monkeypatch.context() as patch:
        patch.setattr(_Counting, "seen", [], raising=False)
        patch.setattr(writer, "SqliteTurn", _Counting)
        await ground.accept(*people, channels=["email", "push", "in_app"])
        (turn,) = _Counting.seen
    store.close()
    return turn.count


@pytest.mark.parametrize("devices", [0, 2])
async def test_addressing_takes_as_many_statements_for_500_people_as_for_one(
    monkeypatch: pytest.MonkeyPatch, devices: int
) -> None:  # N5.1
    for_one = await statements_for(guests(1, devices), monkeypatch)
    assert for_one == await statements_for(guests(500, devices), monkeypatch)
    assert for_one < 25


async def test_mixed_fates_take_no_more_statements_for_500_people_than_for_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # N5.1
    for_two = await statements_for(guests(2, 1), monkeypatch, asleep=1)
    assert for_two == await statements_for(guests(500, 1), monkeypatch, asleep=250)


# one process


async def test_at_the_start_every_lease_of_a_former_process_has_run_out() -> None:  # W10
    clock = HandClock()
    store = open_inline_store(
        open_connection(":memory:"), sealer=a_sealer(), clock=clock, meter=NullMeter(), crash_points=NoCrashPoints()
    )
    ground = Ground(store, clock)
    guest = guests(1, 0)[0]
    await ground.meet(guest)
    await ground.write()
    await ground.accept(guest)
    claim = await ground.claim()
    assert await store.queue.expired(None, 10, is_start=False) == []
    ((_, expired),) = await store.queue.expired(None, 10, is_start=True)
    assert (expired.key, expired.fence, expired.claims) == (claim.key, claim.fence, 1)
    store.close()
