"""A browser, a server in development, and the words with which tests speak to it."""

import http.client
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.faults.machinery.processes import ServedNoroshi

UNLIMITED = {"frequency_limit": {"in_app": {"per_hour": 1_000_000, "per_day": 1_000_000}}}


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(chromium_path), args=["--no-sandbox"])
        yield opened
        opened.close()


class Shop:
    """A product with Noroshi behind it, and one person, Hanako, who looks at her inbox."""

    def __init__(self, noroshi: ServedNoroshi) -> None:
        self.noroshi = noroshi
        self.url = noroshi.url
        self.key = noroshi.create_key()
        self._told = 0

    def call(self, method: str, path: str, body: Any = None, *, is_fine: bool = True) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.noroshi.port, timeout=20)
        raw = None if body is None else msgspec.json.encode(body)
        connection.request(method, path, raw, {"Authorization": f"Bearer {self.key}"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 300 or not is_fine, text
        return msgspec.json.decode(text) if text else None

    def tell(self, title: str, body: str = "What it is about.", url: str = "/healthz", user_id: str = "hanako") -> None:
        """Until it is in the inbox: of two that are on their way at once either may come first."""
        before = self._last_entry(user_id)
        self.begin_to_tell(title, body, url, user_id)
        deadline = time.monotonic() + 10
        while self._last_entry(user_id) == before:
            assert time.monotonic() < deadline, f"{title} does not arrive"
            time.sleep(0.005)

    def begin_to_tell(self, title: str, body: str, url: str, user_id: str) -> None:
        self._told += 1
        data = {"title": title, "body": body, "url": url, "n": self._told}
        asked = {"user_ids": [user_id], "template_id": "note", "channels": ["in_app"], "data": data}
        self.call("POST", "/api/v1/notifications", asked)

    def _last_entry(self, user_id: str) -> int:
        number: int = self.call("GET", f"/api/v1/users/{user_id}/inbox/unread-count")["last_entry_id"]
        return number

    def token(self, user_id: str = "hanako", expires_in: int = 3600) -> str:
        token: str = self.call("POST", f"/api/v1/users/{user_id}/tokens", {"expires_in": expires_in})["token"]
        return token

    def page(self, user_id: str = "hanako", lang: str = "en") -> str:
        return f"{self.url}/inbox-demo#user={user_id}&lang={lang}&token={self.token(user_id)}"

    def unread(self, user_id: str = "hanako") -> int:
        count: int = self.call("GET", f"/api/v1/users/{user_id}/inbox/unread-count")["unread"]
        return count

    def newcomer(self, user_id: str) -> str:
        """Somebody with an inbox in which nothing is yet."""
        self.call("PUT", f"/api/v1/users/{user_id}", {"name": user_id, "locale": "en"})
        self.call("PUT", f"/api/v1/users/{user_id}/notification-preferences", UNLIMITED)
        return user_id


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    data: Path = tmp_path_factory.mktemp("shop") / "data"
    with ServedNoroshi(data, words=("--dev",)) as noroshi:
        noroshi.start()
        shop = Shop(noroshi)
        version = {"channel": "in_app", "locale": "en", "title": "{{ title }}", "body": "{{ body }}"}
        shop.call("POST", "/api/v1/templates/note", {**version, "metadata": {"url": "{{ url }}"}})
        yield shop
        assert noroshi.stop() == 0


class Visit:
    """An open page; what its console complained of is kept."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    @property
    def bell(self) -> Any:
        return self.page.locator("noroshi-inbox .bell")

    @property
    def titles(self) -> list[str]:
        texts: list[str] = self.page.locator("noroshi-inbox li .title").all_inner_texts()
        return texts


@pytest.fixture
def visit(browser: Browser, shop: Shop) -> Iterator[Any]:
    """Opens pages: `visit(address, width=390)`."""
    contexts = []

    def open_page(address: str, width: int = 1280, height: int = 720, **more: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        context.set_default_timeout(10_000)
        contexts.append(context)
        visited = Visit(context.new_page())
        visited.page.goto(address)
        return visited

    yield open_page
    for context in contexts:
        context.close()
