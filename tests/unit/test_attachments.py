"""Attachments on their way in: what is taken, what is refused by name, and what makes two requests differ."""

import base64
import json
from typing import Any

import msgspec
import pytest
from api_stub import Client, StubDesk

from noroshi.domain.attachments import MAX_ATTACHED, type_of
from noroshi.domain.batches import NewBatch
from noroshi.domain.bodies import MAX_BODY
from noroshi.domain.ids import DEFAULT_TENANT, new_batch_id
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import Caller, read_request
from noroshi.entrypoints.api.app import build_app
from noroshi.flow.accept.prepare import content_hash, fingerprint, prepare

SEND = "/api/v1/notifications"
FINE = {"user_ids": ["hanako"], "template_id": "invoice"}
CALLER = Caller(DEFAULT_TENANT, "key", "shop", frozenset())


def a_file(raw: bytes = b"%PDF-", /, **fields: Any) -> dict[str, Any]:
    return {"filename": "invoice.pdf", "content": base64.b64encode(raw).decode(), **fields}


def body(*files: dict[str, Any], **fields: Any) -> bytes:
    return msgspec.json.encode({**FINE, "attachments": list(files), **fields})


def prepared(raw: bytes, *channels: str) -> NewBatch:
    served = {"email", "push", "in_app"}
    return prepare(CALLER, read_request(raw), "key", channels, served, Instant(0), new_batch_id(0, 1))


def refusal(raw: bytes) -> ProblemError:
    with pytest.raises(ProblemError) as refused:
        prepared(raw, "email")
    return refused.value


def test_what_was_attached_is_described_and_its_content_stays_apart() -> None:
    files = [
        a_file(b"\x00\xff"),
        a_file(b"", filename="請求書.csv", content_type="text/csv; charset=utf-8"),
        a_file(b"x", filename="logo.png", content_id="logo@shop.example"),
    ]
    batch = prepared(body(*files), "email", "push")
    assert [tuple(msgspec.structs.astuple(one)) for one in batch.attachments] == [
        ("invoice.pdf", "application/pdf", 2, None),
        ("請求書.csv", "text/csv; charset=utf-8", 0, None),
        ("logo.png", "image/png", 1, "logo@shop.example"),
    ]
    assert batch.contents == [b"\x00\xff", b"", b"x"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.PDF", "application/pdf"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("meeting.ics", "text/calendar"),
        ("archive.tar.gz", "application/octet-stream"),
        ("forwarded.eml", "application/octet-stream"),
        ("README", "application/octet-stream"),
        ("請求書", "application/octet-stream"),
    ],
)
def test_the_name_of_a_file_tells_its_type(name: str, kind: str) -> None:
    assert type_of(name) == kind


@pytest.mark.parametrize(
    ("file", "field"),
    [
        ({"filename": "../invoice.pdf"}, "filename"),
        ({"filename": "C:\\invoice.pdf"}, "filename"),
        ({"filename": "a\r\nBcc: mallory@example.com"}, "filename"),
        ({"filename": "a\x7f.pdf"}, "filename"),
        ({"filename": "a\u2028.pdf"}, "filename"),
        ({"filename": "invoice\u202efdp.exe"}, "filename"),
        ({"filename": ".."}, "filename"),
        ({"filename": " "}, "filename"),
        ({"filename": ""}, "filename"),
        ({"filename": "a\n"}, "filename"),
        ({"filename": "a" * 256}, "filename"),
        ({"content": "no base64"}, "content"),
        ({"content": "JVBERi0"}, "content"),
        ({"content": "JVBE\nRi0="}, "content"),
        ({"content": "_-8="}, "content"),
        ({"content": None}, "content"),
        ({"content_type": "pdf"}, "content_type"),
        ({"content_type": "text/csv\r\nBcc: mallory@example.com"}, "content_type"),
        ({"content_type": "text/csv\n"}, "content_type"),
        ({"content_type": 'text/csv; name="a"'}, "content_type"),
        ({"content_type": "multipart/mixed"}, "content_type"),
        ({"content_type": "Message/rfc822"}, "content_type"),
        ({"content_id": "a b"}, "content_id"),
        ({"content_id": "<logo>"}, "content_id"),
        ({"content_id": "logo\n"}, "content_id"),
        ({"content_id": "logo"}, "content_id"),
        ({"disposition": "inline"}, "disposition"),
    ],
)
def test_what_no_mail_could_carry_is_refused_by_its_place(file: dict[str, Any], field: str) -> None:  # N1.4
    problem = refusal(body(a_file(content_id="logo"), a_file(), a_file(**file)))
    assert problem.kind.status == 422
    assert problem.field == f"attachments[2].{field}"


