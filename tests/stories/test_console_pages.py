"""The console's pages: what an operator finds on them, and what their buttons do."""

from datetime import timedelta
from typing import Any

import pytest

from noroshi.domain.channels import CHANNELS
from noroshi.domain.ids import TenantId
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.console.routes import ROWS
from tests.cast import HANAKO, JIRO, Person
from tests.stories.visitor import Visitor
from tests.stories.world import World

CANARY = Person(
    "canary/1 ?&",
    "Canary",
    email="kanaria-7f3a91@example.com",
    phone="+819055512347",
    devices=("device-kanaria-5b1d77",),
)
INVOICE = {"filename": "請求書.html", "content": "PHNjcmlwdD4=", "content_type": "text/html"}
LOGO = {"filename": "logo.png", "content": "iVBORw0KGgo=", "content_id": "logo"}
STRANGER = "01a1e328-3616-7af9-9b01-8fe41c000000"


@pytest.fixture
def visitor(world: World) -> Visitor:
    visitor = Visitor(world)
    visitor.enter_by_key(world.mint())
    return visitor


def letter_of(world: World) -> int:
    number: int = world.letters()[0]["dead_letter_id"]
    return number


def bury(world: World, person: Person = JIRO) -> None:
    """One of a person's messages dies."""
    world.meet(person)
    world.write("welcome", "push")
    world.misbehave("gone", channel="push")
    world.tell(person, channels=["push"])
    world.behave()


def every_page(world: World) -> list[str]:
    """An address for every row that a browser can open."""
    batch_id = world.tell(HANAKO, channels=["email"], attachments=[INVOICE])
    one = world.notification(batch_id)
    known = {
        "batch_id": batch_id,
        "notification_id": one["notification_id"],
        "user_id": HANAKO.user_id,
        "template_id": "welcome",
        "dead_letter_id": str(letter_of(world)),
        "caught_id": str(world.caught(HANAKO)[-1]["caught_id"]),
        "position": "0",
    }
    live = {"/console/live", "/console/catcher/live", "/console/find"}
    return [row.path.format(**known) for row in ROWS if row.method == "GET" and row.path not in live]


PAGE_POLICY = {
    "default-src": {"'none'"},
    "script-src": {"'self'"},
    "style-src": {"'self'"},
    "img-src": {"'self'", "data:"},
    "connect-src": {"'self'"},
    "frame-src": {"'self'"},
    "form-action": {"'self'"},
    "base-uri": {"'none'"},
    "frame-ancestors": {"'none'"},
}
LETTER_POLICY = {
    "sandbox": {"allow-popups", "allow-popups-to-escape-sandbox"},
    "default-src": {"'none'"},  # scripts have no line of their own, so this one holds for them
    "style-src": {"'unsafe-inline'"},
    "img-src": {"data:"},
    "form-action": {"'none'"},
    "base-uri": {"'none'"},
    "frame-ancestors": {"'self'"},
}


def policy_of(header: str) -> dict[str, set[str]]:
    """What each directive allows; a browser takes the first of two that have one name, so there may be only one."""
    directives = [part.split() for part in header.split(";") if part.strip()]
    policy = {name.lower(): set(sources) for name, *sources in directives}
    assert len(policy) == len(directives), header
    return policy


def test_every_page_answers_and_guards_itself(world: World, visitor: Visitor) -> None:  # N16.3, RELIABILITY 5.6
    world.meet(HANAKO)
    bury(world)
    world.write("welcome", "email", metadata={"html_body": "<p>Hello</p>"})
    for path in every_page(world):
        answer = visitor.get(path)
        assert answer.status == 200, path
        is_letter = path.endswith("/letter")
        policy = policy_of(answer.headers["content-security-policy"])
        assert policy == (LETTER_POLICY if is_letter else PAGE_POLICY), path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == ("no-referrer" if is_letter else "same-origin")
        is_file = "/attachments/" in path
        assert is_letter or is_file or b"<script>" not in answer.text
        assert is_letter or b" style=" not in answer.text  # the policy would forbid it


