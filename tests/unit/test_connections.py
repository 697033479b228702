"""Connections: a client that sends too slowly is cut in time, and nobody else is (F15); what may go without ASGI does,
and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from noroshi.entrypoints.api import connections
from noroshi.entrypoints.api.answers import Answer
from noroshi.entrypoints.api.connections import AnswerWhole, Connection, Socket

SPAN = timedelta(milliseconds=300)
SECONDS = SPAN.total_seconds()
LONGER = SECONDS * 2
HEAD = b"POST / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 40\r\n\r\n"
WHOLE = b"POST / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 4\r\n\r\nbody"

Answering = Callable[[Any, Any, Any], Awaitable[None]]


class Product:
    """Reads what is sent and answers with its length; `heard` are the types of the messages that it received."""

    def __init__(self, *, waits_before: float = 0, waits_after: float = 0) -> None:
        self.heard: list[str] = []
        self.asked: list[tuple[dict[bytes, bytes], bytes]] = []
        self._waits_before, self._waits_after = waits_before, waits_after

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._talk(receive, send)
            return
        await asyncio.sleep(self._waits_before)
        size, has_more = 0, True
        while has_more:
            message = await receive()
            self.heard.append(message["type"])
            if message["type"] == "http.disconnect":
                return
            size, has_more = size + len(message["body"]), message["more_body"]
        await asyncio.sleep(self._waits_after)
        body = str(size).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    async def whole(self, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> tuple[Answer, str]:
        self.heard.append("whole")
        self.asked.append((dict(headers), body))
        await asyncio.sleep(self._waits_before + self._waits_after)
        return Answer(200, b"text/plain", str(len(body)).encode()), "the-id"

    async def _talk(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await asyncio.sleep(LONGER)
        await send({"type": "websocket.send", "text": "still here"})
        await receive()


@asynccontextmanager
async def listening(
    product: Answering, keep_alive: float = 60, whole: Mapping[bytes, AnswerWhole] | None = None
) -> AsyncIterator[int]:
    config = uvicorn.Config(
        product,
        interface="asgi3",
        ws=Socket,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=keep_alive,  # type: ignore[arg-type]  # it is handed on as it is
    )
    config.load()
    state, kind = ServerState(), Connection.to(whole or {}, SPAN)
    server = await asyncio.get_running_loop().create_server(
        lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    yield server.sockets[0].getsockname()[1]
    server.close()
    for connection in list(state.connections):
        connection.shutdown()
    for ended in await asyncio.gather(*state.tasks, return_exceptions=True):
        assert not isinstance(ended, Exception)


class Sender:
    """A client with one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def at(cls, port: int) -> AsyncIterator["Sender"]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        yield cls(reader, writer)
        writer.transport.abort()

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def trickle(self, data: bytes, *, pause: float = 0.02) -> tuple[float, bytes]:
        """Byte by byte until the other side has had enough; the seconds that took, and what it said."""
        clock = asyncio.get_running_loop().time
        began, hearing = clock(), asyncio.create_task(self.rest())
        for byte in data:
            self.send(bytes([byte]))
            if (await asyncio.wait([hearing], timeout=pause))[0]:
                break
        return clock() - began, await hearing

    async def answer(self) -> bytes:
        head = await self._reader.readuntil(b"\r\n\r\n")
        return head + await self._reader.readexactly(1)

    async def next(self) -> bytes:
        return await self._reader.read(1024)

    async def rest(self) -> bytes:
        try:
            return await asyncio.wait_for(self._reader.read(), 5)
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    ("before", "slowly"),
    [(b"", WHOLE * 3), (HEAD, b"x" * 39), (b"", b"\r\n" * 100), (b"", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100)],
    ids=["all of it", "its body", "blank lines", "headers"],
)
async def test_a_request_that_comes_too_slowly_is_cut_in_time(before: bytes, slowly: bytes) -> None:
    product = Product()
    async with listening(product) as port, Sender.at(port) as client:
        client.send(before)
        took, said = await client.trickle(slowly)
    assert said.startswith(b"HTTP/1.1 408 ") or said == b"", said  # a byte that comes after the end resets it
    assert SECONDS * 0.9 < took < SECONDS * 3
    assert product.heard[-1:] in ([], ["http.disconnect"])


async def test_the_second_request_of_a_connection_has_a_deadline_too() -> None:
    async with listening(Product()) as port, Sender.at(port) as client:
        client.send(WHOLE)
        assert (await client.answer()).startswith(b"HTTP/1.1 200 ")
        client.send(HEAD)
        assert (await client.rest()).startswith(b"HTTP/1.1 408 ")


async def test_blank_lines_after_an_answer_do_not_keep_a_connection() -> None:
    async with listening(Product()) as port, Sender.at(port) as client:
        client.send(WHOLE)
        await client.answer()
        took, _ = await client.trickle(b"\r\n" * 100)
    assert took < SECONDS * 3


async def test_an_answer_may_take_longer_than_a_request() -> None:
    async with listening(Product(waits_after=LONGER)) as port, Sender.at(port) as client:
        client.send(WHOLE)
        assert (await client.answer()).endswith(b"\r\n\r\n4")


