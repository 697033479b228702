"""Connections: what one turn of the loop writes to a client goes in piece by piece and out in one write."""

import asyncio
from typing import Any, cast

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

EXTENSION = "noroshi.connection"
"""Under this name a request for a stream finds its connection in the scope."""

_OF_A_STREAM = b"/inbox/stream"


class JoinedWrites:
    """A transport that waits for the end of the loop's turn: uvicorn writes an answer's head and body apart, and each
    write is a call to the kernel and a packet that wakes the client."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: list[bytes] = []
        self._call_soon = asyncio.get_running_loop().call_soon

    def write(self, data: bytes) -> None:
        if not self._held:
            self._call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def single(self) -> asyncio.Transport:
        """The transport itself, once what was held is out."""
        self._flush()
        return self._transport

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """A request for a stream may take the connection over, and then writes to it without anything between."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport)))

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if _OF_A_STREAM in self.url:
            self.scope["extensions"] = {EXTENSION: cast(dict[object, object], self)}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.scope is not None:
            self.scope.pop("extensions", None)  # else the two would hold each other

    def taken_over(self) -> asyncio.Transport:
        return cast(JoinedWrites, self.transport).single()


class Socket(WebSocketsSansIOProtocol):
    async def send(self, message: ASGISendEvent) -> None:
        """A refusal is a whole answer: uvicorn takes it for a handshake that was left half done, and logs an error."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True
