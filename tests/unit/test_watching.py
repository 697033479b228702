"""Watching: probes are answered on a port of their own, for as long as the block lasts."""

import asyncio
import socket

from tests.unit.api_stub import StubDesk

from noroshi.entrypoints.cli.watching import watched


def a_free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def ask(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: noroshi\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


async def ask_when_it_listens(port: int) -> bytes:
    for _ in range(200):
        try:
            return await ask(port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
    raise AssertionError("nobody listens")


async def test_probes_are_answered_on_a_port_of_their_own() -> None:
    port = a_free_port()
    async with watched(StubDesk(), "127.0.0.1", port):  # type: ignore[arg-type]  # the API asks no more of it
        assert (await asyncio.wait_for(ask_when_it_listens(port), 5)).startswith(b"HTTP/1.1 200 ")
