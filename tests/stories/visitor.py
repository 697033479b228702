"""A visitor: an operator's browser as far as a story needs one, with its cookie, its forms and its streams."""

import asyncio
import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

from starlette.types import Message

from noroshi.entrypoints.console.door import with_console
from tests.stories.client import Answer, Client
from tests.stories.world import World

ORIGIN = "http://test"
FORM = "application/x-www-form-urlencoded"


class Visitor:
    def __init__(self, world: World, public_url: str = ORIGIN) -> None:
        self.world = world
        self.is_closing = False
        self.app = with_console(world.app, world.noroshi, public_url=public_url, is_closing=lambda: self.is_closing)
        self._client = Client(self.app, None)
        self.cookie: str | None = None

    def get(self, path: str, **headers: str) -> Answer:
        return self._keep_cookie(self.world.call("GET", path, None, self._headers(headers), self._client))

    def post(self, path: str, form: dict[str, str] | None = None, **headers: str) -> Answer:
        """With the token of the page that the form would be on; `headers` may say otherwise."""
        fields = {"token": self.token()} | (form or {})
        lines = {"content-type": FORM, "origin": ORIGIN, **headers}
        body = urlencode(fields).encode()
        return self._keep_cookie(self.world.call("POST", path, body, self._headers(lines), self._client))

    def enter_by_key(self, key: str, **more: str) -> Answer:
        return self.post("/console/login", {"key": key, **more})

    def enter_by_ticket(self, ticket: str) -> Answer:
        return self.get(f"/console/enter?ticket={ticket}")

    def page(self, path: str) -> str:
        """What is on a page, without its marks; it must be there."""
        answer = self.get(path)
        assert answer.status == 200, (path, answer.status, answer.headers)
        return seen(answer)

    def token(self) -> str:
        if self.cookie is None:
            return ""
        found = re.search(r'name="token" value="(\w+)"', self.get("/console/health").text.decode())
        return found[1] if found else ""

    def listen(self, path: str, **headers: str) -> "Stream":
        return Stream(self, path, self._headers({"accept": "text/event-stream", **headers}))

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return ({"cookie": f"noroshi_console={self.cookie}"} if self.cookie else {}) | {"accept": "text/html"} | more

    def _keep_cookie(self, answer: Answer) -> Answer:
        given = re.match(r"noroshi_console=([^;]*); Max-Age=(\d+)", answer.headers.get("set-cookie", ""))
        if given:
            self.cookie = given[1] if given[2] != "0" else None
        return answer


class Stream:
    """Events as they come in, while the story goes on."""

    def __init__(self, visitor: Visitor, path: str, headers: dict[str, str]) -> None:
        self.status = 0
        self.text = ""
        self._gone = asyncio.Event()
        where, _, query = path.partition("?")
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"test"), *((name.encode(), value.encode()) for name, value in headers.items())],
        }
        self._task = visitor.world.loop.create_task(self._run(visitor.app, scope))

    @property
    def is_over(self) -> bool:
        return self._task.done()

    def names(self) -> list[str]:
        return re.findall(r"^event: (\w+)$", self.text, re.MULTILINE)

    def numbers(self) -> list[int]:
        return [int(number) for number in re.findall(r"^id: (\d+)$", self.text, re.MULTILINE)]

    def hang_up(self) -> None:
        self._gone.set()

    async def _run(self, app: Any, scope: dict[str, Any]) -> None:
        async def receive() -> Message:
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.status = message.get("status", self.status)
            self.text += message.get("body", b"").decode()

        await app(scope, receive, send)


def seen(answer: Answer) -> str:
    without_marks = re.sub(r"<(svg|title|option)\b.*?</\1>|<[^>]+>", " ", answer.text.decode(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(without_marks))
