"""The limit of a fan-out: one prebuilt buffer is written to every connection, and nothing else is done.

    python -m bench.bare_streams PORT BYTES

Says `ready` when it listens. Each line on stdin is a round; prints when each began.
"""

import asyncio
import sys
import time
from typing import cast

import uvloop

from bench.stream_client import ENTRY, raise_file_limit

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: state\n\n"


class Bare(asyncio.Protocol):
    def __init__(self, transports: list[asyncio.Transport]) -> None:
        self._transports = transports
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass

    def data_received(self, data: bytes) -> None:  # noqa: ARG002
        self._transport.write(_HEAD)
        self._transports.append(self._transport)


async def serve(port: int, size: int) -> None:
    raise_file_limit()
    transports: list[asyncio.Transport] = []
    buffer = ENTRY.ljust(size, b".")
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Bare(transports), "127.0.0.1", port, backlog=4096)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print("ready", flush=True)
    while await lines.readline():
        began = time.monotonic()
        for transport in transports:
            transport.write(buffer)
        print(began, flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(*map(int, sys.argv[1:])))
