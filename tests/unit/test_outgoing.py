"""The one way out over HTTP: what comes back, what may have left when nothing does, and what nobody gets to see."""

import asyncio
import gzip
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from http_cast import Script, answering, authority, plain, read_request, serving, speak_http2

from noroshi.domain.outgoing import Answered, NoAnswer, NotAllowed, NotSent, OutgoingCall, OutgoingReply
from noroshi.machine.outgoing import client
from noroshi.machine.outgoing.client import CLOSED, CONNECTION_LOST, NO_CONNECTION, TIMEOUT, ReqwestOutgoing
from noroshi.machine.outgoing.guard import Guard

SHORTLY = timedelta(milliseconds=300)
TOKEN = "token-that-nobody-may-see"


@pytest.fixture
async def outgoing() -> AsyncIterator[ReqwestOutgoing]:
    opened = ReqwestOutgoing()
    yield opened
    await opened.close()


def a_call(port: int, scheme: str = "http", **more: object) -> OutgoingCall:
    """With a token wherever one can be."""
    values: dict[str, object] = {
        "method": "POST",
        "url": f"{scheme}://127.0.0.1:{port}/push/{TOKEN}?key={TOKEN}",
        "headers": {"Authorization": f"Bearer {TOKEN}"},
        "body": TOKEN.encode(),
    }
    return OutgoingCall(**(values | more))  # type: ignore[arg-type]


async def test_status_headers_and_body_come_back(outgoing: ReqwestOutgoing) -> None:
    async with serving(answering(plain(b"taken", "202 Accepted", "X-Line-Request-Id: r-1"))) as port:
        reply = await outgoing.call(a_call(port))
    assert isinstance(reply, Answered)
    assert (reply.status, reply.body, reply.is_whole) == (202, b"taken", True)
    assert reply.headers["x-line-request-id"] == "r-1"


async def test_method_headers_and_body_go_out_as_they_were_given(outgoing: ReqwestOutgoing) -> None:
    seen: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(plain(b""))

    async with serving(listen) as port:
        await outgoing.call(a_call(port, method="PUT", headers={"X-Line-Retry-Key": "k"}, body=b'{"a": 1}'))
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /push/")
    assert b"x-line-retry-key: k" in head.lower()
    assert body == b'{"a": 1}'


async def test_connections_are_used_again(outgoing: ReqwestOutgoing) -> None:
    connections = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answering(plain(b""))(reader, writer)

    async with serving(count) as port:
        for _ in range(5):
            await outgoing.call(a_call(port))
    assert connections == 1


async def test_http_2_is_spoken_where_it_is_offered(tmp_path: Path) -> None:
    ca, tls = authority(tmp_path)
    tls.set_alpn_protocols(["h2"])
    outgoing = ReqwestOutgoing(ca=ca)
    async with serving(speak_http2, tls) as port:
        replies = await asyncio.gather(*(outgoing.call(a_call(port, "https")) for _ in range(10)))
    await outgoing.close()
    assert [reply.body for reply in replies if isinstance(reply, Answered)] == [b"h2"] * 10


async def test_http_1_is_spoken_over_tls_where_http_2_is_not_offered(tmp_path: Path) -> None:
    ca, tls = authority(tmp_path)
    outgoing = ReqwestOutgoing(ca=ca)
    async with serving(answering(plain(b"one")), tls) as port:
        reply = await outgoing.call(a_call(port, "https"))
    await outgoing.close()
    assert isinstance(reply, Answered) and reply.body == b"one"


# before it left


async def test_a_server_nobody_vouches_for_gets_nothing(outgoing: ReqwestOutgoing, tmp_path: Path) -> None:
    _, tls = authority(tmp_path)
    async with serving(answering(plain(b"")), tls) as port:
        reply = await outgoing.call(a_call(port, "https"))
    assert isinstance(reply, NotSent) and reply.code == NO_CONNECTION and "certificate" in reply.error


async def test_a_refused_connection_has_sent_nothing(outgoing: ReqwestOutgoing) -> None:
    async with serving(answering(b"")) as port:
        pass
    reply = await outgoing.call(a_call(port))
    assert isinstance(reply, NotSent) and reply.code == NO_CONNECTION and "refused" in reply.error


async def test_a_name_that_does_not_exist_has_sent_nothing(outgoing: ReqwestOutgoing) -> None:
    reply = await outgoing.call(OutgoingCall("GET", "http://no-such-host.invalid/"))
    assert isinstance(reply, NotSent) and reply.code == NO_CONNECTION


