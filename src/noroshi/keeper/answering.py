"""The keeper's end of the line: frames in, the store asked, its answers out in as few writes as the loop allows."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from noroshi.keeper.line import CLOSE, OPEN, Metered, Notice
from noroshi.keeper.methods import METHODS
from noroshi.keeper.wire import Frame, Splitter, decode, encode, encode_error
from noroshi.ports.meter import Meter
from noroshi.ports.store import StorePorts


class RelayedMeter:
    """Keeps what it is told, from any thread, until it is collected."""

    def __init__(self) -> None:
        self._told: list[Metered] = []

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        self._told.append(Metered("count", name, by, labels))

    def observe(self, name: str, value: float, **labels: str) -> None:
        self._told.append(Metered("observe", name, value, labels))

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self._told.append(Metered("gauge", name, value, labels))

    def collect(self) -> list[Metered]:
        told, self._told = self._told, []
        return told


class Told(Protocol):
    """What an opened store may say unasked, from any thread."""

    def __call__(self, notice: Notice) -> None: ...


Opening = Callable[[bytes, Meter, Told], StorePorts]
"""What was ordered, the meter and whom to tell in; an open store out."""


class Answering(asyncio.Protocol):
    """Serves one line until it is closed. `done` is set when there is nothing more to do."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._loop = asyncio.get_running_loop()
        self._meter = RelayedMeter()
        self._splitter = Splitter()
        self._store: StorePorts | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            task = self._loop.create_task(self._serve(frame))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, frame: Frame) -> None:
        try:
            answer = encode(frame.number, frame.topic, await self._answer(frame))
        except Exception as error:  # noqa: BLE001 - whoever asked hears of it
            answer = encode_error(frame.number, error)
        self._send(answer)
        if frame.topic == CLOSE and self._transport is not None:
            self._transport.close()

    async def _answer(self, frame: Frame) -> Any:
        if frame.topic == OPEN:
            self._store = self._opening(frame.body, self._meter, self._tell)
            return await self._store.start()
        if self._store is None:
            raise RuntimeError("the store is not open")
        if frame.topic == CLOSE:
            store, self._store = self._store, None
            return await store.stop()
        method = METHODS[frame.topic]
        return await method.call(self._store, decode(frame, method.unpack_row))

    def _send(self, frame: bytes) -> None:
        if self._transport is None:
            return
        told = self._meter.collect()
        self._transport.write(encode(0, Notice.METERED, told) + frame if told else frame)

    def _tell(self, notice: Notice) -> None:
        self._loop.call_soon_threadsafe(lambda: self._send(encode(0, notice, None)))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the server is gone, or has closed
        self._transport = None
        self.done.set()