def test_an_attachment_is_told_and_downloaded_and_never_shown(world: World, visitor: Visitor) -> None:  # N1.4
    world.meet(HANAKO)
    world.write("welcome", "email", metadata={"html_body": '<p>Hello <img src="cid:logo"></p>'})
    batch_id = world.tell(HANAKO, channels=["email"], attachments=[INVOICE, LOGO])
    caught = f"/console/catcher/{world.caught(HANAKO)[-1]['caught_id']}"
    assert "請求書.html text/html, 8 bytes" in visitor.page(caught)
    assert "請求書.html" in visitor.page(f"/console/batches/{batch_id}")
    answer = visitor.get(f"{caught}/attachments/0")
    assert (answer.status, answer.text) == (200, b"<script>")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == ("attachment; filename*=UTF-8''%E8%AB%8B%E6%B1%82%E6%9B%B8.html")
    assert b'src="data:image/png;base64,iVBORw0KGgo="' in visitor.get(f"{caught}/letter").text
    assert visitor.get(f"{caught}/attachments/2").status == 404
    assert visitor.get(f"{caught}/attachments/x").status == 404
    assert Visitor(world).get(f"{caught}/attachments/0").status == 303
    stranger = Visitor(world)
    stranger.enter_by_key(world.mint(tenant=TenantId(2)))
    assert stranger.get(f"{caught}/attachments/0").status == 404


def test_every_page_answers_where_there_is_nothing_yet(visitor: Visitor) -> None:
    for name in ("", "/catcher", "/people", "/templates", "/dead-letters", "/health"):
        assert len(visitor.page(f"/console{name}")) > 200


NOWHERE = (
    "/console/nothing",
    f"/console/batches/{STRANGER}",
    f"/console/batches/{STRANGER}/{STRANGER}",
    "/console/batches/x",
    "/console/people/nobody",
    "/console/people/%ff",
    "/console/templates/none",
    "/console/catcher/7",
    "/console/catcher/99999999999999999999",
    "/console/catcher/x/letter",
    "/console/dead-letters/7",
    "/console/dead-letters/-1",
    "/console/assets/0/console.css",
    "/console/assets/../app.py",
)


def test_what_is_not_there_is_a_page_that_says_so(visitor: Visitor) -> None:  # N16.3
    for path in NOWHERE:
        assert visitor.get(path).status in {404, 422}, path


def test_a_query_that_nobody_could_have_clicked_is_refused_or_passed_over(visitor: Visitor) -> None:  # N16.3
    for page in ("", "/catcher", "/people", "/templates", "/dead-letters"):
        for query in (
            "cursor=x",
            "cursor=%00",
            "channel=%00",
            "limit=9",
            "cursor=" + 300 * "A",
            "&".join(60 * ["a=1"]),
        ):
            assert visitor.get(f"/console{page}?{query}").status in {200, 400, 422}, (page, query)


def test_another_tenants_things_are_not_there(world: World, visitor: Visitor) -> None:  # RELIABILITY 5.5
    bury(world)
    world.write("welcome", "in_app")
    batch_id = world.tell(JIRO, channels=["in_app"])
    stranger = Visitor(world)
    stranger.enter_by_key(world.mint(tenant=TenantId(2)))
    for path in (
        f"/console/batches/{batch_id}",
        f"/console/people/{JIRO.user_id}",
        "/console/templates/welcome",
        f"/console/dead-letters/{letter_of(world)}",
        f"/console/catcher/{world.caught(JIRO)[0]['caught_id']}",
    ):
        assert visitor.get(path).status == 200, path
        assert stranger.get(path).status == 404, path
    assert "welcome" not in stranger.page("/console")


def test_no_page_shows_an_address_or_a_token(world: World, visitor: Visitor) -> None:  # N17.2
    quoted = "canary%2F1%20%3F%26"
    world.put(f"/api/v1/users/{quoted}", CANARY.body)
    world.post(f"/api/v1/users/{quoted}/devices", {"platform": "ios", "device_token": CANARY.devices[0]})
    world.write("welcome", "email", "sms", "push")
    world.misbehave("gone", channel="sms", count=1)
    batch_id = world.tell(CANARY)
    paths = ["/catcher", "/people", f"/people/{quoted}", f"/batches/{batch_id}", "/dead-letters"]
    paths += [f"/batches/{batch_id}/{one['notification_id']}" for one in world.notifications(batch_id)]
    paths += [f"/catcher/{one['caught_id']}" for one in world.caught()]
    paths += [f"/dead-letters/{letter_of(world)}"]
    for path in paths:
        text = visitor.get(f"/console{path}").text
        assert b"canary" in text, path
        for secret in (b"kanaria-7f3a91", b"9055512347", b"kanaria-5b1d77"):
            assert secret not in text, path


def test_activity_shows_each_batch_with_its_fate(world: World, visitor: Visitor) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    world.tell(HANAKO)
    world.tell(HANAKO, category="marketing", data={"n": 1})
    world.tell(HANAKO, data={"n": 2}, scheduled_at=world.after(timedelta(hours=1)))
    shown = visitor.page("/console")
    assert "1 delivered" in shown
    assert "1 suppressed" in shown
    assert "1 scheduled" in shown
    assert "nobody gets these messages" in shown


