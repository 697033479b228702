"""Passes: a token opens one person's own routes, a ticket one stream once, and nothing passes for either (N17.1)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.api_stub import KEYS, NOON, PEPPER, Client, StubDesk

from noroshi.domain import api_keys
from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.instants import plus
from noroshi.domain.passes import Pass, PassKind, passes_secret, read_pass, sign, token_in
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.api.calls import Row
from noroshi.entrypoints.api.routes import ROUTES
from noroshi.flow.accept.passes import PER_MINUTE

SECRET = passes_secret(PEPPER)
HOUR = timedelta(hours=1)
KEY_ID = api_keys.key_id(KEYS[KeyScope.SEND])
CALLER = Caller(DEFAULT_TENANT, KEY_ID, "shop", frozenset({KeyScope.SEND}))
SOMEONES = Pass(DEFAULT_TENANT, "hanako", KEY_ID, plus(NOON, HOUR), plus(NOON, HOUR))
OF_OTHERS = [row for row in ROUTES if row.scope is not None and not row.is_personal]
OF_PEOPLE = [row for row in ROUTES if row.is_personal]
PARTS: dict[str, str] = {"batch_id": "0", "request_id": "0", "template_id": "t"}
"""What stands in a path; a number where nothing else is said."""


def target(row: Row, user_id: str = "hanako") -> str:
    names = re.findall(r"\{(\w+)\}", row.path)
    return row.path.format(**{name: PARTS.get(name, 1) for name in names} | {"user_id": user_id})


async def refusal(work: Any) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        await work
    return caught.value


# what is signed


def test_a_pass_comes_back_as_it_was_signed() -> None:
    text = sign(SECRET, PassKind.TOKEN, SOMEONES)
    assert text.startswith("nru_")
    assert read_pass(SECRET, PassKind.TOKEN, text) == SOMEONES


def test_no_byte_of_a_pass_can_be_changed() -> None:
    text = sign(SECRET, PassKind.TOKEN, SOMEONES)
    for place in range(len(PassKind.TOKEN), len(text)):
        for letter in "A_7":
            if text[place] != letter:
                forged = text[:place] + letter + text[place + 1 :]
                assert read_pass(SECRET, PassKind.TOKEN, forged) in (None, SOMEONES)  # the last letter has spare bits


def test_a_ticket_is_no_token_and_a_token_no_ticket() -> None:
    token, ticket = (sign(SECRET, kind, SOMEONES) for kind in PassKind)
    assert read_pass(SECRET, PassKind.TICKET, token) is None
    assert read_pass(SECRET, PassKind.TICKET, ticket.replace("nru_", "nrt_")) is not None
    assert read_pass(SECRET, PassKind.TICKET, token.replace("nru_", "nrt_")) is None


@pytest.mark.parametrize("text", ["", "nru_", "nru_!!!!", "nru_AAAA", "nru_" + "A" * 5000, "nrs_" + "A" * 40, "nru_é"])
def test_what_was_never_signed_is_nobodys(text: str) -> None:
    assert read_pass(SECRET, PassKind.TOKEN, text) is None


def test_another_servers_passes_open_nothing() -> None:
    assert read_pass(passes_secret(b"other"), PassKind.TOKEN, sign(SECRET, PassKind.TOKEN, SOMEONES)) is None


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer nru_x", "nru_x"),
        ("bearer  nru_x ", "nru_x"),
        ("Bearer nrs_x", None),
        ("Basic nru_x", None),
        (None, None),
    ],
)
def test_a_token_is_told_from_a_key(header: str | None, token: str | None) -> None:
    assert token_in(header) == token


# who is let in


async def test_a_token_gives_the_person_it_was_made_for_and_no_scope() -> None:
    desk = StubDesk()
    token, expires_at = desk.passes.issue_token(CALLER, "hanako", timedelta(minutes=5))
    assert expires_at == plus(desk.clock.now(), timedelta(minutes=5))
    caller = await desk.passes.authenticate(token)
    assert (caller.tenant, caller.user_id, caller.scopes) == (DEFAULT_TENANT, "hanako", frozenset())
    assert caller.until == expires_at


async def test_no_token_lives_longer_than_an_hour() -> None:
    desk = StubDesk()
    _, expires_at = desk.passes.issue_token(CALLER, "hanako", timedelta(days=300))
    assert expires_at == plus(desk.clock.now(), HOUR)


async def test_an_expired_token_opens_nothing() -> None:
    desk = StubDesk()
    token, _ = desk.passes.issue_token(CALLER, "hanako", timedelta(minutes=5))
    desk.clock.elapsed += 301
    assert (await refusal(desk.passes.authenticate(token))).kind.status == 401


async def test_a_token_dies_with_the_key_that_asked_for_it() -> None:
    desk = StubDesk()
    token, _ = desk.passes.issue_token(CALLER, "hanako", HOUR)
    await desk.passes.authenticate(token)
    del desk.keys.rows[KEY_ID]
    desk.clock.elapsed += 6
    assert (await refusal(desk.passes.authenticate(token))).kind.status == 401


async def test_a_token_of_a_tenant_that_its_key_is_not_of_opens_nothing() -> None:
    desk = StubDesk()
    forged = sign(SECRET, PassKind.TOKEN, Pass(TenantId(2), "hanako", KEY_ID, plus(NOON, HOUR), plus(NOON, HOUR)))
    assert (await refusal(desk.passes.authenticate(forged))).kind.status == 401


async def test_a_ticket_opens_once_and_for_a_minute_only() -> None:
    desk = StubDesk()
    ticket, _ = desk.passes.issue_ticket(CALLER, "hanako")
    late, _ = desk.passes.issue_ticket(CALLER, "hanako")
    assert (await desk.passes.admit(ticket)).user_id == "hanako"
    assert "used before" in (await refusal(desk.passes.admit(ticket))).detail
    desk.clock.elapsed += 61
    assert (await refusal(desk.passes.admit(late))).kind.status == 401


async def test_what_a_ticket_opens_ends_with_the_token_that_asked_for_it() -> None:
    desk = StubDesk()
    token, expires_at = desk.passes.issue_token(CALLER, "hanako", timedelta(minutes=5))
    ticket, _ = desk.passes.issue_ticket(await desk.passes.authenticate(token), "hanako")
    assert (await desk.passes.admit(ticket)).until == expires_at


async def test_one_person_cannot_call_as_fast_as_they_like() -> None:
    desk = StubDesk()
    hanako, _ = desk.passes.issue_token(CALLER, "hanako", HOUR)
    taro, _ = desk.passes.issue_token(CALLER, "taro", HOUR)
    for _ in range(PER_MINUTE):
        await desk.passes.authenticate(hanako)
    refused = await refusal(desk.passes.authenticate(hanako))
    assert (refused.kind.status, refused.retry_after is not None) == (429, True)
    await desk.passes.authenticate(taro)


# at the doors of the API


def token_of(desk: StubDesk, user_id: str) -> str:
    return desk.passes.issue_token(CALLER, user_id, HOUR)[0]


@pytest.mark.parametrize("row", OF_OTHERS, ids=lambda row: row.name)
async def test_a_token_opens_no_route_that_is_not_a_persons(row: Row) -> None:  # N17.1
    desk = StubDesk()
    reply = await Client(build_app(desk), token_of(desk, "hanako")).call(row.method, target(row), b"{}")
    assert (reply.status, reply.json["code"]) == (403, "forbidden")


@pytest.mark.parametrize("row", OF_PEOPLE, ids=lambda row: row.name)
async def test_another_persons_token_finds_nobody(row: Row) -> None:  # N17.1
    desk = StubDesk()
    reply = await Client(build_app(desk), token_of(desk, "taro")).call(row.method, target(row), b"{}")
    assert (reply.status, reply.json["code"]) == (404, "not_found")


@pytest.mark.parametrize("row", OF_PEOPLE, ids=lambda row: row.name)
async def test_ones_own_token_opens_ones_own_routes(row: Row) -> None:  # N17.1
    desk = StubDesk()
    reply = await Client(build_app(desk), token_of(desk, "hanako")).call(row.method, target(row), b"{}")
    assert reply.status in (200, 201, 426)


@pytest.mark.parametrize("row", [row for row in OF_PEOPLE if row.name in ("open_stream", "open_socket")])
async def test_a_ticket_opens_a_stream_of_its_person_only(row: Row) -> None:
    desk = StubDesk()
    ticket, _ = desk.passes.issue_ticket(CALLER, "taro")
    reply = await Client(build_app(desk), None).call("GET", f"{target(row)}?ticket={ticket}")
    assert reply.status == 404
    ticket, _ = desk.passes.issue_ticket(CALLER, "hanako")
    assert (await Client(build_app(desk), None).call("GET", f"{target(row)}?ticket={ticket}")).status in (200, 426)
    assert (await Client(build_app(desk), None).call("GET", f"{target(row)}?ticket={ticket}")).status == 401


async def test_a_token_cannot_be_made_for_nobody() -> None:
    reply = await Client(build_app(StubDesk())).call("POST", "/api/v1/users/nobody/tokens", {})
    assert reply.status == 404


@pytest.mark.parametrize("seconds", [0, -1, 3601, "1", 1.5])
async def test_a_lifetime_that_cannot_be_is_named(seconds: object) -> None:
    reply = await Client(build_app(StubDesk())).call("POST", "/api/v1/users/hanako/tokens", {"expires_in": seconds})
    assert (reply.status, reply.json["field"]) == (422, "expires_in")


# pages of other sites


@pytest.mark.parametrize(
    ("origin", "is_allowed"), [("https://shop.example", True), ("https://evil.example", False), ("null", False)]
)
async def test_only_pages_of_an_allowed_site_may_read_the_answer(origin: str, is_allowed: bool) -> None:
    desk = StubDesk()
    client = Client(build_app(desk), token_of(desk, "hanako"))
    reply = await client.call("GET", "/api/v1/users/hanako/inbox", Origin=origin)
    assert reply.status == 200
    assert reply.headers.get("access-control-allow-origin") == (origin if is_allowed else None)
    asked = await client.call(
        "OPTIONS", "/api/v1/users/hanako/inbox", Origin=origin, Access_Control_Request_Method="GET"
    )
    assert asked.status == (204 if is_allowed else 405)


async def test_no_page_of_another_site_may_read_what_is_not_a_persons() -> None:
    reply = await Client(build_app(StubDesk())).call("GET", "/api/v1/users/hanako", Origin="https://shop.example")
    assert "access-control-allow-origin" not in reply.headers
    asked = await Client(build_app(StubDesk())).call(
        "OPTIONS", "/api/v1/users/hanako", Origin="https://shop.example", Access_Control_Request_Method="GET"
    )
    assert asked.status == 405
