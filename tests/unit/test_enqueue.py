"""What `enqueue` refuses before it writes, and how little it does to the caller's connection (DESIGN 7.1)."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import noroshi
from noroshi import BadRequestError, NoStoreError, UnsafeConnectionError, aenqueue, enqueue
from noroshi.domain.ids import read
from noroshi.domain.requests import read_request
from noroshi.enqueueing.statements import INSERT, Dialect, Statement
from noroshi.storage.sqlite.connection import migrate, open_connection

FINE: dict[str, Any] = {"user_ids": ["hanako"], "template_id": "welcome"}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = open_connection(str(tmp_path / "noroshi.db"), synchronous="OFF")
    migrate(store)
    store.close()
    return tmp_path / "noroshi.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(path)
    opened.execute("PRAGMA wal_autocheckpoint=0")
    yield opened
    opened.close()


def requests_in(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT request_id, idempotency_key, body, state, created_by FROM requests").fetchall()


# what is written


def test_a_request_is_written_as_the_api_would_read_it(connection: sqlite3.Connection) -> None:
    request_id = enqueue(
        connection,
        user_ids=("hanako", "taro"),
        template_id="welcome",
        channels=["email"],
        data={"order": 17, "lines": ["tea\n", "cake\t"], "at": NOON},
        priority="high",
        scheduled_at=NOON + timedelta(hours=1),
        expires_at=NOON + timedelta(hours=2),
        idempotency_key="order-17",
        category="orders",
        strategy="all",
        digest_key="d",
        created_by="shop",
    )
    ((raw, key, body, state, created_by),) = requests_in(connection)
    assert (raw, key, state, created_by) == (read(request_id), "order-17", 0, "shop")
    request = read_request(body)
    assert (request.user_ids, request.channels, request.data["at"]) == (
        ["hanako", "taro"],
        ["email"],
        "2026-03-02T12:00:00Z",
    )
    assert (request.scheduled_at, request.idempotency_key) == (NOON + timedelta(hours=1), "order-17")


def test_an_id_is_a_uuid_of_version_7(connection: sqlite3.Connection) -> None:
    parsed = UUID(enqueue(connection, **FINE))
    assert (parsed.version, parsed.variant) == (7, "specified in RFC 4122")


def test_what_is_none_is_left_out(connection: sqlite3.Connection) -> None:
    enqueue(connection, **FINE, channels=None, data=None, idempotency_key=None)
    ((_, key, body, _, _),) = requests_in(connection)
    assert (key, body) == (None, b'{"user_ids":["hanako"],"template_id":"welcome"}')


def test_nothing_is_committed_and_a_rollback_takes_it_back(connection: sqlite3.Connection) -> None:
    enqueue(connection, **FINE)
    assert connection.in_transaction
    connection.rollback()
    assert requests_in(connection) == []


def test_a_key_that_is_held_gives_the_earlier_id_and_the_transaction_goes_on(connection: sqlite3.Connection) -> None:
    first = enqueue(connection, **FINE, idempotency_key="order-17")
    connection.commit()
    connection.execute("CREATE TABLE orders (order_id TEXT)")
    assert enqueue(connection, **FINE, idempotency_key="order-17", data={"other": 1}) == first
    connection.execute("INSERT INTO orders VALUES ('order-17')")
    connection.commit()
    assert len(requests_in(connection)) == 1


def test_one_insert_is_all_that_is_written(connection: sqlite3.Connection) -> None:
    told: list[str] = []
    connection.set_trace_callback(told.append)
    enqueue(connection, **FINE, idempotency_key="order-17")
    assert [line.split()[0] for line in told] == ["PRAGMA", "SELECT", "PRAGMA", "BEGIN", "INSERT"]
    told.clear()
    enqueue(connection, **FINE, idempotency_key="order-17")
    assert [line.split()[0] for line in told] == ["PRAGMA", "SELECT", "PRAGMA", "INSERT", "SELECT"]


@pytest.mark.parametrize("factory", [sqlite3.Row, lambda _cursor, row: {"row": row}])
def test_rows_of_another_make_do_no_harm(connection: sqlite3.Connection, factory: Any) -> None:
    connection.row_factory = factory
    assert enqueue(connection, **FINE, idempotency_key="k") == enqueue(connection, **FINE, idempotency_key="k")


@pytest.mark.parametrize("dialect", Dialect)
def test_the_insert_names_its_schema_and_lets_a_repeated_key_be(dialect: Dialect) -> None:
    text = " ".join(INSERT[dialect].split())
    assert text.startswith(f"INSERT INTO {'noroshi' if dialect is Dialect.POSTGRES else 'main'}.requests ")
    assert text.endswith("ON CONFLICT DO NOTHING RETURNING request_id")


def test_every_driver_gets_its_own_marks() -> None:
    statement = Statement("SELECT {b}, {a}", {"b": 1, "a": 2})
    marked = [statement.with_marks(mark) for mark in ("?", "%s", "$", ":")]
    assert marked == ["SELECT ?, ?", "SELECT %s, %s", "SELECT $1, $2", "SELECT :b, :a"]


# what is refused


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"user_ids": []}, "user_ids"),
        ({"user_ids": ["u"] * 10_001}, "user_ids"),
        ({"user_ids": "hanako"}, "user_ids"),
        ({"user_ids": ["a", 4]}, "user_ids[1]"),
        ({"user_ids": ["a\x00"]}, "user_ids[0]"),
        ({"user_ids": ["\ud800"]}, "user_ids"),
        ({"template_id": ""}, "template_id"),
        ({"template_id": "a\tb"}, "template_id"),
        ({"channels": []}, "channels"),
        ({"channels": ["pigeon"]}, "channels[0]"),
        ({"priority": "urgent"}, "priority"),
        ({"data": [1]}, "data"),
        ({"data": {"user": {}}}, "data.user"),
        ({"data": {"n": float("nan")}}, "data"),
        ({"data": {"n": [float("inf")]}}, "data"),
        ({"data": {"n": 2**70}}, "data.n"),
        ({"data": {"n": object()}}, "data"),
        ({"data": {"a\x00": 1}}, "data"),
        ({"data": {"a": "\x00"}}, "data.a"),
        ({"data": {"text": "x" * 5_000_000}}, "data"),
        ({"attachments": [{"filename": "../a", "content": b"x"}]}, "attachments[0].filename"),
        ({"attachments": [{"filename": "a", "content": bytes(9_000_000)}]}, "attachments"),
        ({"attachments": [{"filename": "a"}]}, "attachments[0].content"),
        ({"scheduled_at": datetime(2026, 3, 2, 12)}, "scheduled_at"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"scheduled_at": NOON, "expires_at": NOON.astimezone(timezone(timedelta(hours=9)))}, "expires_at"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "x" * 256}, "idempotency_key"),
        ({"idempotency_key": "a\nb"}, "idempotency_key"),
        ({"strategy": "best_one"}, "strategy"),
        ({"colour": "red"}, "colour"),
        ({"tenant": ""}, "tenant"),
        ({"tenant": "nobody"}, "tenant"),
        ({"tenant": "nobody", "idempotency_key": "k"}, "tenant"),
        ({"created_by": "a\x00b"}, "created_by"),
    ],
)
def test_bad_input_names_its_field_and_writes_nothing(
    connection: sqlite3.Connection, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        enqueue(connection, **{**FINE, **change})
    assert isinstance(refused.value, BadRequestError)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")
    assert requests_in(connection) == []


@pytest.mark.parametrize("depth", [64, 5_000])
def test_deep_data_is_refused(connection: sqlite3.Connection, depth: int) -> None:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    with pytest.raises(BadRequestError, match=r"^data"):
        enqueue(connection, **FINE, data={"deep": data})


def test_a_missing_field_is_named(connection: sqlite3.Connection) -> None:
    with pytest.raises(BadRequestError, match="template_id"):
        enqueue(connection, user_ids=["hanako"])  # type: ignore[typeddict-item]


def test_what_is_no_connection_is_refused() -> None:
    with pytest.raises(TypeError, match=r"psycopg, asyncpg, SQLAlchemy, Django or sqlite3, not builtins\.object"):
        enqueue(object(), **FINE)


async def test_a_synchronous_connection_is_not_awaited(connection: sqlite3.Connection) -> None:
    with pytest.raises(TypeError, match="use `enqueue"):
        await aenqueue(connection, **FINE)


DJANGO = """
import sys
from django.conf import settings
from django.db import connections
from noroshi import enqueue
options = {"init_command": "PRAGMA wal_autocheckpoint=0"}
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1], "OPTIONS": options}}
)
for connection in ("default", connections["default"]):
    print(enqueue(connection, user_ids=["hanako"], template_id="welcome", idempotency_key="order-17"))