def test_activity_says_what_stands_still_and_lets_it_go_on(world: World, visitor: Visitor) -> None:  # N4.7
    world.meet(HANAKO)
    world.write("welcome", "email")
    visitor.post("/console/pauses", {"what": "channel:email"})
    world.tell(HANAKO)
    world.advance(timedelta(minutes=3))
    shown = visitor.page("/console")
    assert "Channel email is paused" in shown
    assert "Unfinished 1 deliveries Oldest that is due 3 min ago" in shown
    (pause,) = world.get("/api/v1/pauses")["items"]
    answer = visitor.post(f"/console/pauses/{pause['pause_id']}/resume", {"from": "activity"})
    assert answer.headers["location"] == "/console?said=resumed"
    world.until_idle()
    assert len(world.caught(HANAKO)) == 1
    assert "Sending goes on." in visitor.page("/console?said=resumed")


def test_an_open_breaker_is_noticed(world: World, visitor: Visitor) -> None:  # N6.4
    world.meet(HANAKO)
    world.write("welcome", "in_app")
    world.misbehave("error", channel="in_app")
    for number in range(5):
        world.tell(HANAKO, channels=["in_app"], data={"n": number})
    assert "catcher-in-app failed too often in a row" in visitor.page("/console")


def test_a_trail_is_told_in_sentences(world: World, visitor: Visitor) -> None:  # DESIGN 7.4
    world.meet(HANAKO)
    world.write("welcome", "in_app")
    world.misbehave("error", channel="in_app", count=1)
    batch_id = world.tell(HANAKO, channels=["in_app"])
    world.advance(timedelta(minutes=2))
    one = world.notification(batch_id)
    shown = visitor.page(f"/console/batches/{batch_id}/{one['notification_id']}")
    first, second, third = (
        shown.index(words)
        for words in ("It was put into its lane", "The attempt failed; it is tried again.", "The provider took it.")
    )
    assert first < second < third
    assert "Asia/Tokyo" in shown


def test_whatever_is_pasted_into_the_search_box_is_found(world: World, visitor: Visitor) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    batch_id = world.tell(HANAKO)
    one = world.notification(batch_id)["notification_id"]
    ways = {batch_id: f"/console/batches/{batch_id}", one: f"/console/batches/{batch_id}/{one}"}
    ways |= {" ha&na ": "/console/people?prefix=ha%26na", "": "/console/people?prefix="}
    for wanted, place in ways.items():
        asked = "+".join(wanted.replace("&", "%26").split(" "))
        assert visitor.get(f"/console/find?q={asked}").headers["location"] == place


def test_dead_letters_are_discarded_one_by_one_and_by_filter(world: World, visitor: Visitor) -> None:  # N6.3
    bury(world)
    assert "UNREGISTERED" in visitor.page("/console/dead-letters?channel=push")
    assert "UNREGISTERED" not in visitor.page("/console/dead-letters?channel=email")
    number = letter_of(world)
    sure = len(world.letters())
    visitor.post(f"/console/dead-letters/{number}/discard")
    assert len(world.letters()) == sure - 1
    assert visitor.post("/console/dead-letters/discard", {"channel": "email"}).headers["location"] == (
        "/console/dead-letters?channel=email&said=discarded&n=0"
    )
    answer = visitor.post("/console/dead-letters/discard", {"channel": "push", "code": ""})
    assert answer.headers["location"].endswith(f"said=discarded&n={sure - 1}")
    assert world.letters() == []


def test_dead_letters_are_queued_again_by_filter_and_one_by_one(world: World, visitor: Visitor) -> None:  # N6.3
    world.meet(HANAKO)
    world.write("welcome", "email", "in_app")
    for channel in ("email", "in_app"):
        world.misbehave("error", channel=channel)
        world.tell(HANAKO, channels=[channel], category="marketing_free", data={"n": channel})
    world.advance(timedelta(hours=2))
    world.behave()
    before = len(world.letters("channel=email"))
    assert before == 1
    visitor.post("/console/dead-letters/replay", {"channel": "email"})
    world.advance(timedelta(minutes=5))
    assert world.letters("channel=email") == []
    assert len(world.caught(HANAKO, "email")) == 1
    (letter,) = world.letters("channel=in_app")
    replayed = visitor.post(f"/console/dead-letters/{letter['dead_letter_id']}/replay")
    assert replayed.headers["location"] == "/console/dead-letters?said=replayed&n=1"
    world.advance(timedelta(minutes=5))
    assert world.letters() == []
    assert len(world.caught(HANAKO, "in_app")) == 1


