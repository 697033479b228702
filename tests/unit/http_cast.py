"""The cast of the outgoing tests: servers of a few lines that answer, or fail, in one way."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_ACK = _END_STREAM = 0x1
_END_HEADERS = 0x4
_STATUS_200 = b"\x88"  # the eighth row of HPACK's static table


def answering(raw: bytes) -> Script:
    """Answers every request on a connection with these bytes."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            writer.write(raw)
            await writer.drain()

    return play


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Head and body, as they came."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0")
    return head + await reader.readexactly(int(length))


def plain(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def speak_http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As much of HTTP/2 as it takes to answer 200 with `h2`."""
    assert await reader.readexactly(len(_PREFACE)) == _PREFACE
    writer.write(_frame(_SETTINGS, 0, 0, b""))
    while True:
        head = await reader.readexactly(9)
        await reader.readexactly(int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == _SETTINGS and not flags & _ACK:
            writer.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind in (_HEADERS, _DATA) and flags & _END_STREAM:
            writer.write(_frame(_HEADERS, _END_HEADERS, stream, _STATUS_200))
            writer.write(_frame(_DATA, _END_STREAM, stream, b"h2"))
        await writer.drain()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that plays the script with each connection."""
    playing: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        playing.add(asyncio.create_task(play(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        for writer in writers:
            if not writer.is_closing():  # a task that is cancelled before it begins closes nothing
                writer.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0)


def authority(folder: Path, address: str = "127.0.0.1") -> tuple[Path, ssl.SSLContext]:
    """The PEM of an authority, and the context of a server that it vouches for."""
    root, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    made = _certificate("authority", "authority", root.public_key(), 1)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    leaf = _certificate("server", "authority", key.public_key(), 2)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
    ca, chain = folder / "ca.pem", folder / "server.pem"
    ca.write_bytes(made.sign(root, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(
        leaf.sign(root, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return ca, context


def _certificate(subject: str, issuer: str, key: ec.EllipticCurvePublicKey, number: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(number)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
