"""An onlooker: a path and a pass in, the events that an open stream has brought so far out."""

import asyncio
from typing import Any, NamedTuple

import msgspec
from starlette.types import Message

from tests.stories.world import World


class Event(NamedTuple):
    kind: str
    number: int | None
    data: dict[str, Any]


class Onlooker:
    """Looks at an inbox as a browser does: it remembers the last number, and names it when it comes again."""

    def __init__(self, world: World, path: str, **headers: str) -> None:
        self._world = world
        self._path = path
        self._headers = headers
        self.status = 0
        self.text = b""
        self.come()

    def come(self) -> None:
        self.is_over = False
        last = self.numbers[-1:]
        headers = {**self._headers, **({"last-event-id": str(last[0])} if last else {})}
        self._leaving = self._world.loop.create_future()
        self._task = self._world.loop.create_task(self._look(headers))
        self._world.until_idle()

    def leave(self) -> None:
        self._leaving.set_result(None)
        self._world.until_idle()
        assert self._task.done()

    async def _look(self, headers: dict[str, str]) -> None:
        where, _, query = self._path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> Message:
            await asyncio.shield(self._leaving)
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.text += message.get("body", b"")

        await self._world.app(scope, receive, send)
        self.is_over = True

    @property
    def events(self) -> list[Event]:
        self._world.until_idle()
        found: list[Event] = []
        for block in self.text.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in fields:
                number = int(fields["id"]) if "id" in fields else None
                found.append(Event(fields["event"], number, msgspec.json.decode(fields["data"])))
        return found

    @property
    def numbers(self) -> list[int]:
        """Of the entries, in the order in which they came."""
        return [event.number for event in self.events if event.number is not None]

    @property
    def unread(self) -> int:
        count: int = [event for event in self.events if event.kind == "state"][-1].data["unread"]
        return count
