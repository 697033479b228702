"""The console in Chromium: live, by keyboard, on a telephone, in the dark."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from noroshi.entrypoints.console import words
from tests.browser.product import Product
from tests.browser.scene import until

pytestmark = pytest.mark.xdist_group("console")
"""One product for all of them."""

NOTE_ARRIVALS = """
window.arrivals = [];
const note = () => window.arrivals.push(Date.now());
new MutationObserver(note).observe(document.querySelector("#caught"), {childList: true});
"""
"""Gone with a reload."""

PAGES = (
    "",
    "/catcher",
    "/people",
    "/people/hanako",
    "/templates",
    "/templates/order-shipped",
    "/dead-letters",
    "/health",
)


@pytest.fixture(scope="module", autouse=True)
def _scene(product: Product) -> None:
    product.scene.play()


def comment(product: Product, who: str) -> str:
    """A batch with one message in Sakura's inbox."""
    data = {"who": who, "what": "lantern.jpg", "text": "Where is this?"}
    return product.scene.tell("new-comment", "sakura", channels=["in_app"], data=data)


def test_the_link_that_serve_prints_opens_the_console_once(browser: Browser, product: Product) -> None:  # DESIGN 8
    context = browser.new_context()
    page = context.new_page()
    page.goto(product.link)
    expect(page.get_by_role("heading", name="Activity")).to_be_visible()
    assert page.url == f"{product.url}/console"
    context.clear_cookies()
    page.goto(product.link)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    context.close()


def test_a_message_appears_within_a_second_of_the_post_without_reload(product: Product, page: Page) -> None:  # issue 4
    page.goto("/console/catcher")
    expect(page.locator(".live.on")).to_be_visible()
    page.evaluate(NOTE_ARRIVALS)
    waits = waits_of_five(product, page, "L")
    if max(waits) >= 1.0:  # others use this machine, and it may stand still for a moment: hardly in two rounds
        waits = waits_of_five(product, page, "M")
    assert max(waits) < 1.0, waits


def waits_of_five(product: Product, page: Page, letter: str) -> list[float]:
    """Seconds from each of five POSTs until its message was on the page."""
    waits = []
    for number in range(5):
        posted = time.time()
        comment(product, f"{letter}-{number}")
        page.wait_for_selector(f"text={letter}-{number}さん")
        waits.append(page.evaluate("window.arrivals.at(-1)") / 1000 - posted)
    return waits


def test_a_batch_appears_and_its_fate_follows(product: Product, page: Page) -> None:
    page.goto("/console")
    expect(page.locator(".live.on")).to_be_visible()
    pause = product.scene.call("POST", "/api/v1/pauses", {"kind": "channel", "name": "in_app"})
    batch_id = comment(product, "Kenji")
    row = page.locator(f"#b-{batch_id}")
    expect(row).to_contain_text("Under way", timeout=3000)
    product.scene.call("DELETE", f"/api/v1/pauses/{pause['pause_id']}")
    expect(row).to_contain_text("Delivered", timeout=5000)
    expect(page.locator("#batches > li").first).to_have_attribute("id", f"b-{batch_id}")


def test_a_letter_is_shown_as_it_would_be_read(product: Product, page: Page, context: BrowserContext) -> None:
    product.scene.tell_and_wait("spring-sale", "hanako", data={"percent": 20, "until": "3/20"}, channels=["email"])
    page.goto(f"/console/catcher/{product.scene.caught('email')}")
    link = page.frame_locator("iframe").get_by_role("link")
    assert link.evaluate("link => getComputedStyle(link).color") == "rgb(255, 255, 255)"
    context.route("https://shop.example/**", lambda route: route.fulfill(body="the sale"))
    with context.expect_page() as opened:
        link.click()
    opened.value.wait_for_load_state()
    assert opened.value.evaluate("window.opener") is None
    page.get_by_role("link", name="Text").click()
    expect(page.locator(".plain-text")).to_contain_text("20%")


def test_a_call_is_read_aloud_in_its_language(product: Product, page: Page) -> None:  # DESIGN 7.9
    page.add_init_script("speechSynthesis.speak = (said) => { window.said = [said.text, said.lang]; };")
    page.goto(f"/console/catcher/{product.scene.caught('voice')}")
    page.get_by_role("button", name="Listen").click()
    text, language = page.evaluate("window.said")
    assert ("確認コード" in text, language) == (True, "ja-JP")


