"""A product's store as others see it: a file or a database goes in, what it says comes out, without the product."""

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import apsw
import msgspec
import psycopg

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import EndpointId, NotificationId
from noroshi.domain.inbox import InboxContent
from noroshi.domain.states import Status
from noroshi.domain.templates import Content
from noroshi.ports.sealer import Sealer
from tests.faults.machinery.reckoning import Ended
from tests.services.databases import Databases, Prepare
from tests.stand_ins.ledger_provider.ledger import TakenMessage
from tests.stand_ins.ledger_provider.wire import content_hash
from tests.stores import make_schema

_ENDED = """
    SELECT n.notification_id, n.status, n.at, max(l.at) FROM notifications n
    LEFT JOIN ledger l ON l.tenant = n.tenant AND l.notification_id = n.notification_id
    GROUP BY n.tenant, n.notification_id, n.status, n.at"""
_CAUGHT = "SELECT tenant, notification_id, user_id, channel, caught_at, subject, title, body FROM caught"
_ENTRIES = """
    SELECT e.tenant, e.notification_id, e.user_id, e.at, u.data_key, e.sealed FROM inbox e
    JOIN users u ON u.tenant = e.tenant AND u.user_id = e.user_id"""
_UNFINISHED = "SELECT (SELECT count(*) FROM deliveries), (SELECT count(*) FROM batches WHERE state IN (0, 2))"
_SESSIONS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'noroshi%'"
_LOOK_EVERY = 0.0005
_ENDS_WITHIN = 30.0

Row = tuple[Any, ...]


class KeptStore:
    """At its `place`, the path of a file or a URL; `environment` puts a product on it."""

    kind: ClassVar[str]
    place: str
    environment: dict[str, str]
    _tables: ClassVar[str]

    def rows(self, question: str, *parameters: Any) -> list[Row]:
        """Answers in the tables' own words; parameters stand for the `?` of the question."""
        raise NotImplementedError

    def change(self, statement: str, *rows: Row) -> None:
        """Behind the product's back, once for each row of parameters."""
        raise NotImplementedError

    def held_when(self, question: str, is_over: Callable[[], bool]) -> AbstractContextManager[bool]:
        """From the moment the answer is not 0, the product's next commit of a batch waits until this is left. False
        if it is over before that."""
        raise NotImplementedError

    def await_alone(self) -> None:
        """Until the store knows that the product is dead: what that had not committed is undone."""
        raise NotImplementedError

    def ended(self) -> list[Ended]:
        """Every notification with its status, and when that was decided."""
        return [
            Ended(NotificationId(one), Status(status), max(at, told_at or 0))
            for one, status, at, told_at in self.rows(_ENDED)
        ]

    def unsettled(self) -> set[NotificationId]:
        """What is claimed and has no outcome yet."""
        return {NotificationId(one) for (one,) in self.rows("SELECT notification_id FROM deliveries WHERE state = 1")}

    def caught(self) -> list[TakenMessage]:
        """What the catcher took, in the form of a provider's ledger."""
        return [
            TakenMessage(
                at,
                DeliveryKey(tenant, NotificationId(one), EndpointId(0)),
                user_id,
                channel,
                content_hash(Content(body, subject, title)),
                number=1,
            )
            for tenant, one, user_id, channel, at, subject, title, body in self.rows(_CAUGHT)
        ]

    def entries(self, sealer: Sealer) -> list[TakenMessage]:
        """What is in people's inboxes, in the same form."""
        found: list[TakenMessage] = []
        for tenant, one, user_id, at, data_key, sealed in self.rows(_ENTRIES):
            shown = msgspec.json.decode(sealer.open(data_key, tenant, user_id, "inbox", sealed), type=InboxContent)
            key = DeliveryKey(tenant, NotificationId(one), EndpointId(0))
            content = Content(shown.body, None, shown.title)
            found.append(TakenMessage(at, key, user_id, "in_app", content_hash(content), number=1))
        return found

    def is_drained(self) -> bool:
        """Nothing waits to be sent, decided or withdrawn."""
        return self.rows(_UNFINISHED) == [(0, 0)]

    def count(self, table: str, where: str = "true") -> int:
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE {where}")[0][0])  # noqa: S608 - a test's own words

    def digest(self) -> str:
        """Of every row of every table, but for who sweeps at the moment: that is leased anew all the time."""
        digest = hashlib.sha256()
        for (name,) in self.rows(self._tables):
            if name == "duties":
                continue
            for row in sorted(map(repr, self.rows(f"SELECT * FROM {name}"))):  # noqa: S608 - its own tables
                digest.update(f"{name} {row}".encode())
        return digest.hexdigest()


