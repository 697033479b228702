"""ReqwestOutgoing: calls in, answers out, over pooled connections; no other module dials out over HTTP."""

import asyncio
from datetime import timedelta
from pathlib import Path

from pyreqwest import exceptions
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.http import Url
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response

from noroshi.domain.outgoing import Answered, NoAnswer, NotAllowed, NotSent, OutgoingCall, OutgoingReply
from noroshi.machine.outgoing.guard import ForbiddenError, Foreign, Guard

TIMEOUT = "TIMEOUT"
NO_CONNECTION = "NO_CONNECTION"
CONNECTION_LOST = "CONNECTION_LOST"
BAD_CALL = "BAD_CALL"
BAD_ANSWER = "BAD_ANSWER"
CLOSED = "CLOSED"

AGENT = "noroshi"

_CONNECT_WITHIN = timedelta(seconds=3)
_IDLE_FOR = timedelta(seconds=30)
_MOST_PLACES = 64
_LONGEST_ERROR = 200
_WHILE_CONNECTING = "client error (Connect)"

Pin = tuple[str, str]
"""A host and the one address that it stands for."""


class _Pinned:
    """A client that knows one place only, and how many calls use it at the moment."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.uses = 0


class ReqwestOutgoing:
    """Implements ports/outgoing.py. HTTP/2 where a server offers it, else HTTP/1.1; proxies of the environment are left
    alone. Nothing is opened before the first call; closed once, by whoever opened it. A call that is cancelled may go
    on until its time-out, unheard."""

    def __init__(self, guard: Guard | None = None, ca: Path | None = None) -> None:
        self._guard = guard or Guard()
        self._ca = ca
        self._client: Client | None = None
        self._pinned: dict[Pin, _Pinned] = {}
        self._is_closed = False

    async def call(self, call: OutgoingCall) -> OutgoingReply:
        if self._is_closed:
            return NotSent(CLOSED)
        try:
            url = Url(call.url)
        except ValueError:
            return NotAllowed("the address cannot be read") if call.is_foreign else NotSent(BAD_CALL)
        if call.is_foreign:
            return await self._call_foreign(url, call)
        if self._client is None:
            self._client = self._builder().build()
        return await _made(self._client, url, call)

    async def close(self) -> None:
        self._is_closed = True
        clients = [pinned.client for pinned in self._pinned.values()]
        clients += [self._client] if self._client is not None else []
        self._client = None
        self._pinned.clear()
        for client in clients:
            await client.close()

    async def _call_foreign(self, url: Url, call: OutgoingCall) -> OutgoingReply:
        host, port = (url.host_str or "").strip("[]"), url.port_or_known_default or 0
        foreign = Foreign(url.scheme, host, port, has_user=bool(url.username or url.password is not None))
        try:
            async with asyncio.timeout(call.timeout.total_seconds()):
                place = await self._guard.place_of(foreign)
        except ForbiddenError as error:
            return NotAllowed(str(error))
        except OSError:  # a time-out is one, too
            return NotSent(NO_CONNECTION, "the name cannot be resolved")
        pinned = await self._pin(host, place, port)
        try:
            return await _made(pinned.client, url, call)
        finally:
            pinned.uses -= 1

    async def _pin(self, host: str, place: str, port: int) -> _Pinned:
        """In use for one call more. The one used last stands last; of those nobody uses, the one unused for longest
        makes room."""
        pinned = self._pinned.pop((host, place), None) or _Pinned(self._builder().resolve(host, place, port).build())
        self._pinned[host, place] = pinned
        pinned.uses += 1
        if len(self._pinned) > _MOST_PLACES:
            idle = next((pin for pin, one in self._pinned.items() if not one.uses), None)
            if idle is not None:
                await self._pinned.pop(idle).client.close()
        return pinned

    def _builder(self) -> ClientBuilder:
        builder = ClientBuilder().no_proxy().follow_redirects(False).http2(True).user_agent(AGENT)
        builder = builder.connect_timeout(_CONNECT_WITHIN).pool_idle_timeout(_IDLE_FOR)
        if self._ca is not None:
            builder = builder.add_root_certificate_pem(self._ca.read_bytes())
        return builder


async def _made(client: Client, url: Url, call: OutgoingCall) -> OutgoingReply:
    try:
        request = _request(client, url, call)
    except ValueError:  # a method or headers that are none; its text quotes them
        return NotSent(BAD_CALL)
    try:
        async with request as response:
            return await _answer(response, call.largest_answer)
    except exceptions.BuilderError:
        return NotSent(BAD_CALL)
    except exceptions.RequestError as error:
        return _failure(error)
    except ValueError:  # headers that are no text
        return NoAnswer(BAD_ANSWER)


def _failure(error: exceptions.RequestError) -> NotSent | NoAnswer:
    """The classes do not tell: a ConnectError is also one of a connection that broke after the request had left, and
    a ConnectTimeoutError also an answer that never came. The causes tell; what they do not tell may have left."""
    causes = [cause["message"] for cause in error.details["causes"] or ()]
    # The innermost is what the system or TLS said, which knows nothing of the call; those above it quote the address.
    said = causes[-1][:_LONGEST_ERROR] if len(causes) > 1 else ""
    if _WHILE_CONNECTING in causes:
        return NotSent(NO_CONNECTION, said)
    is_late = isinstance(error, exceptions.RequestTimeoutError)
    return NoAnswer(TIMEOUT if is_late else CONNECTION_LOST, said)


def _request(client: Client, url: Url, call: OutgoingCall) -> StreamRequest:
    builder = client.request(call.method, url).timeout(call.timeout)
    for name, value in call.headers.items():
        builder = builder.header(name, value, is_sensitive=True)
    return (builder.body_bytes(call.body) if call.body else builder).build_streamed()


async def _answer(response: Response, largest: int) -> Answered:
    body = bytearray()
    while len(body) <= largest and (chunk := await response.body_reader.read_chunk()) is not None:
        body += chunk
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answered(response.status, headers, bytes(body[:largest]), is_whole=len(body) <= largest)