async def test_a_connection_may_rest_between_requests() -> None:
    async with listening(Product()) as port, Sender.at(port) as client:
        for _ in range(2):
            client.send(WHOLE)
            assert (await client.answer()).endswith(b"\r\n\r\n4")
            await asyncio.sleep(LONGER)


async def test_a_client_is_not_cut_because_the_product_is_slow_to_read() -> None:
    size = 1_000_000
    async with listening(Product(waits_before=LONGER)) as port, Sender.at(port) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        assert (await client.answer()).endswith(b"\r\n\r\n1")


async def test_a_connection_on_which_nothing_is_said_is_closed() -> None:
    async with listening(Product(), keep_alive=0.1) as port, Sender.at(port) as client:
        assert await client.rest() == b""


async def test_a_websocket_has_no_deadline() -> None:
    async with listening(Product()) as port, connect(f"ws://127.0.0.1:{port}/") as socket:
        assert await asyncio.wait_for(socket.recv(), 5) == "still here"


async def test_a_websocket_whose_request_came_in_pieces_has_none_either() -> None:
    lines = ("Host: noroshi", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    head = "\r\n".join(["GET / HTTP/1.1", *lines, "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", "", ""]).encode()
    async with listening(Product()) as port, Sender.at(port) as client:
        client.send(head[:40])
        await asyncio.sleep(SECONDS / 3)
        client.send(head[40:])
        assert (await client.answer()).startswith(b"HTTP/1.1 101 ")
        assert b"still here" in await asyncio.wait_for(client.next(), 5)


@pytest.fixture
async def wholly() -> AsyncIterator[tuple[Product, Sender]]:
    """A client of a product that takes requests for `/` whole."""
    product = Product()
    async with listening(product, whole={b"/": product.whole}) as port, Sender.at(port) as client:
        yield product, client


async def test_a_small_request_is_answered_whole_and_so_is_the_next(wholly: tuple[Product, Sender]) -> None:
    product, client = wholly
    for piece in (WHOLE, WHOLE[:20], WHOLE[20:70], WHOLE[70:]):
        client.send(piece)
        await asyncio.sleep(0.02)
        if piece.endswith(b"body"):
            assert await client.answer() == (
                b"HTTP/1.1 200 OK\r\nx-request-id: the-id\r\ncache-control: no-store\r\n"
                b"x-content-type-options: nosniff\r\ncontent-type: text/plain\r\ncontent-length: 1\r\n\r\n4"
            )
    assert product.heard == ["whole", "whole"]


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /?a=b HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 4\r\n\r\nbody",
        b"PUT / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 4\r\n\r\nbody",
        b"POST / HTTP/1.1\r\nHost: noroshi\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 65537\r\n\r\n" + bytes(65_537),
        b"POST / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 100000\r\n\r\n" + bytes(100_000),
        b"POST / HTTP/1.1\r\nHost: noroshi\r\n\r\n",
    ],
    ids=["query", "method", "chunked", "large", "larger", "no length"],
)
async def test_what_is_unusual_goes_the_usual_way(wholly: tuple[Product, Sender], request_: bytes) -> None:
    product, client = wholly
    client.send(request_)
    assert (await client.answer()).startswith(b"HTTP/1.1 200 OK\r\n")
    assert "whole" not in product.heard


