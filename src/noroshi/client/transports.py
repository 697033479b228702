"""Transports: one call of the API in, its answer out, over whatever lies between."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from msgspec import Struct

Message = MutableMapping[str, Any]
AsgiApp = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class Call(Struct, frozen=True):
    """`path` is percent-encoded already, and so is `query`."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    headers: dict[str, str] = {}


class Reply(Struct, frozen=True):
    """Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Transport(Protocol):
    async def open(self) -> None: ...

    async def carry(self, call: Call) -> Reply:
        """Raises NoroshiError `unreachable` if nobody answers."""
        ...

    async def close(self) -> None: ...


class AsgiTransport:
    """Calls an application in this process. `key` None: the application asks for none."""

    def __init__(self, app: AsgiApp, key: str | None) -> None:
        self._app = app
        self._key = key

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    async def carry(self, call: Call) -> Reply:
        said: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": call.body, "more_body": False}

        async def send(message: Message) -> None:
            said.append(message)

        await self._app(self._scope(call), receive, send)
        head = next(message for message in said if message["type"] == "http.response.start")
        body = b"".join(message.get("body", b"") for message in said if message["type"] == "http.response.body")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in head["headers"]}
        return Reply(head["status"], headers, body)

    def _scope(self, call: Call) -> Message:
        headers = {"host": "noroshi", "content-length": str(len(call.body)), **call.headers}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": call.method,
            "scheme": "http",
            "path": call.path,
            "raw_path": call.path.encode("ascii"),
            "query_string": call.query.encode("ascii"),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "client": None,
            "server": None,
        }
