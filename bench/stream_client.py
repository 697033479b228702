"""Those who look on: streams opened, and after each round of entries when they came, as lines of JSON.

    python -m bench.stream_client PORT KEY PATH ...

Says `ready` when all are open. The same for us and for the limit, and as cheap as it can be: both share the machine
with it.
"""

import asyncio
import json
import resource
import sys
import time
from typing import cast

import uvloop

ENTRY = b"event: entry\n"
"""What is counted."""

_OPENS_AT_ONCE = 100
_LONGEST = 60.0
"""Seconds that a hundred streams may take to open, or a round to arrive."""


class Onlooker(asyncio.Protocol):
    """Counts the entries of one stream; `seen` is shared by all: when each entry came, in this round."""

    def __init__(self, request: bytes, opened: "asyncio.Future[None]", seen: list[float]) -> None:
        self.entries = 0
        self.size = 0
        self._request = request
        self._opened = opened
        self._seen = seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        count = data.count(ENTRY)
        if count:
            self.entries += count
            self.size = len(data)
            self._seen.extend([time.monotonic()] * count)
        elif not self._opened.done() and b"event: state" in data:
            self._opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._opened.done():
            self._opened.set_exception(exc or ConnectionError("a stream was refused"))


def raise_file_limit() -> None:
    """A stream is an open file, at both of its ends."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


async def look(port: int, key: str, paths: list[str]) -> None:
    raise_file_limit()
    loop = asyncio.get_running_loop()
    seen: list[float] = []
    onlookers: list[Onlooker] = []
    for first in range(0, len(paths), _OPENS_AT_ONCE):
        opening = [loop.create_future() for _ in paths[first : first + _OPENS_AT_ONCE]]
        for path, opened in zip(paths[first:], opening, strict=False):
            request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
            onlooker = Onlooker(request, opened, seen)
            await loop.create_connection(lambda one=onlooker: one, "127.0.0.1", port)  # type: ignore[misc]
            onlookers.append(onlooker)
        async with asyncio.timeout(_LONGEST):
            await asyncio.gather(*opening)
    print("ready", flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        async with asyncio.timeout(_LONGEST):
            while len(seen) < len(paths):  # noqa: ASYNC110 - a wake-up an entry would be measured, too
                await asyncio.sleep(0.001)
        counts = {one.entries for one in onlookers}
        middle, late = len(seen) // 2, len(seen) * 99 // 100
        ordered = sorted(seen)
        report = {"p50": ordered[middle], "p99": ordered[late], "last": ordered[-1], "counts": sorted(counts)}
        seen.clear()
        print(json.dumps({**report, "size": onlookers[0].size}), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(look(int(sys.argv[1]), sys.argv[2], json.loads(sys.stdin.readline())))
