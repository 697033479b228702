"""People who look at their inboxes over real connections, which break at random; what each has seen comes out."""

import asyncio
import random
from collections.abc import AsyncIterator

from msgspec import Struct, field

_LONGEST_ABSENCE = 0.05
_MOST_HALF_READ = 400


class Looking(Struct):
    """Where a product answers, and with which key."""

    port: int
    api_key: str

    async def open(
        self, user_id: str, *, after: int | None = None, last: int | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A stream whose head was 200."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        query = "" if after is None else f"?after={after}"
        lines = [
            f"GET /api/v1/users/{user_id}/inbox/stream{query} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.api_key}",
            *([] if last is None else [f"Last-Event-ID: {last}"]),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(head)
        return reader, writer


class Onlooker(Struct):
    """`seen` are the numbers of the entries in the order in which they came."""

    user_id: str
    cuts_left: int
    dice: random.Random
    every: int
    seen: list[int] = field(default_factory=list)

    async def look(self, at: Looking, until: int) -> None:
        """Until that number was seen. The connection is cut at random, often in the middle of an event."""
        while not self.seen or self.seen[-1] < until:
            last = self.seen[-1] if self.seen else None
            reader, writer = await at.open(self.user_id, after=0, last=last)
            try:
                await self._read(reader, until)
            except (asyncio.IncompleteReadError, ConnectionError):
                """The other side was first: come again."""
            finally:
                writer.transport.abort()
            await asyncio.sleep(self.dice.random() * _LONGEST_ABSENCE)

    async def _read(self, reader: asyncio.StreamReader, until: int) -> None:
        """Until the end, or until the connection is cut."""
        left = self.dice.randint(1, self.every) if self.cuts_left else until
        async for number in numbers_in(reader):
            self.seen.append(number)
            left -= 1
            if left <= 0 and self.cuts_left:
                self.cuts_left -= 1
                await reader.read(self.dice.randrange(_MOST_HALF_READ))
                return
            if number >= until:
                return


async def numbers_in(reader: asyncio.StreamReader) -> AsyncIterator[int]:
    """The ids of the events of a stream, chunk by chunk."""
    text = b""
    while (size := int(await reader.readline() or b"0", 16)) > 0:
        text += await reader.readexactly(size)
        await reader.readexactly(2)
        *events, text = text.split(b"\n\n")
        for event in events:
            if event.startswith(b"id: "):
                yield int(event[4 : event.index(b"\n")])
