"""A mail relay without a process, for virtual time: connections to its port come here, it misbehaves in turn in
every way (F17), and its ledger tells which letters it took."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from email import message_from_bytes, policy
from typing import Any

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import EndpointId, NotificationId, TenantId
from noroshi.domain.instants import Instant, plus
from noroshi.domain.templates import Content
from noroshi.ports.clock import Clock
from tests.stand_ins.ledger_provider.ledger import TakenMessage
from tests.stand_ins.ledger_provider.wire import content_hash

HOST, PORT = "127.0.0.1", 2525
GREY_FOR = timedelta(minutes=4)
"""Who is new is told to come again, and taken when so long has passed."""

EVERY = {
    "421 as greeting": 3,
    "421 to MAIL": 15,
    "451 to RCPT": 7,
    "451 after the content": 9,
    "421 after the content": 11,
    "dropped, not taken": 8,
    "taken, then dropped": 8,
}
"""Each happens every so many times that it can."""

GREYLISTED = "450, greylisted"
_END = b"\r\n.\r\n"


class RelayInMemory:
    """Misbehaves until it has done so often enough in every way; `faults` counts how."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._chances: Counter[str] = Counter()
        self.taken: list[TakenMessage] = []
        self.faults: Counter[str] = Counter()
        self._first_seen: dict[str, Instant] = {}
        self._clock: Clock

    def place_on(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        """Takes the connections that go to its port; others go where they went before."""
        self._clock = clock
        connect = loop.create_connection

        async def dial(make: Callable[[], Any], *where: Any, **more: Any) -> Any:
            if where != (HOST, PORT):
                return await connect(make, *where, **more)
            protocol = make()
            line = _Line(self, protocol, loop)
            protocol.connection_made(line)
            line.greet()
            return line, protocol

        loop.create_connection = dial  # type: ignore[method-assign, assignment]

    def misbehaves(self, how: str) -> bool:
        self._chances[how] += 1
        if self.faults[how] >= self._times or self._chances[how] % EVERY[how]:
            return False
        self.faults[how] += 1
        return True

    def is_grey(self, address: str) -> bool:
        """Of whoever is new, for as long as the relay lives."""
        first = self._first_seen.setdefault(address, self._clock.now())
        is_grey = self._clock.now() < plus(first, GREY_FOR)
        self.faults[GREYLISTED] += is_grey
        return is_grey

    def take(self, recipient: str, raw: bytes) -> None:
        message = message_from_bytes(raw.replace(b"\r\n..", b"\r\n."), policy=policy.default)
        local = message["Message-ID"].strip("<>").partition("@")[0]
        notification, tenant, endpoint = local.split(".")
        key = DeliveryKey(TenantId(int(tenant)), NotificationId(bytes.fromhex(notification)), EndpointId(int(endpoint)))
        content = Content(message.get_content().rstrip("\r\n"), str(message["Subject"]))
        user_id = recipient.partition("@")[0]
        self.taken.append(TakenMessage(self._clock.now(), key, user_id, "email", content_hash(content), number=1))


class _Line(asyncio.Transport):
    """One connection, both ends of it: what is written is heard in order, and answered in order."""

    def __init__(self, relay: RelayInMemory, protocol: asyncio.Protocol, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__({"sockname": (HOST, 40_000), "peername": (HOST, PORT)})
        self._relay, self._protocol, self._loop = relay, protocol, loop
        self._heard = b""
        self._unsaid = b""
        self._recipient = ""
        self._is_content = False
        self._is_over = False

    def greet(self) -> None:
        if self._relay.misbehaves("421 as greeting"):
            self._say("421 4.3.2 too many connections")
            self.close()
        else:
            self._say("220 relay.example ESMTP")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._heard += bytes(data)
        self._loop.call_soon(self._work)

    def is_closing(self) -> bool:
        return self._is_over

    def close(self) -> None:
        self._loop.call_soon(self._end)

    def abort(self) -> None:
        self._is_over = True

    def _end(self) -> None:
        self._hand_over()
        if not self._is_over:
            self._is_over = True
            self._protocol.connection_lost(None)

    def _say(self, text: str) -> None:
        self._unsaid += f"{text}\r\n".encode()
        self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        said, self._unsaid = self._unsaid, b""
        if said and not self._is_over:
            self._protocol.data_received(said)

    def _work(self) -> None:
        while not self._is_over:
            content, end, rest = self._heard.partition(_END if self._is_content else b"\r\n")
            if not end:
                return
            self._heard = rest
            if self._is_content:
                self._is_content = False
                self._on_content(content + b"\r\n")
            else:
                self._on_command(content.decode())

    def _on_command(self, line: str) -> None:
        match line[:4].upper():
            case "EHLO":
                self._say("250-relay.example\r\n250 PIPELINING")
            case "MAIL" if self._relay.misbehaves("421 to MAIL"):
                self._leave("421 4.3.2 shutting down")
            case "RCPT":
                self._on_recipient(line[len("RCPT TO:<") :].partition(">")[0])
            case "DATA" if not self._recipient:
                self._say("554 5.5.1 no valid recipients")
            case "DATA":
                self._say("354 go")
                self._is_content = True
            case "QUIT":
                self._leave("221 bye")
            case _:
                self._say("250 ok")

    def _on_recipient(self, address: str) -> None:
        self._recipient = ""
        if self._relay.is_grey(address):
            self._say("450 4.2.0 greylisted, come again")
        elif self._relay.misbehaves("451 to RCPT"):
            self._say("451 4.3.0 lookup failed")
        else:
            self._recipient = address
            self._say("250 ok")

    def _on_content(self, raw: bytes) -> None:
        relay, recipient = self._relay, self._recipient
        self._recipient = ""
        if relay.misbehaves("451 after the content"):
            self._say("451 4.3.0 local error")
        elif relay.misbehaves("421 after the content"):
            self._leave("421 4.3.2 shutting down")
        elif relay.misbehaves("dropped, not taken"):
            self._end()
        elif relay.misbehaves("taken, then dropped"):
            relay.take(recipient, raw)
            self._end()
        else:
            relay.take(recipient, raw)
            self._say("250 2.0.0 queued")

    def _leave(self, text: str) -> None:
        self._say(text)
        self.close()
