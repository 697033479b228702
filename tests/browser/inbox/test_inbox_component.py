"""`<noroshi-inbox>` in Chromium: a bell, a count from the server, a list that is live, and nothing that can run."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.inbox.conftest import Shop, Visit

Open = Callable[..., Visit]

_people = count(1)


@pytest.fixture
def person(shop: Shop) -> str:
    """Everybody begins with an empty inbox."""
    return shop.newcomer(f"person-{next(_people)}")


def opened(shop: Shop, visit: Open, person: str, *titles: str, **more: Any) -> Visit:
    """Her page, with the panel open."""
    for title in titles:
        shop.tell(title, user_id=person)
    page = visit(shop.page(person), **more)
    page.bell.click()
    expect(page.page.locator("noroshi-inbox .panel")).to_be_visible()
    if titles:
        expect(page.page.locator("noroshi-inbox li")).to_have_count(len(titles))
    return page


def test_what_is_told_appears_within_a_second_without_a_reload(shop: Shop, visit: Open, person: str) -> None:  # N1.6
    page = visit(shop.page(person))
    expect(page.bell).to_have_accessible_name("Notifications")
    began = time.monotonic()
    shop.begin_to_tell("Your order is on its way", "It arrives tomorrow.", "/orders", person)
    expect(page.bell).to_have_accessible_name("Notifications, 1 unread", timeout=1_000)
    assert time.monotonic() - began < 1.5
    expect(page.page.locator("noroshi-inbox .badge")).to_have_text("1")
    expect(page.page.locator("noroshi-inbox .said[role=status]")).to_have_text("New: Your order is on its way")
    assert page.complaints == []


def test_the_newest_stands_first_and_says_what_it_is(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "first", "second", "third")
    assert page.titles == ["third", "second", "first"]
    assert "What it is about." in page.page.locator("noroshi-inbox li").first.inner_text()


def test_choosing_an_entry_reads_it_and_leads_where_it_points(shop: Shop, visit: Open, person: str) -> None:  # N5.4
    page = opened(shop, visit, person, "one", "two")
    page.page.get_by_role("link", name="Unread: one").click()
    page.page.wait_for_url("**/healthz")
    expect_unread(shop, person, 1)
    history = shop.call("GET", f"/api/v1/users/{person}/notifications")["items"]
    assert sorted(item["status"] for item in history) == ["DELIVERED", "OPENED"]


def test_a_page_may_keep_a_choice_to_itself(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one")
    keeping = "(e) => { e.preventDefault(); window.chosen = e.detail.content.title }"
    page.page.evaluate(f"document.addEventListener('noroshi-choose', {keeping})")
    page.page.get_by_role("link", name="Unread: one").click()
    assert page.page.evaluate("window.chosen") == "one"
    assert "/inbox-demo" in page.page.url
    expect_unread(shop, person, 0)


def test_what_is_put_away_leaves_the_list_and_the_count(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one", "two")
    page.page.get_by_role("button", name="Archive: two").click()
    expect(page.page.locator("noroshi-inbox li")).to_have_count(1)
    expect(page.bell).to_have_accessible_name("Notifications, 1 unread")
    expect_unread(shop, person, 1)


def test_everything_is_read_with_one_button(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one", "two", "three")
    page.page.get_by_role("button", name="Mark all as read").click()
    expect(page.page.locator("noroshi-inbox li.unread")).to_have_count(0)
    expect(page.bell).to_have_accessible_name("Notifications")
    expect(page.page.get_by_role("button", name="Mark all as read")).to_be_hidden()
    assert shop.unread(person) == 0


def test_what_is_read_on_one_page_is_read_on_the_other(shop: Shop, visit: Open, person: str) -> None:
    first = opened(shop, visit, person, "one", "two")
    second = opened(shop, visit, person)
    expect(second.page.locator("noroshi-inbox li.unread")).to_have_count(2)
    first.page.get_by_role("button", name="Archive: one").click()
    expect(second.page.locator("noroshi-inbox li")).to_have_count(1)
    expect(second.bell).to_have_accessible_name("Notifications, 1 unread")


def test_when_another_person_takes_the_page_nothing_of_the_former_stays(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one", "two")
    expect(page.bell).to_have_accessible_name("Notifications, 2 unread")
    page.page.route("**/users/somebody-else/**", lambda route: None)  # whose inbox is not answered yet
    page.page.evaluate("document.querySelector('noroshi-inbox').setAttribute('user', 'somebody-else')")
    assert page.titles == []
    assert page.bell.get_attribute("aria-label") == "Notifications"
    assert page.page.locator("noroshi-inbox .badge").is_hidden()
    assert page.page.evaluate("document.querySelector('noroshi-inbox').unread") == 0


def test_an_answer_for_the_former_person_does_not_count_for_the_next(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one", "two", "three")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.page.route("**/archive", hold)
    page.page.get_by_role("button", name="Archive: two").click()
    expect(page.page.locator("noroshi-inbox li")).to_have_count(2)
    other = shop.newcomer(f"{person}-and-another")
    changing = "([user, token]) => { const one = document.querySelector('noroshi-inbox');"
    changing += " one.setAttribute('token', token); one.setAttribute('user', user) }"
    page.page.evaluate(changing, [other, shop.token(other)])
    expect(page.page.locator("noroshi-inbox .note")).to_be_visible()  # the list of the next person, which is empty
    with page.page.expect_response("**/archive"):
        held[0].continue_()
    expect(page.bell).to_have_accessible_name("Notifications")
    expect_unread(shop, person, 2)
    assert page.bell.get_attribute("aria-label") == "Notifications"


def test_older_entries_come_on_demand(shop: Shop, visit: Open, person: str) -> None:
    for number in range(25):
        shop.tell(f"entry {number}", user_id=person)
    expect_unread(shop, person, 25)
    page = opened(shop, visit, person)
    expect(page.page.locator("noroshi-inbox li")).to_have_count(20)
    page.page.get_by_role("button", name="Show older").click()
    expect(page.page.locator("noroshi-inbox li")).to_have_count(25)
    expect(page.page.get_by_role("button", name="Show older")).to_be_hidden()
    assert page.titles[-1] == "entry 0"


@pytest.mark.parametrize(
    "text",
    [
        "<script>window.ran = 1</script>",
        "<img src=x onerror='window.ran = 1'>",
        "</style><svg onload='window.ran = 1'>",
    ],
)
def test_no_text_of_an_entry_can_run_in_the_page(shop: Shop, visit: Open, person: str, text: str) -> None:
    shop.tell(text, body=text, user_id=person)  # RELIABILITY 5.6
    page = opened(shop, visit, person)
    expect(page.page.locator("noroshi-inbox li .title")).to_have_text(text)
    assert page.page.evaluate("window.ran") is None
    assert page.complaints == []


# keyboard and screen reader


def test_everything_can_be_done_with_the_keyboard(shop: Shop, visit: Open, person: str) -> None:
    for title in ("one", "two", "three"):
        shop.tell(title, user_id=person)
    page = visit(shop.page(person))
    expect(page.bell).to_have_accessible_name("Notifications, 3 unread")
    keyboard = page.page.keyboard
    page.bell.focus()
    keyboard.press("Enter")
    expect(page.page.get_by_role("dialog", name="Notifications")).to_be_visible()
    expect(page.bell).to_have_attribute("aria-expanded", "true")
    expect(page.page.locator("noroshi-inbox li")).to_have_count(3)
    keyboard.press("ArrowDown")
    keyboard.press("ArrowDown")
    assert focused(page).startswith("Unread: two")
    keyboard.press("Delete")
    expect(page.page.locator("noroshi-inbox li")).to_have_count(2)
    keyboard.press("End")
    assert focused(page).startswith("Unread: one")
    keyboard.press("Escape")
    expect(page.page.locator("noroshi-inbox .panel")).to_be_hidden()
    assert page.page.evaluate("document.querySelector('noroshi-inbox').shadowRoot.activeElement.className") == "bell"


def test_a_click_beside_it_closes_it(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one")
    page.page.mouse.click(200, 600)
    expect(page.page.locator("noroshi-inbox .panel")).to_be_hidden()


@pytest.mark.parametrize(("lang", "heading"), [("ja", "お知らせ"), ("en", "Notifications"), ("fr", "Notifications")])
def test_it_speaks_the_language_of_the_page(shop: Shop, visit: Open, person: str, lang: str, heading: str) -> None:
    page = visit(shop.page(person, lang))
    page.bell.click()
    expect(page.page.get_by_role("heading", name=heading)).to_be_visible()


def test_on_a_phone_it_fills_the_screen_and_nothing_sticks_out(shop: Shop, visit: Open, person: str) -> None:
    long = "averylongwordwithoutanyplacetobreakit" * 5
    page = opened(shop, visit, person, long, "two", width=390, height=780)
    box = page.page.locator("noroshi-inbox .panel").bounding_box()
    assert box == {"x": 0, "y": 0, "width": 390, "height": 780}
    assert page.page.evaluate("document.documentElement.scrollWidth") == 390
    page.page.get_by_role("button", name="Close").click()
    expect(page.page.locator("noroshi-inbox .panel")).to_be_hidden()


def test_its_looks_are_the_pages_to_choose(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one")
    page.page.evaluate("document.querySelector('noroshi-inbox').style.setProperty('--noroshi-badge', 'rgb(1, 2, 3)')")
    expect(page.page.locator("noroshi-inbox .badge")).to_have_css("background-color", "rgb(1, 2, 3)")


# tokens and connections


def test_a_token_that_has_run_out_is_asked_for_again(shop: Shop, visit: Open, person: str) -> None:
    page = visit(f"{shop.url}/inbox-demo#user={person}&lang=en")
    asked: list[str] = []

    def answer(route: Any) -> None:
        token = "nru_stale" if not asked else shop.token(person)
        asked.append(token)
        route.fulfill(json={"token": token})

    page.page.route("**/my-token", answer)
    page.page.evaluate("document.querySelector('noroshi-inbox').setAttribute('token-url', '/my-token')")
    shop.tell("one", user_id=person)
    expect(page.bell).to_have_accessible_name("Notifications, 1 unread")
    assert len(asked) == 2


def test_a_restart_of_the_server_costs_nothing_but_a_moment(shop: Shop, visit: Open, person: str) -> None:
    page = opened(shop, visit, person, "one")
    assert shop.noroshi.stop() == 0
    shop.noroshi.start()
    for title in ("two", "three"):
        shop.tell(title, user_id=person)
    expect(page.page.locator("noroshi-inbox li")).to_have_count(3)
    assert page.titles == ["three", "two", "one"]


def test_pages_of_another_site_get_nothing_not_even_with_a_stolen_token(
    shop: Shop, visit: Open, person: str, other_site: str
) -> None:  # RELIABILITY 5.6
    shop.tell("one", user_id=person)
    page = visit(other_site)
    inbox, token = f"{shop.url}/api/v1/users/{person}/inbox", shop.token(person)
    ticket = shop.call("POST", f"/api/v1/users/{person}/inbox/tickets")["ticket"]
    fetching = """([url, token]) => fetch(url, {headers: {Authorization: `Bearer ${token}`}})
        .then(() => 'read', () => 'refused')"""
    assert page.page.evaluate(fetching, [inbox, token]) == "refused"
    socket = f"{inbox.replace('http', 'ws')}/socket?ticket={ticket}"
    opening = """(url) => new Promise((done) => {
        const socket = new WebSocket(url);
        socket.onopen = () => done('open');
        socket.onerror = () => done('refused');
    })"""
    assert page.page.evaluate(opening, socket) == "refused"
    own = visit(shop.page(person))
    assert own.page.evaluate(opening, socket) == "open", "the ticket was not used up by the refusal"


@pytest.fixture
def other_site() -> Iterator[str]:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>another site</title>")

        def log_message(self, *words: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def focused(page: Visit) -> str:
    text: str = page.page.evaluate("document.querySelector('noroshi-inbox').shadowRoot.activeElement.textContent")
    return text


def expect_unread(shop: Shop, person: str, unread: int) -> None:
    deadline = time.monotonic() + 5
    while shop.unread(person) != unread:
        assert time.monotonic() < deadline, f"{shop.unread(person)} are unread, not {unread}"
        time.sleep(0.02)
