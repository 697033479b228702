"""HttpTransport: calls to a server elsewhere in, its answers out, over connections that are kept for the next call."""

import asyncio
import ssl
from contextlib import suppress
from datetime import timedelta
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpResponseParser

import noroshi
from noroshi.client.errors import NoroshiError, unreachable
from noroshi.client.transports import Call, Reply
from noroshi.machine.clock import SystemClock

_CONNECT_WITHIN_SECONDS = 5.0
_KEPT_SECONDS = 30.0
"""Shorter than any server keeps an idle connection, so that none is found closed under a request."""

_MOST_KEPT = 16
_READ_AT_ONCE = 65_536
_BROKEN = (OSError, EOFError, HttpParserError)
_PORTS = {"http": 80, "https": 443}


class _Answer:
    """One answer as it comes in."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.is_complete = self.may_be_kept = False
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True
        self.may_be_kept = bool(self._parser.should_keep_alive())

    @property
    def reply(self) -> Reply:
        return Reply(self._parser.get_status_code(), self.headers, bytes(self.body))


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.idle_since = 0.0

    async def exchange(self, request: bytes, answer: _Answer) -> None:
        self._writer.write(request)
        await self._writer.drain()
        while not answer.is_complete:
            data = await self._reader.read(_READ_AT_ONCE)
            if not data:
                raise EOFError
            answer.feed(data)

    @property
    def is_open(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    def drop(self) -> None:
        """At once, with whatever is under way."""
        self._writer.transport.abort()


class HttpTransport:
    """Implements Transport. `timeout` is for a whole call."""

    def __init__(self, url: str, key: str, timeout: timedelta) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise NoroshiError("bad_url", "The address has no http:// or https://.", "Write it as in http://host:8000.")
        if not (key.isascii() and key.isprintable()):
            raise NoroshiError("bad_key", "The key has characters that no key has.", "Check how it was copied.")
        self._url = url.rstrip("/")
        self._base = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or _PORTS[parts.scheme]
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._head = (
            f"Host: {parts.netloc}\r\nUser-Agent: noroshi/{noroshi.__version__}\r\nAuthorization: Bearer {key}\r\n"
        )
        self._timeout = timeout.total_seconds()
        self._clock = SystemClock()
        self._kept: list[_Connection] = []
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        while self._kept:
            await self._kept.pop().close()

    async def carry(self, call: Call) -> Reply:
        if not self._is_open:
            raise NoroshiError("not_started", "The connection is not open.", "Use `async with`, or call `start()`.")
        try:
            async with asyncio.timeout(self._timeout):
                return await self._carry(call)
        except TimeoutError as error:
            raise unreachable(self._url, "it takes too long") from error
        except _BROKEN as error:
            raise unreachable(self._url, type(error).__name__) from error

    async def _carry(self, call: Call) -> Reply:
        connection = await self._fresh() or await self._connect()
        answer = _Answer()
        try:
            await connection.exchange(self._written(call), answer)
        except BaseException:
            connection.drop()
            raise
        if answer.may_be_kept and self._is_open and len(self._kept) < _MOST_KEPT:
            connection.idle_since = self._clock.monotonic()
            self._kept.append(connection)
        else:
            await connection.close()
        return answer.reply

    async def _fresh(self) -> _Connection | None:
        """A connection that was used a moment ago."""
        while self._kept:
            connection = self._kept.pop()
            if connection.is_open and self._clock.monotonic() - connection.idle_since < _KEPT_SECONDS:
                return connection
            await connection.close()
        return None

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(_CONNECT_WITHIN_SECONDS):
            return _Connection(*await asyncio.open_connection(self._host, self._port, ssl=self._tls))

    def _written(self, call: Call) -> bytes:
        target = f"{self._base}{call.path}" + (f"?{call.query}" if call.query else "")
        more = "".join(f"{name}: {value}\r\n" for name, value in call.headers.items())
        if call.body:
            more += "Content-Type: application/json\r\n"
        head = f"{call.method} {target} HTTP/1.1\r\n{self._head}{more}Content-Length: {len(call.body)}\r\n\r\n"
        return head.encode("ascii") + call.body