def test_what_waits_can_be_withdrawn(world: World, visitor: Visitor) -> None:
    world.meet(HANAKO)
    world.write("welcome", "email")
    batch_id = world.tell(HANAKO, scheduled_at=world.after(timedelta(hours=1)))
    assert "Cancel the rest" in visitor.page(f"/console/batches/{batch_id}")
    visitor.post(f"/console/batches/{batch_id}/cancel")
    world.advance(timedelta(hours=2))
    assert world.caught(HANAKO) == []
    assert "Cancel the rest" not in visitor.page(f"/console/batches/{batch_id}")


def test_a_template_is_tried_saved_and_rolled_back(world: World, visitor: Visitor) -> None:  # N2
    world.meet(HANAKO)
    world.write("welcome", "email", subject="Hello", body="Dear {{ user.name }}, order {{ order }}")
    page = visitor.get("/console/templates/welcome").text.decode()
    assert "‹order›" in page
    draft: dict[str, Any] = {"channel": "email", "locale": "en", "subject": "New", "body": "<b>{{ order }}</b>"}
    trial = visitor.post("/console/templates/welcome/preview", {**draft, "data": '{"order": "A-1"}'})
    assert "&lt;b&gt;A-1&lt;" in trial.text.decode()
    assert "undefined value" in visitor.post("/console/templates/welcome/preview", draft).text.decode()
    assert (
        "not a JSON object" in visitor.post("/console/templates/welcome/preview", draft | {"data": "["}).text.decode()
    )
    saved = visitor.post("/console/templates/welcome", draft)
    assert saved.headers["location"].endswith("said=saved&n=2")
    sent = visitor.post(
        "/console/templates/welcome/send", {"channel": "email", "user_id": HANAKO.user_id, "data": '{"order": "A-2"}'}
    )
    assert sent.headers["location"].endswith("?said=sent&n=1")
    world.until_idle()
    assert [message["body"] for message in world.caught(HANAKO)] == ["<b>A-2</b>"]
    back = {"channel": "email", "locale": "en", "variant": "", "version": "1"}
    assert (
        visitor.post("/console/templates/welcome/rollback", back).headers["location"].endswith("said=rolled_back&n=1")
    )
    assert "Version 2" in visitor.page("/console/templates/welcome")
    assert visitor.post("/console/templates/welcome", draft | {"body": "{% for"}).status == 422


DRAWN_AS = {
    "email": 'class="letter"',
    "sms": "40 characters, 1 part",
    "push": 'class="toast"',
    "web_push": "through the browser",
    "voice": "data-speak",
    "in_app": 'class="inbox"',
    "line": 'class="phone chat"',
}


def test_each_channel_is_drawn_as_its_recipient_would_see_it(world: World, visitor: Visitor) -> None:  # DESIGN 7.9
    world.meet(HANAKO)
    world.write("welcome", "email")
    assert DRAWN_AS.keys() == CHANNELS.keys()
    for channel, mark in DRAWN_AS.items():
        form = {
            "channel": channel,
            "locale": "en",
            "user_id": HANAKO.user_id,
            "body": "Hello {{ user.name }}, this is what you will get.",
        }
        drawn = visitor.post("/console/templates/welcome/preview", form).text.decode()
        assert mark in drawn, channel
        assert "Hello Hanako, this is what you will get." in drawn
        assert channel in {"email", "push", "web_push", "in_app"} or "18:00" in drawn  # on her own clock


def test_a_key_that_only_reads_is_shown_no_buttons_and_can_do_nothing(world: World) -> None:  # N17.1
    bury(world)
    reader = Visitor(world)
    reader.enter_by_key(world.mint(KeyScope.READ))
    number = letter_of(world)
    for path in ("", "/dead-letters", f"/dead-letters/{number}", "/templates/welcome", "/health"):
        shown = reader.get(f"/console{path}").text.decode()
        for word in (">Discard<", ">Pause<", ">Resume<", ">Send<", "Save as"):
            assert word not in shown, (path, word)
    for path in ("/pauses", f"/dead-letters/{number}/discard", "/dead-letters/discard", "/templates/welcome"):
        refused = reader.post(f"/console{path}", {"what": "everything", "channel": "push", "locale": "en", "body": "x"})
        assert refused.status == 403, path
    assert len(world.letters()) > 0
    assert world.get("/api/v1/pauses")["items"] == []


def test_nobody_can_put_words_into_the_consoles_mouth(visitor: Visitor) -> None:
    assert "Your key" not in visitor.page("/console?said=Your+key+was+stolen")
    assert "evil" not in visitor.page("/console?said=replayed&n=evil")
    assert "Queued again: 3." in visitor.page("/console?said=replayed&n=3")