def test_a_field_that_is_missing_is_named() -> None:
    assert refusal(body({"content": "aGk="})).field == "attachments[0].filename"
    assert refusal(body({"filename": "a.pdf"})).field == "attachments[0].content"


def test_an_eleventh_attachment_is_refused() -> None:
    assert len(prepared(body(*[a_file()] * 10), "email").attachments) == 10
    assert refusal(body(*[a_file()] * 11)).field == "attachments"


def test_five_megabytes_in_all_are_taken_and_one_byte_more_is_not() -> None:
    half = bytes(MAX_ATTACHED // 2)
    assert sum(one.size for one in prepared(body(a_file(half), a_file(half)), "email").attachments) == MAX_ATTACHED
    problem = refusal(body(a_file(half), a_file(half), a_file(b"x")))
    assert problem.field == "attachments"
    assert "5,000,001 bytes in all; at most 5,000,000" in problem.detail
    assert refusal(body(a_file(bytes(MAX_ATTACHED + 1)))).field == "attachments[0].content"


def test_slashes_may_be_escaped_as_some_languages_do() -> None:
    raw = json.dumps({**FINE, "attachments": [a_file(b"\xff" * 3)]}).replace("/", "\\/").encode()
    assert b"\\/" in raw
    assert prepared(raw, "email").contents == [b"\xff" * 3]


def test_attachments_that_no_channel_would_carry_are_refused() -> None:
    with pytest.raises(ProblemError) as refused:
        prepared(body(a_file(), channels=["push"]), "email", "push")
    assert (refused.value.kind.code, refused.value.field) == ("bad_field", "attachments")
    with pytest.raises(ProblemError):
        prepared(body(a_file()), "push", "in_app")


def test_no_attachment_needs_no_email() -> None:
    assert prepared(body(), "push").attachments == ()


def test_the_room_for_attachments_is_not_for_data() -> None:
    problem = refusal(msgspec.json.encode({**FINE, "data": {"text": "x" * MAX_BODY}}))
    assert (problem.kind.code, problem.field) == ("bad_field", "data")


@pytest.mark.parametrize(
    "other", [{"content": "aGk="}, {"filename": "b.pdf"}, {"content_type": "text/plain"}, {"content_id": "a"}]
)
def test_another_attachment_is_another_request_and_other_content(other: dict[str, Any]) -> None:  # N4.2
    mine, same, theirs = (read_request(body(file)) for file in (a_file(), a_file(), a_file(**other)))
    assert fingerprint(mine) == fingerprint(same) != fingerprint(theirs)
    assert content_hash(mine) == content_hash(same) != content_hash(theirs)


def test_a_request_without_attachments_is_known_again_by_the_next_version() -> None:
    """Keys live for a day, and what was sent is not to be sent again: the values are those of before there were any."""
    request = read_request(b'{"user_ids":["hanako"],"template_id":"welcome","data":{"a":1}}')
    assert fingerprint(request).hex() == "e0903187da288c54fb463962f6b8d195"
    assert content_hash(request) == 6_370_396_242_648_037_716


async def test_the_api_answers_with_the_place_and_what_to_do() -> None:
    desk = StubDesk()
    reply = await Client(build_app(desk)).call("POST", SEND, body(a_file(), a_file(content="?")))
    assert (reply.status, reply.json["field"]) == (422, "attachments[1].content")
    assert reply.json["todo"]


async def test_a_file_that_was_caught_is_downloaded_and_never_shown() -> None:
    client = Client(build_app(StubDesk()))
    reply = await client.call("GET", "/api/v1/caught/1/attachments/0")
    assert (reply.status, reply.body) == (200, b"%PDF-")
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"] == "attachment"
    assert reply.headers["x-content-type-options"] == "nosniff"
    for path in ("1/attachments/1", "1/attachments/-1", "2/attachments/0"):
        assert (await client.call("GET", f"/api/v1/caught/{path}")).status == 404