"""


def test_djangos_connections_may_be_named(path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", DJANGO, path], capture_output=True, text=True, check=True)
    first, again = ran.stdout.split()
    assert first == again


def test_a_name_means_nothing_without_django(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "django.db", raising=False)
    with pytest.raises(TypeError, match="Django is not loaded"):
        enqueue("default", **FINE)


# the file


def test_a_connection_that_would_move_the_log_is_refused(path: Path) -> None:
    connection = sqlite3.connect(path)
    with pytest.raises(UnsafeConnectionError, match="wal_autocheckpoint=0"):
        enqueue(connection, **FINE)
    assert not connection.in_transaction
    connection.close()


def test_a_process_that_serves_the_file_may_not_open_it_with_another_sqlite(
    path: Path, connection: sqlite3.Connection
) -> None:
    ours = open_connection(str(path))
    with pytest.raises(UnsafeConnectionError, match="two copies"):
        enqueue(connection, **FINE)
    ours.close()


def test_a_library_without_the_bug_may_move_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noroshi.enqueueing.enqueue, "_SAFE_LIBRARY", (3, 35, 0))
    connection = sqlite3.connect(path)
    assert enqueue(connection, **FINE)
    connection.close()


@pytest.mark.parametrize("found", ["CREATE TABLE tenants (tenant, name)", "CREATE TABLE requests (tenant)"])
def test_a_file_without_our_tables_is_said_to_be_so(tmp_path: Path, found: str) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute(found)
    with pytest.raises(NoStoreError, match="noroshi migrate"):
        enqueue(connection, **FINE)
    connection.close()