async def test_the_largest_that_is_small_comes_whole_in_any_number_of_pieces(wholly: tuple[Product, Sender]) -> None:
    product, client = wholly
    client.send(b"POST / HTTP/1.1\r\nHost: noroshi\r\nContent-Length: 65536\r\n\r\n")
    for _ in range(16):
        client.send(bytes(4096))
        await asyncio.sleep(0.005)
    assert (await client.next()).endswith(b"65536") and product.heard == ["whole"]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The paths of the requests that the parser has read."""
    seen: list[bytes] = []
    read = Connection.on_headers_complete

    def note(self: Connection) -> None:
        seen.append(self.url)
        read(self)

    monkeypatch.setattr(Connection, "on_headers_complete", note)
    return seen


def posted(body: bytes, key: bytes = b"a", path: bytes = b"/") -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: noroshi\r\nKey: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        path,
        key,
        len(body),
        body,
    )


async def test_a_head_that_is_known_to_the_letter_is_not_parsed_again(
    parsed: list[bytes], wholly: tuple[Product, Sender]
) -> None:
    product, client = wholly
    for body, key in ((b"one", b"a"), (b"two", b"a"), (b"four", b"a"), (b"six", b"b"), (b"ten", b"a"), (b"five", b"a")):
        client.send(posted(body, key))
        assert (await client.answer()).endswith(b"\r\n\r\n%d" % len(body))
    assert [(headers[b"key"], headers[b"content-length"], body) for headers, body in product.asked] == [
        (b"a", b"3", b"one"),
        (b"a", b"3", b"two"),
        (b"a", b"4", b"four"),
        (b"b", b"3", b"six"),
        (b"a", b"3", b"ten"),
        (b"a", b"4", b"five"),
    ]
    assert parsed == [b"/"] * 3


async def test_a_known_head_is_parsed_where_it_is_not_a_request_of_its_own(
    parsed: list[bytes], wholly: tuple[Product, Sender]
) -> None:
    product, client = wholly
    known = posted(b"known")
    for pieces in (
        [known],
        [posted(known)],  # inside another's body
        [posted(known)[: -len(known)], known],  # as another's body
        [b"\r\n", known],
        [known[:-2], known[-2:]],
        [known],
    ):
        for piece in pieces:
            client.send(piece)
            await asyncio.sleep(0.02)
        assert b"200 OK" in await client.next()
    assert [body for _, body in product.asked] == [b"known", known, known, b"known", b"known", b"known"]
    assert len(parsed) == 5


async def test_known_heads_are_few_and_small(wholly: tuple[Product, Sender], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_KNOWN_HEADS", 2)
    _, client = wholly
    kept: list[dict[bytes, Any]] = []
    remember = Connection._remember_head

    def note(self: Connection, data: bytes, end: int) -> None:
        remember(self, data, end)
        kept.append(dict(self.heads))

    monkeypatch.setattr(Connection, "_remember_head", note)
    for key in (b"a", b"b", b"c" * 5000, b"d"):
        client.send(posted(b"body", key))
        await client.answer()
    found = [[head.split(b"Key: ")[1][:1] for head in heads] for heads in kept]
    assert found == [[b"a"], [b"a", b"b"], [b"a", b"b"], [b"b", b"d"]]


async def test_what_is_written_in_one_turn_of_the_loop_goes_out_together_at_its_end() -> None:
    outbox, written = connections.Outbox(), list[str]()
    outbox.put(lambda: written.append("first"))
    outbox.put(lambda: written.append("second"))
    assert written == []
    await asyncio.sleep(0)
    assert written == ["first", "second"]
    outbox.put(lambda: written.append("third"))
    await asyncio.sleep(0)
    assert written == ["first", "second", "third"]


async def test_two_servers_share_neither_heads_nor_outbox() -> None:
    one, other = Connection.to({}, SPAN), Connection.to({}, SPAN)
    assert one.heads is not other.heads
    assert one.outbox is not other.outbox


async def test_a_connection_is_closed_when_it_has_rested_for_long_and_not_before() -> None:
    product, clock = Product(), asyncio.get_running_loop().time
    async with listening(product, keep_alive=0.3, whole={b"/": product.whole}) as port, Sender.at(port) as client:
        for _ in range(5):
            client.send(WHOLE)
            await client.answer()
            await asyncio.sleep(0.1)
        began = clock()
        assert await client.rest() == b""
    assert 0.1 < clock() - began < 0.6


async def test_who_asks_before_sending_is_answered_before(wholly: tuple[Product, Sender]) -> None:
    product, client = wholly
    client.send(HEAD.replace(b"Content", b"Expect: 100-continue\r\nContent"))
    assert await client.next() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(bytes(40))
    assert (await client.next()).endswith(b"40") and "whole" not in product.heard


async def test_requests_sent_at_once_are_answered_in_order(wholly: tuple[Product, Sender]) -> None:
    product, client = wholly
    client.send(WHOLE + HEAD + bytes(40) + WHOLE)
    said = b""
    while said.count(b"HTTP/1.1 200") < 3 or not said.endswith(b"4"):
        said += await client.next()
    assert [part[-2:].strip() for part in said.split(b"HTTP/1.1 200 OK")[1:]] == [b"4", b"40", b"4"]
    assert product.heard[0] == "whole"


@pytest.mark.parametrize("how", [b"HTTP/1.0\r\nHost: noroshi", b"HTTP/1.1\r\nHost: noroshi\r\nConnection: close"])
async def test_who_wants_no_more_is_told_so_and_let_go(wholly: tuple[Product, Sender], how: bytes) -> None:
    product, client = wholly
    client.send(WHOLE.replace(b"HTTP/1.1\r\nHost: noroshi", how))
    said = await client.rest()
    assert b"connection: close\r\n" in said and said.endswith(b"\r\n\r\n4") and product.heard == ["whole"]


async def test_a_body_that_comes_too_slowly_is_cut_though_it_would_be_whole(wholly: tuple[Product, Sender]) -> None:
    product, client = wholly
    client.send(HEAD)
    took, said = await client.trickle(b"x" * 39)
    assert said.startswith(b"HTTP/1.1 408 ") or said == b""
    assert SECONDS * 0.9 < took < SECONDS * 3 and product.heard == []


async def test_what_is_under_way_at_the_end_is_answered_and_who_has_gone_is_not() -> None:
    product = Product(waits_before=SECONDS)
    server = AsyncExitStack()
    port = await server.enter_async_context(listening(product, whole={b"/": product.whole}))
    async with Sender.at(port) as client:
        async with Sender.at(port) as gone:
            gone.send(WHOLE)
            await asyncio.sleep(0.05)
        client.send(WHOLE)
        await asyncio.sleep(0.05)
        hearing = asyncio.create_task(client.rest())
        await server.aclose()
        said = await hearing
    assert product.heard == ["whole", "whole"]
    assert said.endswith(b"4") and b"connection: close" in said
