"""The store as it lies on the disk: a data folder goes in, what its file says comes out, without touching it."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import EndpointId, NotificationId
from noroshi.domain.states import Status
from noroshi.domain.templates import Content
from tests.faults.machinery.reckoning import Ended
from tests.stand_ins.ledger_provider.ledger import TakenMessage
from tests.stand_ins.ledger_provider.wire import content_hash

_ENDED = """
    SELECT notification_id, status, max(at, coalesce((
        SELECT max(l.at) FROM ledger l WHERE l.tenant = n.tenant AND l.notification_id = n.notification_id
    ), 0)) FROM notifications n"""
_CAUGHT = "SELECT tenant, notification_id, user_id, channel, caught_at, subject, title, body FROM caught"
_UNFINISHED = "SELECT (SELECT count(*) FROM deliveries), (SELECT count(*) FROM batches WHERE state IN (0, 2))"
_LOOK_EVERY = 0.0005


def read_ended(connection: apsw.Connection) -> list[Ended]:
    """Every notification with its status, and when that was decided."""
    return [Ended(NotificationId(one), Status(status), at) for one, status, at in connection.execute(_ENDED)]


class StoreFile:
    def __init__(self, data: Path) -> None:
        self._path = data / "noroshi.db"
        self.path = str(self._path)

    def ended(self) -> list[Ended]:
        with self._connected(apsw.SQLITE_OPEN_READONLY) as connection:
            return read_ended(connection)

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

    def is_drained(self) -> bool:
        """Nothing waits to be sent, decided or withdrawn."""
        return self.rows(_UNFINISHED) == [(0, 0)]

    def count(self, table: str, where: str = "true") -> int:
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE {where}")[0][0])  # noqa: S608 - a test's own words

    def rows(self, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._connected(apsw.SQLITE_OPEN_READONLY) as connection:
            return connection.execute(question, parameters).fetchall()

    @contextlib.contextmanager
    def held_when(self, question: str, is_over: Callable[[], bool]) -> Iterator[bool]:
        """The write lock, from the moment the answer is not 0: the product's next commit waits until this is left.
        False if it is over before that."""
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

    @contextlib.contextmanager
    def _connected(self, flags: int) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self._path), flags=flags)
        # The log that a dead process left is for the next start to recover, not for us to tidy up.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            yield connection
        finally:
            connection.close()
