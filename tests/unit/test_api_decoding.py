"""What the API refuses, and how it names it: bad bodies, bad queries, bad paths (N4.4, "Bad input")."""

import msgspec
import pytest
from tests.unit.api_stub import KEYS, Client, Reply, StubDesk

from noroshi.domain.bodies import DEEPEST
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app

SEND = "/api/v1/notifications"
FINE = {"user_ids": ["hanako"], "template_id": "welcome"}


async def refused(body: object, target: str = SEND, method: str = "POST") -> Reply:
    desk = StubDesk()
    reply = await Client(build_app(desk)).call(method, target, body)
    assert 400 <= reply.status < 500
    assert reply.headers["content-type"] == "application/problem+json"
    assert desk.accepted == []
    return reply


@pytest.mark.parametrize(
    "body", [b"", b"{", b"nul", b"[1,", b"\xff", b'{"user_ids": "\\ud800"}', b'{"a": "\x01"}', b"{}x"]
)
async def test_what_is_not_json_is_400(body: bytes) -> None:
    reply = await refused(body)
    assert (reply.status, reply.json["code"]) == (400, "bad_json")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"user_ids": []}, "user_ids"),
        ({"user_ids": ["u"] * 10_001}, "user_ids"),
        ({"user_ids": ["a", "b", "c", 4]}, "user_ids[3]"),
        ({"user_ids": [""]}, "user_ids[0]"),
        ({"user_ids": "hanako"}, "user_ids"),
        ({"template_id": None}, "template_id"),
        ({"template_id": "x" * 129}, "template_id"),
        ({"priority": "urgent"}, "priority"),
        ({"channels": None}, "channels"),
        ({"channels": []}, "channels"),
        ({"scheduled_at": "2026-01-01T09:00:00"}, "scheduled_at"),
        ({"scheduled_at": "tomorrow"}, "scheduled_at"),
        ({"expires_at": "2026-01-01T09:00:00"}, "expires_at"),
        ({"data": []}, "data"),
        ({"data": {"n": 2**70}}, "data.n"),
        ({"idempotency_key": ""}, "idempotency_key"),
    ],
)
async def test_a_wrong_field_is_422_and_named(change: dict[str, object], field: str) -> None:
    reply = await refused(FINE | change)
    assert (reply.status, reply.json["code"], reply.json["field"]) == (422, "bad_field", field)


async def test_a_missing_field_is_named() -> None:
    assert (await refused({"user_ids": ["a"]})).json["field"] == "template_id"


async def test_a_body_that_is_no_object_names_the_root() -> None:
    reply = await refused([1])
    assert (reply.status, reply.json["field"]) == (422, "$")


async def test_an_unknown_field_is_named() -> None:
    reply = await refused(FINE | {"to": "a"})
    assert (reply.status, reply.json["code"], reply.json["field"]) == (422, "unknown_field", "to")


async def test_an_unknown_field_inside_another_is_named_with_its_place() -> None:
    reply = await refused({"quiet_hours": {"begin": "1"}}, "/api/v1/users/hanako/notification-preferences", "PUT")
    assert (reply.json["code"], reply.json["field"]) == ("unknown_field", "quiet_hours.begin")


async def test_refusals_do_not_repeat_the_value() -> None:
    reply = await refused(FINE | {"priority": "secret-value"})
    assert b"secret-value" not in reply.body


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 50_000,
        b'{"user_ids":["a"],"template_id":"t","data":' + b'{"a":' * 50_000,
        b'{"user_ids":["a"],"template_id":"t","data":{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b'{"x":' * 50_000,
    ],
)
async def test_a_depth_bomb_is_refused(body: bytes) -> None:
    reply = await refused(body)
    assert (reply.status, reply.json["code"]) == (400, "bad_json")


@pytest.mark.parametrize(("levels", "status"), [(DEEPEST - 2, 202), (DEEPEST + 1, 422)])
async def test_nesting_is_bounded_well_before_a_stack_overflows(levels: int, status: int) -> None:
    body = b'{"user_ids":["a"],"template_id":"t","data":{"a":' + b"[" * levels + b"]" * levels + b"}}"
    assert (await Client(build_app(StubDesk())).call("POST", SEND, body)).status == status


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"user_ids": ["a", "b\0"]}, "user_ids[1]"),
        ({"user_ids": ["a\n"]}, "user_ids[0]"),
        ({"template_id": "a\x7fb"}, "template_id"),
        ({"template_id": "a\u0085b"}, "template_id"),
        ({"data": {"a": {"b": ["x", "\0"]}}}, "data.a.b[1]"),
        ({"data": {"a\n": 1}}, "data"),
        ({"data": {"a": "\x1b[0m"}}, "data.a"),
        ({"category": "\t"}, "category"),
    ],
)
async def test_control_characters_are_refused_and_their_field_named(change: dict[str, object], field: str) -> None:
    reply = await refused(FINE | change)
    assert (reply.status, reply.json["field"]) == (422, field)


