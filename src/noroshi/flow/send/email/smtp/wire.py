"""One connection to a relay: bytes and wishes for the next reply in, replies out."""

import asyncio
from ssl import SSLContext
from typing import cast

from noroshi.flow.send.email.smtp.replies import LONGEST_REPLY, NonsenseError, Reply, take_reply

_AT_ONCE = 65_536


class BrokenError(Exception):
    """The connection ended, or what came over it makes no sense: nothing more is to be had from it."""


class Wire(asyncio.Protocol):
    """A protocol of its own rather than a pair of streams: what the relay said before TLS began must be seen to be
    nothing (CVE-2011-0411), and a group of replies costs one turn of the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self._awaited: asyncio.Future[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.is_over = False

    @property
    def is_quiet(self) -> bool:
        """Open, and nothing came that nobody asked for."""
        return not (self.is_over or self._buffer)

    @property
    def host_address(self) -> str:
        return str(self._extra("sockname"))

    @property
    def peer_address(self) -> str:
        return str(self._extra("peername"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > 2 * LONGEST_REPLY:
            self.abort()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended makes no difference
        self.is_over = True
        self._may_write.set()
        self._wake()

    def write(self, commands: bytes) -> None:
        if not self.is_over:
            self._transport.write(commands)

    async def push(self, piece: bytes) -> None:
        """Writes no faster than the relay reads, whatever the size; ends early if the relay is gone."""
        for start in range(0, len(piece), _AT_ONCE):
            await self._may_write.wait()
            self.write(piece[start : start + _AT_ONCE])

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def reply(self) -> Reply:
        while True:
            try:
                reply = take_reply(self._buffer)
            except NonsenseError as error:
                raise BrokenError(str(error)) from error
            if reply is not None:
                return reply
            if self.is_over:
                raise BrokenError("the relay closed the connection")
            self._awaited = self._loop.create_future()
            try:
                await self._awaited
            finally:
                self._awaited = None

    async def ask(self, command: bytes) -> Reply:
        self.write(command)
        return await self.reply()

    async def begin_tls(self, context: SSLContext, host: str) -> None:
        if not self.is_quiet:
            raise BrokenError("the relay spoke before TLS began")
        transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        if transport is None or not self.is_quiet:
            raise BrokenError("the relay spoke before TLS began")
        self._transport = transport

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self.is_over = True
        self._transport.abort()

    def _wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def _extra(self, name: str) -> object:
        address = self._transport.get_extra_info(name)
        return address[0] if address else ""
