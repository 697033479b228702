"""A whole Noroshi inside this process, on one SQLite file: no server, no port, no key. Messages are caught, not sent.

python examples/send_embedded.py a-folder
"""

import asyncio
import sys

from noroshi.client import Noroshi
from noroshi.settings import read_settings


async def main(folder: str) -> None:
    settings = read_settings({}, {"data": folder, "catcher": "on"})
    async with Noroshi(settings) as noroshi:
        await noroshi.put_user("hanako", name="Hanako", email="hanako@example.com", locale="en")
        await noroshi.add_template("welcome", "email", "en", "Hello {{ user.name }}.", subject="Welcome")
        accepted = await noroshi.send("hanako", "welcome")
        async for _ in noroshi.follow(accepted.batch_id):
            pass
        for message in (await noroshi.caught(user_id="hanako")).items:
            print(message.channel, message.subject, message.body)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