async def test_a_handshake_that_never_ends_has_sent_nothing(
    outgoing: ReqwestOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_CONNECT_WITHIN", SHORTLY)
    async with serving(_say_nothing) as port:
        reply = await outgoing.call(a_call(port, "https"))
    assert isinstance(reply, NotSent) and reply.code == NO_CONNECTION


@pytest.mark.parametrize("url", ["", "no address", "ftp://127.0.0.1/", "http://"])
async def test_what_is_no_address_has_sent_nothing(outgoing: ReqwestOutgoing, url: str) -> None:
    assert isinstance(await outgoing.call(OutgoingCall("GET", url)), NotSent)


async def test_a_header_that_could_become_two_is_not_sent(outgoing: ReqwestOutgoing) -> None:
    async with serving(answering(plain(b""))) as port:
        reply = await outgoing.call(a_call(port, headers={"Authorization": "Bearer a\r\nX-Evil: 1"}))
    assert isinstance(reply, NotSent)


async def test_after_the_end_nothing_is_sent() -> None:
    outgoing = ReqwestOutgoing()
    await outgoing.close()
    assert await outgoing.call(OutgoingCall("GET", "http://127.0.0.1/")) == NotSent(CLOSED)


# after it left


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    await asyncio.Event().wait()


async def _take_and_say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await reader.read()


async def _take_and_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)


async def _take_and_reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.transport.abort()


async def _hang_up_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    return


async def test_an_answer_that_does_not_come_in_time_leaves_a_doubt(outgoing: ReqwestOutgoing) -> None:
    # pyreqwest calls this one a ConnectTimeoutError
    async with serving(_take_and_say_nothing) as port:
        reply = await outgoing.call(a_call(port, timeout=SHORTLY))
    assert isinstance(reply, NoAnswer) and reply.code == TIMEOUT


NONSENSE = answering(b"what?\r\n\r\n")


@pytest.mark.parametrize("server", [_take_and_hang_up, _take_and_reset, _hang_up_at_once, NONSENSE])
async def test_a_connection_that_breaks_leaves_a_doubt(outgoing: ReqwestOutgoing, server: Script) -> None:
    # pyreqwest calls the first three a ConnectError
    async with serving(server) as port:
        reply = await outgoing.call(a_call(port))
    assert isinstance(reply, NoAnswer) and reply.code == CONNECTION_LOST


async def test_a_header_that_is_no_text_does_not_undo_that_the_call_has_left(outgoing: ReqwestOutgoing) -> None:
    async with serving(answering(b"HTTP/1.1 200 OK\r\nX-Odd: \xff\xfe\r\nContent-Length: 0\r\n\r\n")) as port:
        reply = await outgoing.call(a_call(port))
    assert isinstance(reply, Answered | NoAnswer)


async def test_an_answer_that_breaks_off_leaves_a_doubt(outgoing: ReqwestOutgoing) -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(plain(b"x" * 100)[:-50])

    async with serving(break_off) as port:
        reply = await outgoing.call(a_call(port))
    assert isinstance(reply, NoAnswer) and reply.code == CONNECTION_LOST


async def test_no_more_of_an_answer_is_read_than_was_asked_for(outgoing: ReqwestOutgoing) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 1_000_000)
            await writer.drain()

    async with serving(flood) as port:
        reply = await outgoing.call(a_call(port, largest_answer=1_000))
    assert isinstance(reply, Answered) and (len(reply.body), reply.is_whole) == (1_000, False)


async def test_a_compressed_answer_is_bounded_by_what_it_becomes(outgoing: ReqwestOutgoing) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    async with serving(answering(plain(bomb, "200 OK", "Content-Encoding: gzip"))) as port:
        reply = await outgoing.call(a_call(port, largest_answer=1_000))
    assert isinstance(reply, Answered) and len(reply.body) <= 1_000 and not reply.is_whole


async def test_a_call_that_is_cancelled_holds_its_connection_no_longer_than_its_time(outgoing: ReqwestOutgoing) -> None:
    has_begun, has_ended = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        has_begun.set()
        await reader.read()
        has_ended.set()

    async with serving(listen) as port:
        calling = asyncio.create_task(outgoing.call(a_call(port, timeout=SHORTLY)))
        await has_begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.wait_for(has_ended.wait(), 5)


# what is left out


async def test_no_redirect_is_followed(outgoing: ReqwestOutgoing) -> None:  # RELIABILITY 5.3
    async with serving(answering(plain(b"", "302 Found", "Location: http://127.0.0.1:1/"))) as port:
        reply = await outgoing.call(a_call(port))
    assert isinstance(reply, Answered) and reply.status == 302


async def test_the_environments_proxies_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    outgoing = ReqwestOutgoing()
    async with serving(answering(plain(b""))) as port:
        reply = await outgoing.call(a_call(port))
    await outgoing.close()
    assert isinstance(reply, Answered)


