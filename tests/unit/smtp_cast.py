"""The cast of the SMTP tests: attempts, a relay that somebody else wrote (aiosmtpd), and one that follows a script."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from dispatch_cast import HANAKO, a_key

from noroshi.domain.deliveries import Attempt, Recipient
from noroshi.domain.ids import BatchId, TenantId
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content
from noroshi.flow.send.email.smtp.channel import SmtpChannel
from noroshi.flow.send.email.smtp.settings import SmtpSettings, read_settings
from noroshi.machine.clock import SystemClock
from noroshi.ports.attachments import Attachments
from noroshi.ports.clock import Clock

HELLO = Content("Hello Hanako", subject="Greetings")
EMAIL = Lane("email", "smtp", Priority.NORMAL)
_LONGEST_LETTER = 10_000_000


class Drawer:
    """Implements ports/attachments.py; counts how often it is opened."""

    def __init__(self, contents: dict[BatchId, list[bytes]] | None = None) -> None:
        self.batches = contents or {}
        self.asked: list[BatchId] = []

    async def contents(self, tenant: TenantId, batch_id: BatchId) -> list[bytes]:
        self.asked.append(batch_id)
        return self.batches.get(batch_id, [])


def an_attempt(person: int = 1, content: Content = HELLO, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "key": a_key(person),
        "lane": EMAIL,
        "category": "general",
        "recipient": HANAKO,
        "address": f"person-{person}@example.com",
        "content": content,
        "number": 1,
        "expires_at": None,
    }
    return Attempt(**(values | changes))


def named(name: str) -> Recipient:
    return Recipient("hanako", name, "ja", "Asia/Tokyo", {})


def smtp_settings(url: str, **values: str) -> SmtpSettings:
    settings = read_settings(
        {"NOROSHI_SMTP_URL": url, "NOROSHI_SMTP_FROM": "The Shop <shop@noroshi.example>"}
        | {f"NOROSHI_SMTP_{name.upper()}": value for name, value in values.items()}
    )
    assert isinstance(settings, SmtpSettings)
    return settings


@asynccontextmanager
async def channel_to(
    port: int,
    url: str = "smtp://127.0.0.1",
    clock: Clock | None = None,
    drawer: Attachments | None = None,
    **values: str,
) -> AsyncIterator[SmtpChannel]:
    scheme, _, rest = url.partition("?")
    channel = SmtpChannel(
        smtp_settings(f"{scheme}:{port}" + (f"?{rest}" if rest else ""), **values),
        clock or SystemClock(),
        drawer or Drawer(),
    )
    try:
        yield channel
    finally:
        await channel.close()


class Taken(NamedTuple):
    sender: str
    recipients: list[str]
    raw: bytes
    utf8: bool

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.raw, policy=policy.default)


class Mailroom:
    """The handler of aiosmtpd: keeps what it takes, and can be told to refuse."""

    def __init__(self, extensions: tuple[str, ...] = ("PIPELINING",)) -> None:
        self.taken: list[Taken] = []
        self.logins: list[tuple[str, str]] = []
        self.sessions = 0
        self.refuse: dict[str, str] = {}
        self._extensions = extensions

    async def handle_EHLO(  # noqa: N802 - aiosmtpd calls it so
        self, server: SMTP, session: Any, envelope: Envelope, name: str, answers: list[str]
    ) -> list[str]:
        session.host_name = name
        self.sessions += 1
        return [*answers[:-1], *(f"250-{extension}" for extension in self._extensions), answers[-1]]

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Any, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert envelope.mail_from is not None and isinstance(envelope.original_content, bytes)
        raw = envelope.original_content
        self.taken.append(Taken(envelope.mail_from, envelope.rcpt_tos, raw, bool(envelope.smtp_utf8)))
        return "250 2.0.0 queued"

    def let_in(self, server: SMTP, session: Any, envelope: Envelope, mechanism: str, login: Any) -> AuthResult:
        assert isinstance(login, LoginPassword)
        user, password = login.login.decode(), login.password.decode()
        self.logins.append((user, password))
        return AuthResult(success=(user, password) == ("hanako@shop", "p:ss/wörd"), handled=False)


@asynccontextmanager
async def mailroom(
    room: Mailroom | None = None, *, tls_at_once: ssl.SSLContext | None = None, **how: Any
) -> AsyncIterator[tuple[Mailroom, int]]:
    """A relay of aiosmtpd's own making, on a port of its own."""
    room = room or Mailroom()
    loop = asyncio.get_running_loop()
    made: list[SMTP] = []

    def make() -> SMTP:
        made.append(SMTP(room, enable_SMTPUTF8=True, loop=loop, authenticator=room.let_in, **how))
        return made[-1]

    server = await loop.create_server(make, "127.0.0.1", 0, ssl=tls_at_once)
    try:
        yield room, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()
        serving = [one._handler_coroutine for one in made if one._handler_coroutine is not None]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


class Caller:
    """A connection to the scripted relay."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.heard: list[str] = []

    async def hear(self, *commands: str) -> None:
        """The next lines must begin with these."""
        for command in commands:
            line = (await self.reader.readuntil(b"\r\n")).decode().rstrip()
            self.heard.append(line)
            assert line.upper().startswith(command), f"heard {line!r}, expected {command}"

    async def hear_content(self) -> bytes:
        return await self.reader.readuntil(b"\r\n.\r\n")

    def say(self, *replies: str) -> None:
        self.writer.write("".join(f"{reply}\r\n" for reply in replies).encode())

    async def greet(self, *extensions: str) -> None:
        self.say("220 relay.example ESMTP")
        await self.hear("EHLO")
        lines = ["relay.example", *extensions]
        self.say(*(f"250-{line}" for line in lines[:-1]), f"250 {lines[-1]}")

    async def take_one(self, answer: str = "250 2.0.0 queued") -> bytes:
        """A whole letter, pipelined."""
        await self.hear("MAIL FROM", "RCPT TO", "DATA")
        self.say("250 ok", "250 ok", "354 go")
        content = await self.hear_content()
        self.say(answer)
        return content

    async def end(self) -> None:
        """Until the other side goes."""
        while await self.reader.read(1024):
            pass


Script = Callable[[Caller], Awaitable[None]]


class ScriptedRelay:
    """Plays the next script with each connection; a script that goes wrong fails the test."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self._playing: list[asyncio.Task[None]] = []
        self.callers: list[Caller] = []
        self.port = 0

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = Caller(reader, writer)
        self.callers.append(caller)
        assert self._scripts, "one connection too many"
        try:
            await self._scripts.pop(0)(caller)
        finally:
            writer.close()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._playing.append(asyncio.create_task(self._play(reader, writer)))

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ScriptedRelay"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_LONGEST_LETTER)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
            await asyncio.wait_for(asyncio.gather(*self._playing), 5)
            assert not self._scripts, "too few connections"
        finally:
            server.close()
            for playing in self._playing:
                playing.cancel()
            await asyncio.gather(*self._playing, return_exceptions=True)
            await server.wait_closed()


def certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """The PEM of an authority and the context of a server that it vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "relay")])
    now = datetime.now(UTC)
    alternatives = [x509.IPAddress(ip_address(n)) if n[0].isdigit() else x509.DNSName(n) for n in names]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, key_pem = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key_pem)
    return pem, context
