"""The console's doors: who gets in, for how long, and whose forms count."""

from datetime import timedelta

import pytest

from noroshi.domain import api_keys
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.records import KeyScope
from tests.stories.client import Client
from tests.stories.visitor import FORM, ORIGIN, Visitor
from tests.stories.world import World

UNTIL_REVOKED = timedelta(seconds=6)
"""Longer than a key is believed without asking the store."""


@pytest.fixture
def visitor(world: World) -> Visitor:
    return Visitor(world)


def inside(world: World) -> Visitor:
    visitor = Visitor(world)
    visitor.enter_by_key(world.mint())
    return visitor


def is_sent_away(visitor: Visitor) -> bool:
    answer = visitor.get("/console")
    return answer.status == 303 and answer.headers["location"].startswith("/console/login")


def test_without_a_visit_every_page_leads_to_the_door_and_back(
    world: World, visitor: Visitor
) -> None:  # RELIABILITY 5.6
    asked = visitor.get("/console/people?prefix=ha&cursor=x")
    assert (asked.status, asked.headers["location"]) == (
        303,
        "/console/login?next=%2Fconsole%2Fpeople%3Fprefix%3Dha%26cursor%3Dx",
    )
    entered = visitor.enter_by_key(world.mint(), next="/console/people?prefix=ha&cursor=x")
    assert entered.headers["location"] == "/console/people?prefix=ha&cursor=x"


def test_a_program_without_a_visit_is_told_401(visitor: Visitor) -> None:
    assert visitor.get("/console/live", accept="text/event-stream").status == 401


def test_the_cookie_is_closed_and_for_the_console_alone(world: World) -> None:  # N17.1
    key = world.mint()
    plain, secure = Visitor(world), Visitor(world, "https://example.com")
    given = plain.enter_by_key(key).headers["set-cookie"]
    assert given.endswith("; Path=/console; HttpOnly; SameSite=Lax")
    assert key[4:] not in given
    assert secure.enter_by_key(key).headers["set-cookie"].endswith("; HttpOnly; SameSite=Lax; Secure")
    assert plain.cookie != secure.cookie  # each visit has its own, so none can be planted beforehand


def test_a_changed_cookie_opens_nothing(world: World) -> None:
    visitor = inside(world)
    assert not is_sent_away(visitor)
    assert visitor.cookie is not None
    middle = len(visitor.cookie) // 2
    other = "A" if visitor.cookie[middle] != "A" else "B"
    for changed in (visitor.cookie[:middle] + other + visitor.cookie[middle + 1 :], visitor.cookie[:-4], "x", "%"):
        visitor.cookie = changed
        assert is_sent_away(visitor), changed


def test_a_visit_ends_with_its_key(world: World, visitor: Visitor) -> None:  # RELIABILITY 5.1
    key = world.mint()
    visitor.enter_by_key(key)
    stream = visitor.listen("/console/live")
    world.advance_seconds(1)
    assert not stream.is_over
    world.run(world.store.keys.revoke(DEFAULT_TENANT, api_keys.key_id(key)))
    world.advance(UNTIL_REVOKED)
    assert is_sent_away(visitor)
    assert stream.is_over
    assert stream.names()[-1] == "ended"


def test_a_visit_ends_after_half_a_day(world: World) -> None:
    visitor = inside(world)
    world.advance(timedelta(hours=11, minutes=59))
    assert not is_sent_away(visitor)
    world.advance(timedelta(minutes=2))
    assert is_sent_away(visitor)


def test_what_is_no_key_is_said_to_be_none(visitor: Visitor) -> None:
    for key in ("", "nrs_" + 36 * "0", "hello", "nrs_ü"):
        refused = visitor.enter_by_key(key)
        assert refused.headers["location"] == "/console/login?said=wrong"
        assert visitor.cookie is None
    assert "not a live key" in visitor.page("/console/login?said=wrong")


def test_a_key_that_may_not_read_does_not_get_in(world: World, visitor: Visitor) -> None:  # N17.1
    assert visitor.enter_by_key(world.mint(KeyScope.SEND)).headers["location"] == "/console/login?said=blind"
    assert visitor.cookie is None


ELSEWHERE = (
    "https://evil.example",
    "//evil.example",
    "/api/v1/users",
    "/console.evil",
    "/console\\@evil",
    "/console/login",
)


def test_signing_in_leads_nowhere_else(world: World, visitor: Visitor) -> None:
    key = world.mint()
    for wanted in (*ELSEWHERE, ""):
        assert visitor.enter_by_key(key, next=wanted).headers["location"] == "/console", wanted


def test_a_ticket_opens_the_console_once(world: World, visitor: Visitor) -> None:  # DESIGN 8
    ticket = world.run(world.noroshi.write_ticket())
    assert visitor.enter_by_ticket(ticket).headers["location"] == "/console"
    assert not is_sent_away(visitor)
    assert visitor.enter_by_ticket(ticket).headers["location"] == "/console"  # who is inside stays inside
    stranger = Visitor(world)
    assert stranger.enter_by_ticket(ticket).headers["location"] == "/console/login?said=spent"
    assert stranger.cookie is None