@pytest.mark.parametrize("server", [_take_and_hang_up, _take_and_say_nothing, NONSENSE])
async def test_no_reply_quotes_what_the_call_was_made_of(outgoing: ReqwestOutgoing, server: Script) -> None:  # I12
    async with serving(server) as port:
        after = await outgoing.call(a_call(port, timeout=SHORTLY))
        handshake = await outgoing.call(a_call(port, "https", timeout=SHORTLY))
    before = await outgoing.call(a_call(port))
    replies: list[OutgoingReply] = [after, handshake, before]
    assert not any(isinstance(reply, Answered) for reply in replies)
    assert TOKEN not in repr([*replies, a_call(port)])


# addresses that users gave


async def resolve_here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_a_private_address_is_never_dialled(outgoing: ReqwestOutgoing) -> None:  # RELIABILITY 5.3
    connections = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1

    async with serving(count) as port:
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "①②⑦.0.0.1", "[::ffff:127.0.0.1]"):
            guarded = ReqwestOutgoing(Guard(ports=frozenset({port}), schemes=frozenset({"http"})))
            reply = await guarded.call(OutgoingCall("GET", f"http://{host}:{port}/", is_foreign=True))
            await guarded.close()
            assert isinstance(reply, NotAllowed), host
    assert connections == 0


async def test_the_address_that_was_checked_is_dialled_under_the_name_that_was_given() -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    seen: list[bytes] = []

    async def resolve(host: str, port: int) -> list[str]:
        return next(answers)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(plain(b"here"))

    async with serving(listen) as port:
        guard = Guard(resolve, lambda address: address == "127.0.0.1", frozenset({port}), frozenset({"http"}))
        outgoing = ReqwestOutgoing(guard)
        url = f"http://hooks.example:{port}/"
        first = await outgoing.call(OutgoingCall("GET", url, is_foreign=True))
        rebound = await outgoing.call(OutgoingCall("GET", url, is_foreign=True))
        await outgoing.close()
    assert isinstance(first, Answered) and first.body == b"here"
    assert f"host: hooks.example:{port}".encode() in seen[0].lower()
    assert isinstance(rebound, NotAllowed)


async def test_a_name_that_a_user_gave_and_nobody_knows_has_sent_nothing() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    outgoing = ReqwestOutgoing(Guard(resolve))
    reply = await outgoing.call(OutgoingCall("GET", "https://hooks.example/", is_foreign=True))
    await outgoing.close()
    assert isinstance(reply, NotSent)


async def test_clients_of_many_places_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MOST_PLACES", 3)
    async with serving(answering(plain(b""))) as port:
        guard = Guard(resolve_here, lambda _: True, frozenset({port}), frozenset({"http"}))
        outgoing = ReqwestOutgoing(guard)
        for number in range(6):
            url = f"http://hooks-{number}.example:{port}/"
            assert isinstance(await outgoing.call(OutgoingCall("GET", url, is_foreign=True)), Answered)
        assert len(outgoing._pinned) == 3
        await outgoing.close()


# its end

SCRIPT = """
import asyncio, sys
from datetime import timedelta
from noroshi.domain.outgoing import OutgoingCall
from noroshi.machine.outgoing.opening import LateOutgoing

async def main(port):
    outgoing = LateOutgoing()
    call = OutgoingCall("GET", f"http://127.0.0.1:{port}/", timeout=timedelta(seconds=20))
    answered = await outgoing.call(call)
    hanging = [asyncio.create_task(outgoing.call(call)) for _ in range(10)]
    await asyncio.sleep(0.05)
    for task in hanging[:5]:
        task.cancel()
    await outgoing.close()
    await asyncio.gather(*hanging, return_exceptions=True)
    print(answered.status)

asyncio.run(main(int(sys.argv[1])))
"""


async def test_a_process_that_called_somebody_ends_cleanly() -> None:  # DESIGN 6
    first = True

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal first
        await read_request(reader)
        if first:
            first = False
            writer.write(plain(b""))
        await reader.read()

    async with serving(answer_once) as port:
        for _ in range(4):
            first = True
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", SCRIPT, str(port)),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await asyncio.wait_for(process.communicate(), 20)
            assert (process.returncode, out, err) == (0, b"200\n", b"")


def test_whoever_calls_nobody_loads_no_client() -> None:
    script = (
        "import asyncio, sys; import noroshi.bootstrap.opening\n"
        "from noroshi.machine.outgoing.opening import LateOutgoing\n"
        "asyncio.run(LateOutgoing().close()); print('pyreqwest' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