def test_a_template_is_drawn_anew_while_it_is_written(page: Page) -> None:
    page.goto("/console/templates/welcome?channel=email&locale=en&user_id=alice")
    frame = page.frame_locator("iframe[name=letter]")
    expect(frame.get_by_role("heading", level=1)).to_contain_text("Welcome, Alice")
    page.fill("[name=user_id]", "pierre")
    expect(frame.get_by_role("heading", level=1)).to_contain_text("Welcome, Pierre")
    page.fill("[name=html_body]", "<h1 style='color: rgb(1, 2, 3)'>{{ shop }}!</h1>")
    page.fill("[name=data]", '{"shop": "<i>A-9</i>"}')
    expect(frame.get_by_role("heading", level=1)).to_have_text("<i>A-9</i>!")
    assert frame.locator("h1").evaluate("it => getComputedStyle(it).color") == "rgb(1, 2, 3)"
    page.fill("[name=data]", "{")
    expect(page.locator("[data-stage]")).to_contain_text("not a JSON object")
    page.fill("[name=data]", "{}")
    expect(page.locator("[data-stage]")).to_contain_text("undefined value")


def test_what_cannot_be_undone_asks_first(product: Product, page: Page) -> None:
    page.goto("/console/dead-letters")
    letters = page.locator("[data-row]")
    expect(letters).not_to_have_count(0)
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Leave it").click()
    expect(letters).not_to_have_count(0)
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("status")).to_contain_text("Discarded: ")
    assert product.scene.call("GET", "/api/v1/dead-letters")["items"] == []


def test_everything_can_be_reached_by_keyboard(page: Page) -> None:
    page.goto("/console/catcher")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator("#caught li").nth(1)
    expect(second.locator("a")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/console/catcher/\d+"))
    page.keyboard.press("/")
    expect(page.locator("[data-find]")).to_be_focused()
    page.keyboard.type("hana")
    page.keyboard.press("Enter")
    page.wait_for_url("/console/people?prefix=hana")
    expect(page.locator("[data-row]")).to_have_count(1)


def test_light_or_dark_is_kept(context: BrowserContext, page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto("/console/health")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate(background)
    assert light != dark
    page.goto("/console/people")
    assert page.evaluate(background) == dark
    other = context.new_page()
    other.emulate_media(color_scheme="dark")
    context.clear_cookies(name="noroshi_theme")
    other.goto("/console/people")
    assert other.evaluate(background) == dark  # the system's wish, where nobody chose


def test_browser_and_server_say_times_alike(page: Page) -> None:
    page.goto("/console/health")
    assets = page.locator("link[rel=stylesheet]").get_attribute("href")
    assert assets is not None
    now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    spans = [
        sign * seconds
        for seconds in (0.4, 1.5, 30, 61, 3599, 7200, 90_000, 2_591_000, 2_593_000, 3e7)
        for sign in (1, -1)
    ]
    times = [now - timedelta(seconds=span) for span in spans]
    said = page.evaluate(
        "async ([place, times, now]) => { const { ago } = await import(place);"
        " return times.map((then) => ago(new Date(then), new Date(now))); }",
        [assets.replace("console.css", "times.js"), [then.isoformat() for then in times], now.isoformat()],
    )
    assert said == [words.ago(then, now) for then in times]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_screen_or_complains(page: Page, product: Product, width: int) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_viewport_size({"width": width, "height": 800})
    batch = product.scene.call("GET", "/api/v1/notifications?limit=1")["items"][0]["batch_id"]
    one = product.scene.call("GET", f"/api/v1/notifications/{batch}")["items"][0]["notification_id"]
    messages = [f"/catcher/{product.scene.caught(name)}" for name in ("email", "sms", "push", "voice", "in_app")]
    for path in (*PAGES, *messages, f"/batches/{batch}", f"/batches/{batch}/{one}"):
        page.goto(f"/console{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert complaints == []


def test_nobody_elsewhere_can_act_with_an_operators_visit(
    product: Product, context: BrowserContext, page: Page
) -> None:
    # RELIABILITY 5.6
    form = f'<form method=post action="{product.url}/console/pauses"><input name=what value=everything></form>'
    evil = f"<body>{form}<script>document.forms[0].submit()</script>"
    context.route("http://evil.example/**", lambda route: route.fulfill(body=evil, content_type="text/html"))
    with page.expect_response(lambda answer: "/console/" in answer.url) as answered:
        page.goto("http://evil.example/")
    assert answered.value.status in {303, 403}
    assert product.scene.call("GET", "/api/v1/pauses")["items"] == []
    framed = f'<iframe src="{product.url}/console"></iframe>'
    context.unroute("http://evil.example/**")
    context.route("http://evil.example/**", lambda route: route.fulfill(body=framed, content_type="text/html"))
    page.goto("http://evil.example/")
    assert not [frame for frame in page.frames[1:] if frame.get_by_role("heading").count()]


def test_a_server_with_open_pages_stops_at_once(product: Product, page: Page) -> None:  # W26
    """The last of this file: the product is gone afterwards and started again for whoever comes later."""
    page.goto("/console")
    expect(page.locator(".live.on")).to_be_visible()
    began = time.monotonic()
    assert product.stop() == 0
    assert time.monotonic() - began < 5
    expect(page.locator(".live:not(.on)")).to_be_visible()
    product.start()
    until(lambda: page.locator(".live.on").is_visible())
    assert "さくら" in page.request.get("/console/people").text()
