"""An order and its confirmation in one transaction, with sqlite3: both are there, or neither.

The shop's tables lie in Noroshi's file: a transaction over two files would not be one.

    python examples/enqueue_sqlite3.py .noroshi/noroshi.db order-17 hanako [--refused]
"""

import sqlite3
import sys
from contextlib import closing

from noroshi import enqueue


class PaymentRefusedError(Exception):
    """Whatever goes wrong in the shop after the notification was enqueued."""


def connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10)
    connection.execute("PRAGMA wal_autocheckpoint=0")  # the server moves the log into the file
    return connection


def place_order(connection: sqlite3.Connection, order_id: str, customer: str, *, is_refused: bool) -> None:
    with connection:  # commits, or rolls back
        connection.execute("INSERT INTO orders (order_id, customer) VALUES (?, ?)", (order_id, customer))
        enqueue(
            connection,
            user_ids=[customer],
            template_id="order-placed",
            data={"order": order_id},
            idempotency_key=order_id,
        )
        if is_refused:
            raise PaymentRefusedError(order_id)


def main(path: str, order_id: str, customer: str, *flags: str) -> None:
    with closing(connect(path)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (order_id TEXT PRIMARY KEY, customer TEXT NOT NULL)")
        place_order(connection, order_id, customer, is_refused="--refused" in flags)


if __name__ == "__main__":
    main(*sys.argv[1:])
