"""An order and its confirmation in one transaction, with asyncpg: both are there, or neither.

python examples/enqueue_asyncpg.py postgresql://localhost/shop order-17 hanako [--refused]
"""

import asyncio
import sys

import asyncpg

from noroshi import aenqueue


class PaymentRefusedError(Exception):
    """Whatever goes wrong in the shop after the notification was enqueued."""


async def place_order(connection: asyncpg.Connection, order_id: str, customer: str, *, is_refused: bool) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO orders (order_id, customer) VALUES ($1, $2)", order_id, customer)
        await aenqueue(
            connection,
            user_ids=[customer],
            template_id="order-placed",
            data={"order": order_id},
            idempotency_key=order_id,
        )
        if is_refused:
            raise PaymentRefusedError(order_id)


async def main(url: str, order_id: str, customer: str, *flags: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS orders (order_id text PRIMARY KEY, customer text NOT NULL)"
        )
        await place_order(connection, order_id, customer, is_refused="--refused" in flags)
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
