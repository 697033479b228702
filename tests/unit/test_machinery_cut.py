"""The line that can be cut does what it says: silence keeps, a reset breaks, healing brings back."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest
from tests.faults.machinery.cut import CuttableLine

WORD = b"word"


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while text := self.request.recv(1024):
            self.request.sendall(text)


@pytest.fixture
def line() -> Iterator[CuttableLine]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with CuttableLine(server.server_address[1]) as line:
            yield line
        server.shutdown()


def connected(line: CuttableLine) -> socket.socket:
    return socket.create_connection(("127.0.0.1", line.port), timeout=5)


def test_a_silent_line_keeps_what_it_is_given_and_passes_it_on_when_healed(line: CuttableLine) -> None:
    with connected(line) as talker:
        talker.sendall(WORD)
        assert talker.recv(1024) == WORD
        line.silence()
        talker.sendall(WORD)
        talker.settimeout(0.2)
        with pytest.raises(TimeoutError):
            talker.recv(1024)
        line.heal()
        talker.settimeout(5)
        assert talker.recv(1024) == WORD


def test_a_broken_line_ends_what_was_open_and_takes_nothing_new_until_it_is_healed(line: CuttableLine) -> None:
    with connected(line) as talker:
        talker.sendall(WORD)
        assert talker.recv(1024) == WORD
        line.reset()
        assert is_ended(talker)
    with connected(line) as refused:
        assert is_ended(refused)
    line.heal()
    with connected(line) as talker:
        talker.sendall(WORD)
        assert talker.recv(1024) == WORD


def test_a_url_over_the_line_differs_in_its_port_alone(line: CuttableLine) -> None:
    assert line.url("postgresql://who:what@127.0.0.1:5432/db") == f"postgresql://who:what@127.0.0.1:{line.port}/db"


def is_ended(talker: socket.socket) -> bool:
    try:
        return talker.recv(1024) == b""
    except ConnectionError:
        return True