def test_of_all_who_use_a_ticket_at_once_one_gets_in(world: World, visitor: Visitor) -> None:
    ticket = world.run(world.noroshi.write_ticket())
    answers = world.together([("GET", f"/console/enter?ticket={ticket}", None)] * 8, Client(visitor.app, None))
    assert sorted(answer.headers["location"] for answer in answers) == ["/console", *["/console/login?said=spent"] * 7]


def test_a_ticket_opens_nothing_but_the_console_and_not_for_long(world: World, visitor: Visitor) -> None:
    ticket, late = world.run(world.noroshi.write_ticket()), world.run(world.noroshi.write_ticket())
    assert world.call("GET", "/api/v1/caught", client=Client(world.app, ticket)).status == 403
    assert visitor.enter_by_key(ticket).headers["location"] == "/console/login?said=blind"
    assert visitor.enter_by_ticket(world.mint()).headers["location"] == "/console/login?said=spent"
    world.advance(timedelta(minutes=16))
    assert visitor.enter_by_ticket(late).headers["location"] == "/console/login?said=spent"


def test_looking_ahead_does_not_use_up_a_ticket(world: World, visitor: Visitor) -> None:
    ticket = world.run(world.noroshi.write_ticket())
    assert visitor.get(f"/console/enter?ticket={ticket}", **{"sec-purpose": "prefetch"}).status == 425
    assert visitor.enter_by_ticket(ticket).headers["location"] == "/console"


def test_signing_out_ends_a_key_that_was_made_for_the_visit_and_no_other(world: World, visitor: Visitor) -> None:
    visitor.enter_by_ticket(world.run(world.noroshi.write_ticket()))
    kept = visitor.cookie
    assert visitor.post("/console/leave").headers["location"] == "/console/login?said=left"
    assert is_sent_away(visitor)
    visitor.cookie = kept
    world.advance(UNTIL_REVOKED)
    assert is_sent_away(visitor)
    key = world.mint()
    visitor.enter_by_key(key)
    visitor.post("/console/leave")
    world.advance(UNTIL_REVOKED)
    assert world.call("GET", "/api/v1/caught", client=Client(world.app, key)).status == 200


FOREIGN = {
    "another site": {"origin": "https://evil.example"},
    "another port": {"origin": "http://test:81"},
    "nobody": {"origin": "null"},
    "a site that the browser calls another": {"sec-fetch-site": "cross-site"},
    "a site beside ours": {"sec-fetch-site": "same-site"},
}


def test_a_form_from_elsewhere_changes_nothing(world: World) -> None:  # RELIABILITY 5.6
    visitor = inside(world)
    for who, headers in FOREIGN.items():
        assert visitor.post("/console/pauses", {"what": "everything"}, **headers).status == 403, who
    assert world.get("/api/v1/pauses")["items"] == []
    assert visitor.post("/console/pauses", {"what": "everything"}).status == 303
    assert len(world.get("/api/v1/pauses")["items"]) == 1


def test_a_form_without_the_pages_token_changes_nothing(world: World) -> None:
    visitor = inside(world)
    for token in ("", "0" * 32, "ü"):
        assert visitor.post("/console/pauses", {"what": "everything", "token": token}).status == 403
    assert world.get("/api/v1/pauses")["items"] == []


def test_the_token_of_another_visit_counts_for_nothing(world: World) -> None:
    mine, other = inside(world), inside(world)
    assert mine.post("/console/pauses", {"what": "everything", "token": other.token()}).status == 403


def test_nobody_is_signed_in_or_out_from_elsewhere(world: World) -> None:
    visitor = Visitor(world)
    assert visitor.post("/console/login", {"key": world.mint()}, origin="https://evil.example").status == 403
    visitor = inside(world)
    assert visitor.post("/console/leave", origin="https://evil.example").status == 403
    assert not is_sent_away(visitor)


def test_behind_a_proxy_the_public_address_counts_as_ours(world: World) -> None:
    visitor = Visitor(world, "https://noroshi.example")
    visitor.enter_by_key(world.mint())
    assert visitor.post("/console/pauses", {"what": "everything"}, origin="https://noroshi.example").status == 303
    assert visitor.post("/console/pauses", {"what": "everything"}, origin="https://noroshi.example.evil").status == 403


UNREADABLE = (
    (b"a=" + 600_000 * b"x", FORM, 413),
    (b"&".join(b"a%d=1" % n for n in range(100)), FORM, 400),
    (b"--x\r\n", "multipart/form-data; boundary=x", 400),
    (b"{}", "application/json", 400),
    (b"\xff\xfe%%%00=%zz", FORM, 403),
)


def test_a_form_that_no_browser_sends_is_refused_with_a_page(world: World) -> None:  # RELIABILITY 5.6
    visitor = inside(world)
    for body, kind, status in UNREADABLE:
        headers = {"content-type": kind, "origin": ORIGIN, "cookie": f"noroshi_console={visitor.cookie}"}
        answer = world.call("POST", "/console/pauses", body, headers, Client(visitor.app, None))
        assert answer.status == status
        assert b"<h1>" in answer.text
    assert world.get("/api/v1/pauses")["items"] == []
