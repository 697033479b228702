"""Bad input over real HTTP: each is refused with the field named, nothing is stored, and nothing secret is repeated."""

import socket
import time
from collections.abc import Iterator

import pytest
from msgspec import Struct

from tests.faults.machinery.bad_requests import (
    ADDRESS,
    NOBODY,
    OTHERS,
    PASSWORD,
    PHONE,
    SHAPES,
    TEMPLATE,
    TOKEN,
    UNREADABLE,
    USER,
    Case,
    request,
    spoilt,
    text,
)
from tests.faults.machinery.caller import NOTIFICATIONS, Answered, Caller
from tests.faults.machinery.kept_store import KeptStore, Stores
from tests.faults.machinery.processes import ServedNoroshi
from tests.faults.machinery.report import publish, section

pytestmark = pytest.mark.xdist_group("input")


class House(Struct):
    """A server with one person, one template and one batch in it, and what its answers and its log must not say."""

    noroshi: ServedNoroshi
    kept: KeptStore
    caller: Caller
    canaries: list[str]
    refused: int = 0

    def dump(self) -> str:
        """A digest of every row of every table."""
        return self.kept.digest()

    def told(self, text: str) -> list[str]:
        return [canary for canary in self.canaries if canary in text]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Iterator[House]:
    data = tmp_path_factory.mktemp("input") / "data"
    environment = {"NOROSHI_CATCHER": "on", "NOROSHI_LOG_LEVEL": "debug"}
    with store.opened(data) as kept, ServedNoroshi(data, kept.environment | environment) as noroshi:
        key, reading = noroshi.create_key(), noroshi.create_key("read")
        noroshi.start()
        caller = Caller(noroshi.url, key)
        assert caller.call("PUT", USER, {"email": ADDRESS, "phone": PHONE}).status == 200
        device = {"platform": "ios", "device_token": TOKEN}
        assert caller.call("POST", f"{USER}/devices", device).status == 200
        template = {"channel": "in_app", "locale": "ja", "body": "hello {{ number }}"}
        assert caller.call("POST", TEMPLATE, template).status == 201
        house = House(noroshi, kept, caller, [ADDRESS, PHONE, TOKEN, PASSWORD, key, key[4:], reading])
        yield house
        assert noroshi.stop() == 0
        assert house.told(noroshi.log()) == []
        told = f"{house.refused} requests refused over real HTTP; the store was the same after each."
        publish(section("input", store.kind), told)


def refuse(house: House, case: Case) -> Answered:
    before = house.dump()
    answer = house.caller.call(case.method, case.path, case.body, case.headers)
    assert answer.status == case.status, answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "todo", "request_id"} <= answer.fields.keys()
    assert house.told(answer.body.decode()) == []
    assert house.dump() == before
    house.refused += 1
    return answer


@pytest.mark.parametrize("case", [*UNREADABLE, *SHAPES, *OTHERS, *NOBODY], ids=str)
def test_it_is_refused_with_the_field_named_and_nothing_is_stored(house: House, case: Case) -> None:
    # N4, issue 2 "Bad input", I12
    answer = refuse(house, case)
    assert answer.fields.get("field") == case.field


@pytest.mark.parametrize("case", list(spoilt()), ids=str)
def test_a_control_character_is_refused_in_every_text(house: House, case: Case) -> None:
    answer = refuse(house, case)
    assert answer.fields["field"].partition(".")[0].partition("[")[0] == case.field


def test_control_a_good_request_is_stored(house: House) -> None:
    # or the dump would see nothing at all
    before = house.dump()
    assert house.caller.call("POST", NOTIFICATIONS, request(data={"number": "line\nbreak"})).status == 202
    assert house.dump() != before
    deadline = time.monotonic() + 10
    while not house.caller.call("GET", "/api/v1/caught?user_id=hanako").fields["items"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.2)  # until it is settled, too: the dumps of other tests must see a store at rest


# beneath HTTP

GOOD = text(request(data={"number": "smuggled"}))


def raw(house: House, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What comes back for these bytes, until the server closes or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", house.noroshi.port), timeout=5) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        connection.settimeout(1)
        answer = b""
        try:
            while received := connection.recv(65_536):
                answer += received
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


def head(house: House, *lines: str) -> bytes:
    first = (f"POST {NOTIFICATIONS} HTTP/1.1", "Host: noroshi", f"Authorization: Bearer {house.caller.key}")
    return "\r\n".join([*first, *lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


SMUGGLED: dict[str, tuple[tuple[str, ...], bytes]] = {
    "two lengths": ((f"Content-Length: {len(GOOD)}", "Content-Length: 0"), GOOD),
    "a negative length": (("Content-Length: -1",), GOOD),
    "a length of words": (("Content-Length: all",), GOOD),
    "a length and chunks": ((f"Content-Length: {len(GOOD)}", "Transfer-Encoding: chunked"), chunk(GOOD) + b"0\r\n\r\n"),
    "chunks that are not the last coding": (("Transfer-Encoding: chunked, identity",), chunk(GOOD) + b"0\r\n\r\n"),
    "an unknown coding": (("Transfer-Encoding: xchunked",), chunk(GOOD) + b"0\r\n\r\n"),
    "a chunk of no size": (("Transfer-Encoding: chunked",), b"zz\r\n" + GOOD + b"\r\n0\r\n\r\n"),
    "a chunk of any size": (("Transfer-Encoding: chunked",), b"ffffffffffffffffff\r\n" + GOOD),
    "a blank before the colon": ((f"Content-Length : {len(GOOD)}",), GOOD),
    "NUL in a header": ((f"Content-Length: {len(GOOD)}", "Idempotency-Key: a\0b"), GOOD),
    "a folded header": ((f"Content-Length: {len(GOOD)}", "Idempotency-Key: a", " b"), GOOD),
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_an_ambiguous_request_is_refused_and_not_carried_out(house: House, name: str) -> None:
    before = house.dump()
    lines, body = SMUGGLED[name]
    answer = raw(house, head(house, *lines) + body)
    assert answer.startswith(b"HTTP/1.1 4"), answer
    assert b" 202 " not in answer
    assert house.told(answer.decode("latin-1")) == []
    assert house.dump() == before


def test_a_chunked_body_without_a_length_is_limited_too(house: House) -> None:
    before = house.dump()
    pieces = [chunk(b" " * 100_000) for _ in range(130)]
    answer = raw(house, head(house, "Transfer-Encoding: chunked"), *pieces, b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 "), answer
    assert house.dump() == before


def test_a_slow_body_holds_up_nobody_and_an_unfinished_one_is_not_carried_out(house: House) -> None:
    # F15 in small
    before = house.dump()
    whole = head(house, "Transfer-Encoding: chunked") + chunk(GOOD)
    with socket.create_connection(("127.0.0.1", house.noroshi.port), timeout=5) as slow:
        for start in range(0, len(whole), 40):
            slow.sendall(whole[start : start + 40])
            assert house.caller.call("GET", "/healthz").status == 200
    time.sleep(0.2)
    assert house.dump() == before


def test_control_the_same_body_finished_is_carried_out(house: House) -> None:
    before = house.dump()
    answer = raw(house, head(house, "Transfer-Encoding: chunked"), chunk(GOOD), b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 202 "), answer
    time.sleep(0.2)
    assert house.dump() != before
