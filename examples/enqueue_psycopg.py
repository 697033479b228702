"""An order and its confirmation in one transaction, with psycopg: both are there, or neither.

python examples/enqueue_psycopg.py postgresql://localhost/shop order-17 hanako [--refused]
"""

import sys

import psycopg

from noroshi import enqueue


class PaymentRefusedError(Exception):
    """Whatever goes wrong in the shop after the notification was enqueued."""


def place_order(connection: psycopg.Connection, order_id: str, customer: str, *, is_refused: bool) -> None:
    with connection.transaction():
        connection.execute("INSERT INTO orders (order_id, customer) VALUES (%s, %s)", (order_id, customer))
        enqueue(
            connection,
            user_ids=[customer],
            template_id="order-placed",
            data={"order": order_id},
            idempotency_key=order_id,
        )
        if is_refused:
            raise PaymentRefusedError(order_id)


def main(url: str, order_id: str, customer: str, *flags: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (order_id text PRIMARY KEY, customer text NOT NULL)")
        place_order(connection, order_id, customer, is_refused="--refused" in flags)


if __name__ == "__main__":
    main(*sys.argv[1:])
