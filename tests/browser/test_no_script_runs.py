"""A script that anybody manages to put anywhere runs on no page (RELIABILITY 5.6, issue 4)."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Dialog, Page, Request

from tests.browser.product import Product
from tests.browser.scene import Scene

pytestmark = pytest.mark.xdist_group("no script runs")

RUN = "fetch('/console/pwned');top.pwned=1"
PLANTS = (
    f"<script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"'-{RUN}-'",
    f'<svg onload="{RUN}"></svg>',
    f'</textarea></title><iframe srcdoc="<script>{RUN}</script>"></iframe>',
    f'<a id=plant href="javascript:{RUN}">click</a>',
    "<style>a{color:red}</style><base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
)
PLANT = "".join(PLANTS)
USER = "<script>top.pwned=1</script>"
CHANNELS = ("email", "push", "web_push", "sms", "voice", "in_app", "line")


class Watch:
    """Whatever a page does that only a planted script would do."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.found: list[str] = []
        self.violations: list[str] = []
        page.on("dialog", self._note_dialog)
        page.on("request", self._note_request)
        page.expose_function("noteViolation", self._note_violation)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', (event) => window === top &&"
            " window.noteViolation(event.violatedDirective + ' ' + event.blockedURI));"
        )

    def _note_dialog(self, dialog: Dialog) -> None:
        self.found.append(dialog.message)
        dialog.dismiss()

    def _note_request(self, asked: Request) -> None:
        if asked.url.endswith("/console/pwned") or "//evil.example" in asked.url:
            self.found.append(asked.url)

    def _note_violation(self, what: str) -> None:
        """Of the page itself: in a letter's frame much is stopped, and that is what the frame is for."""
        self.violations.append(what)

    def look(self, path: str) -> None:
        self.page.goto(path)
        if self.page.locator("iframe, [data-preview]").count():
            self.page.wait_for_timeout(300)
        if self.page.evaluate("window.pwned") is not None:
            self.found.append(f"{path} ran it")


@pytest.fixture(scope="module")
def planted(product: Product) -> list[str]:
    """Every page on which something of it is shown."""
    scene = product.scene
    scene.meet(
        USER,
        {"name": PLANT[:256], "email": "x@example.com", "phone": "+819012345678", "attributes": {PLANT: PLANT}},
        PLANT,
    )
    rich = {
        "html_body": f"{PLANT}{{{{ text }}}}{{{{ text|safe }}}}",
        "subtitle": "{{ text }}",
        "data": {"k": "{{ text }}"},
    }
    for channel in CHANNELS:
        texts = {"subject": "{{ text }}", "title": "{{ text }}", "body": "{{ text }}"}
        scene.write("plant<script>", {"channel": channel, "locale": "en", **texts, "metadata": rich})
    fields = {"data": {"text": PLANT}, "category": "<script>x</script>"}
    batches = [scene.tell_and_wait("plant<script>", USER, "<i>nobody", channels=[name], **fields) for name in CHANNELS]
    scene.call("PUT", "/api/v1/caught/misbehaviour", {"fault": "gone", "channel": "push", "count": 1})
    batches.append(
        scene.tell_and_wait("plant<script>", USER, channels=["push"], **{**fields, "data": {"text": PLANT + "2"}})
    )
    scene.call("POST", "/api/v1/pauses", {"kind": "category", "name": "<script>top.pwned=1</script>"})
    return list(addresses(scene, batches))


def addresses(scene: Scene, batches: list[str]) -> Iterator[str]:
    yield from ("/console", "/console/catcher", "/console/people", "/console/templates", "/console/health")
    yield "/console/dead-letters"
    yield "/console/people/%3Cscript%3Etop.pwned%3D1%3C%2Fscript%3E"
    yield from (f"/console/templates/plant%3Cscript%3E?channel={name}&locale=en" for name in CHANNELS)
    for batch_id in (batches[0], batches[-1]):
        yield f"/console/batches/{batch_id}"
        for one in scene.call("GET", f"/api/v1/notifications/{batch_id}")["items"]:
            yield f"/console/batches/{batch_id}/{one['notification_id']}"
    for message in scene.call("GET", "/api/v1/caught?limit=100")["items"]:
        yield f"/console/catcher/{message['caught_id']}"
        if message["channel"] == "email":
            yield f"/console/catcher/{message['caught_id']}?view=source"
            yield f"/console/catcher/{message['caught_id']}?view=html&images=1"
    for letter in scene.call("GET", "/api/v1/dead-letters")["items"]:
        yield f"/console/dead-letters/{letter['dead_letter_id']}"
    for spot in (
        "/console?said={}",
        "/console/catcher?user_id={}",
        "/console/people?prefix={}",
        "/console/login?next={}",
    ):
        yield spot.format("%22%3E%3Cscript%3Etop.pwned=1%3C/script%3E")


def test_no_script_runs_on_any_page(planted: list[str], page: Page) -> None:
    watch = Watch(page)
    assert len(planted) > 30
    for path in planted:
        watch.look(path)
        assert watch.found == [], path
        assert watch.violations == [], path  # nothing even had to be stopped: it is all text


def test_a_letter_runs_nothing_even_alone_or_when_it_is_clicked(
    product: Product, planted: list[str], page: Page, context: BrowserContext
) -> None:
    watch = Watch(page)
    (message,) = product.scene.call("GET", "/api/v1/caught?channel=email&limit=1")["items"]
    watch.look(f"/console/catcher/{message['caught_id']}/letter?images=1")
    assert page.evaluate("window.origin") == "null"
    page.locator("#plant").first.click(force=True, no_wait_after=True)
    watch.look(f"/console/catcher/{message['caught_id']}")
    page.frame_locator("iframe").locator("#plant").first.click(force=True, no_wait_after=True)
    page.wait_for_timeout(300)
    ours = [url for url in watch.found if "pwned" in url]
    assert ours == []
    assert all(other.evaluate("window.pwned") is None for other in context.pages)


def test_a_live_row_runs_nothing(product: Product, planted: list[str], page: Page) -> None:
    watch = Watch(page)
    for path in ("/console/catcher", "/console"):
        page.goto(path)
        page.wait_for_selector(".live.on")
        batch_id = product.scene.tell("plant<script>", USER, channels=["in_app"], data={"text": f"{PLANT} {path}"})
        page.wait_for_selector(".new" if path.endswith("catcher") else f"#b-{batch_id}", state="attached")
        page.wait_for_timeout(200)
        assert (watch.found, watch.violations) == ([], [])
        assert page.evaluate("window.pwned") is None


def test_the_watch_sees_a_script_that_does_run(product: Product, page: Page, context: BrowserContext) -> None:
    """The control: the same plants on a page that does not guard itself."""
    careless = f"{product.url}/careless"
    context.route(careless, lambda route: route.fulfill(body=f"<body>{PLANT}", content_type="text/html"))
    watch = Watch(page)
    page.goto(careless, wait_until="commit")
    page.wait_for_timeout(300)
    assert any("pwned" in url for url in watch.found)
