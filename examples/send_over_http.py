"""Welcome Hanako through a running server, and say what became of it.

NOROSHI_URL=http://127.0.0.1:8000 NOROSHI_KEY=nrs_... python examples/send_over_http.py order-17
"""

import asyncio
import os
import sys

from noroshi.client import Noroshi, NoroshiError


async def main(order_id: str) -> None:
    async with Noroshi.connect(os.environ["NOROSHI_URL"], os.environ["NOROSHI_KEY"]) as noroshi:
        try:
            accepted = await noroshi.send("hanako", "welcome", {"shop": order_id}, idempotency_key=order_id)
        except NoroshiError as error:
            sys.exit(f"{error.code}: {error.detail} {error.todo}")
        async for status in noroshi.follow(accepted.batch_id):
            print(status.statuses)
        batch = await noroshi.batch(accepted.batch_id)
        for notification in batch.items:
            print(notification.user_id, notification.channel, notification.status)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