async def test_data_may_hold_line_breaks_and_any_printable_text() -> None:
    desk = StubDesk()
    data = {"address": "1-2-3\n千代田区\tTokyo\r\n", "quote": '"\\"', "price": "100 \u00a5", "big": 2**63}
    reply = await Client(build_app(desk)).call("POST", SEND, FINE | {"data": data})
    assert reply.status == 202
    assert desk.accepted[0][1].data == data


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("limit=0", "bad_field", "limit"),
        ("limit=101", "bad_field", "limit"),
        ("limit=ten", "bad_field", "limit"),
        ("limit=1&limit=2", "bad_field", "limit"),
        ("cursor=!!", "bad_field", "cursor"),
        ("cursor=", "bad_field", "cursor"),
        ("page=2", "unknown_field", "page"),
        ("user_id=a%00", "bad_field", "user_id"),
        ("user_id=%ff", "bad_field", "query"),
        ("&".join(f"a{n}=1" for n in range(60)), "bad_field", "query"),
    ],
)
async def test_a_wrong_query_parameter_is_422_and_named(query: str, code: str, field: str) -> None:
    reply = await refused(None, f"/api/v1/caught?{query}", "GET")
    assert (reply.status, reply.json["code"], reply.json["field"]) == (422, code, field)


@pytest.mark.parametrize("user_id", ["a%00", "a%0A", "%ff", "x" * 129])
async def test_a_user_id_in_the_path_is_checked(user_id: str) -> None:
    reply = await refused({}, f"/api/v1/users/{user_id}", "PUT")
    assert (reply.status, reply.json["field"]) == (422, "user_id")


async def test_a_user_id_may_hold_a_slash_and_any_language() -> None:
    desk = StubDesk()
    reply = await Client(build_app(desk)).call("PUT", "/api/v1/users/a%2Fb%20%E8%8A%B1", {"name": "Hanako"})
    assert reply.status == 200
    assert "a/b 花" in desk.people.users


@pytest.mark.parametrize("path", ["/api/v1/notifications/nope", "/api/v1/dead-letters/0x1", "/api/v1/pauses/9", ""])
async def test_an_id_that_cannot_exist_is_404(path: str) -> None:
    method = "DELETE" if "pauses" in path else "GET"
    assert (await refused(None, path, method)).json["code"] == "not_found"


async def test_a_number_beyond_the_stores_range_is_404() -> None:
    assert (await refused(None, f"/api/v1/dead-letters/{2**63}", "GET")).status == 404


@pytest.mark.parametrize(("path", "limit"), [(SEND, 12_000_000), ("/api/v1/templates/welcome", 5_000_000)])
async def test_a_body_over_the_limit_is_refused_unread_to_who_asks_before_sending(path: str, limit: int) -> None:
    client = Client(build_app(StubDesk()))
    reply = await client.call("POST", path, b"{}", Content_Length=str(limit + 1), Expect="100-continue")
    assert (reply.status, reply.json["code"]) == (413, "too_large")
    assert reply.headers["connection"] == "close"
    assert client.pieces_read == 0


@pytest.mark.parametrize(("headers", "read"), [({}, 33), ({"Content_Length": "100000000"}, 20)])
async def test_of_a_body_over_the_limit_the_rest_is_read_for_a_while_so_that_the_answer_is_heard(
    headers: dict[str, str], read: int
) -> None:
    client = Client(build_app(StubDesk()))
    reply = await client.call("POST", SEND, parts=[b" " * 1_000_000] * 100, **headers)
    assert reply.status == 413
    assert client.pieces_read == read


async def test_a_field_that_stands_there_twice_is_refused() -> None:
    reply = await refused(b'{"user_ids": ["hanako"], "template_id": "welcome", "user_ids": ["taro"]}')
    assert (reply.json["code"], reply.json["field"]) == ("bad_field", "user_ids")


async def test_the_name_of_a_field_may_stand_in_the_data() -> None:
    body = FINE | {"data": {"template_id": "welcome", "inner": {"user_ids": []}}}
    assert (await Client(build_app(StubDesk())).call("POST", SEND, body)).status == 202


async def test_a_body_of_exactly_the_limit_in_pieces_is_read() -> None:
    body = msgspec.json.encode(FINE).ljust(12_000_000)
    pieces = [body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000)]
    assert (await Client(build_app(StubDesk())).call("POST", SEND, parts=pieces)).status == 202


@pytest.mark.parametrize("key", ["", "a" * 256, "schl\u00fcssel", "a\tb"])
async def test_a_bad_idempotency_header_is_named(key: str) -> None:
    desk = StubDesk()
    reply = await Client(build_app(desk)).call("POST", SEND, FINE, Idempotency_Key=key)
    assert (reply.status, reply.json["field"]) == (422, "Idempotency-Key")


async def test_the_desks_own_refusal_reaches_the_caller_whole() -> None:  # N4.2
    desk = StubDesk()
    first = {"batch_id": "b", "status": "queued"}
    desk.raises = ProblemError("idempotency_replay", "Seen.", extra={"batch_id": "b", "first": first})
    reply = await Client(build_app(desk), KEYS[KeyScope.SEND]).call("POST", SEND, FINE)
    assert reply.status == 409
    assert (reply.json["code"], reply.json["batch_id"], reply.json["first"]) == ("idempotency_replay", "b", first)
