"""A line that can be cut: a server's port goes in, a port of our own comes out, and between them silence or resets."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


class CuttableLine:
    """Forwards both ways until it is told otherwise. A silent line keeps every connection and passes nothing on; a
    broken one resets them all and takes no new ones. Healed, it passes on what a silent one has kept, as TCP does."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._behind = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._flowing = asyncio.Event()
        self._is_broken = False
        self._ends: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._flowing.set()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, url: str) -> str:
        """The same database over this line."""
        return url.replace(f":{urlsplit(url).port}/", f":{self.port}/")

    def silence(self) -> None:
        self._do(self._flowing.clear)

    def reset(self) -> None:
        self._do(self._break)

    def heal(self) -> None:
        def mend() -> None:
            self._is_broken = False
            self._flowing.set()

        self._do(mend)

    def _do(self, what: Callable[[], None]) -> None:
        """In the line's own thread; returns when it is done."""
        done: Future[None] = Future()

        def do() -> None:
            what()
            done.set_result(None)

        self._loop.call_soon_threadsafe(do)
        done.result()

    def _break(self) -> None:
        self._is_broken = True
        for writer in self._ends:
            writer.transport.abort()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _end(self) -> None:
        self._server.close()
        self._break()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_broken:
            writer.transport.abort()
            return
        try:
            behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._behind)
        except OSError:
            writer.transport.abort()
            return
        for one, other in ((reader, behind_writer), (behind_reader, writer)):
            self._ends.add(other)
            pump: asyncio.Task[Any] = asyncio.create_task(self._pump(one, other))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while text := await reader.read(65_536):
                await self._flowing.wait()
                writer.write(text)
                await writer.drain()
            await self._flowing.wait()
        except OSError:
            pass
        finally:
            self._ends.discard(writer)
            writer.close()