class StoreFile(KeptStore):
    """SQLite's, in the data folder."""

    kind = "sqlite"
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed
    _tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"

    def __init__(self, data: Path) -> None:
        self.place = str(data / "noroshi.db")

    def rows(self, question: str, *parameters: Any) -> list[Row]:
        with self._connected(apsw.SQLITE_OPEN_READONLY) as connection:
            return connection.execute(question, parameters).fetchall()

    def change(self, statement: str, *rows: Row) -> None:
        with self._connected(apsw.SQLITE_OPEN_READWRITE) as connection, connection:
            connection.executemany(statement, rows or [()])

    @contextlib.contextmanager
    def held_when(self, question: str, is_over: Callable[[], bool]) -> Iterator[bool]:
        with self._connected(apsw.SQLITE_OPEN_READWRITE) as connection:
            is_held = False
            while not (is_held or is_over()):
                with contextlib.suppress(apsw.BusyError):
                    connection.execute("BEGIN IMMEDIATE")
                    is_held = bool(connection.execute(question).get)
                    if not is_held:
                        connection.execute("ROLLBACK")
                        time.sleep(_LOOK_EVERY)
            yield is_held
            if is_held:
                connection.execute("ROLLBACK")

    def await_alone(self) -> None:
        """The kernel has seen to it."""

    @contextlib.contextmanager
    def _connected(self, flags: int) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(self.place, flags=flags)
        # The log that a dead process left is for the next start to recover, not for us to tidy up.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            yield connection
        finally:
            connection.close()


class StoreDatabase(KeptStore):
    """PostgreSQL's, on the server of the run. Questions go over one connection, opened by the first of them and anew
    when the server was gone: to open it takes longer than most answers."""

    kind = "postgres"
    _tables = """SELECT relname FROM pg_class WHERE relnamespace = 'noroshi'::regnamespace
        AND relkind IN ('r', 'p') AND relname !~ '_[0-9]{8}$' ORDER BY relname"""

    def __init__(self, url: str) -> None:
        self.place = url
        self.environment = {"NOROSHI_STORE": url}
        self._asking: psycopg.Connection | None = None
        self._turn = threading.Lock()

    def rows(self, question: str, *parameters: Any) -> list[Row]:
        with self._turn:
            former = self._asking
            try:
                return self._ask(question, parameters)
            except psycopg.OperationalError:
                if former is None or former is not self._asking or not former.closed:
                    raise
                return self._ask(question, parameters)

    def _ask(self, question: str, parameters: Row) -> list[Row]:
        if self._asking is None or self._asking.closed:
            self._asking = self._connected()
            self._asking.autocommit = True
            self._asking.prepare_threshold = None
        return self._asking.execute(question.replace("?", "%s"), parameters or None).fetchall()

    def close(self) -> None:
        if self._asking is not None:
            self._asking.close()

    def change(self, statement: str, *rows: Row) -> None:
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows or [()])

    @contextlib.contextmanager
    def held_when(self, question: str, is_over: Callable[[], bool]) -> Iterator[bool]:
        with self._connected() as connection:
            is_held = False
            while not (is_held or is_over()):
                connection.execute("LOCK TABLE batches IN EXCLUSIVE MODE")
                (found,) = connection.execute(question).fetchone() or (0,)
                is_held = bool(found)
                if not is_held:
                    connection.rollback()
                    time.sleep(_LOOK_EVERY)
            yield is_held
            connection.rollback()

    def await_alone(self) -> None:
        deadline = time.monotonic() + _ENDS_WITHIN
        while self.rows(_SESSIONS):
            assert time.monotonic() < deadline, "the server has not noticed that its client is dead"
            time.sleep(_LOOK_EVERY)

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(self.place, options="-c search_path=noroshi")


class Stores(Protocol):
    """Stores of one kind, each for one product."""

    @property
    def kind(self) -> str: ...

    def opened(self, data: Path, prepare: Prepare = make_schema) -> AbstractContextManager[KeptStore]:
        """For a product with this data folder. `prepare` says how a database is made that it is to be a copy of."""
        ...


class StoreFiles:
    kind = StoreFile.kind

    @contextlib.contextmanager
    def opened(self, data: Path, prepare: Prepare = make_schema) -> Iterator[KeptStore]:
        """The file is in the folder, or will be."""
        yield StoreFile(data)


class StoreDatabases:
    kind = StoreDatabase.kind

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    @contextlib.contextmanager
    def opened(self, data: Path, prepare: Prepare = make_schema) -> Iterator[KeptStore]:
        with self._databases.fresh(prepare) as url, contextlib.closing(StoreDatabase(url)) as store:
            yield store


class OwnDatabase:
    """The database of a server that is to suffer: the only one, made at its first opening."""

    kind = StoreDatabase.kind

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_made = False

    @contextlib.contextmanager
    def opened(self, data: Path, prepare: Prepare = make_schema) -> Iterator[KeptStore]:
        if not self._is_made:
            prepare(self._url)
            self._is_made = True
        with contextlib.closing(StoreDatabase(self._url)) as store:
            yield store
