"""A caller: method, path and body in, the API's answer out, straight through the ASGI application."""

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.types import ASGIApp, Message

Json = dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """What came back. `body` is the decoded JSON ({} where there was none)."""

    status: int
    headers: dict[str, str]
    text: bytes
    body: Json

    def __getitem__(self, name: str) -> Any:
        return self.body[name]


class Client:
    """Calls with one key; `None` calls without any."""

    def __init__(self, app: ASGIApp, key: str | None) -> None:
        self._app = app
        self._key = key

    async def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """`path` may have a query; parts of it that need it are quoted by the caller."""
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        where, _, query = path.partition("?")
        lines = {"host": "test", "content-length": str(len(raw))} | (headers or {})
        if self._key is not None:
            lines.setdefault("authorization", f"Bearer {self._key}")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": where,
            "raw_path": quote(where, safe="/%").encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in lines.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        sent: list[Message] = []
        said = iter([raw])

        async def receive() -> Message:
            body = next(said, None)
            if body is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        text = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
        answered = {name.decode(): value.decode() for name, value in start["headers"]}
        is_json = "json" in answered.get("content-type", "")
        return Answer(start["status"], answered, text, msgspec.json.decode(text) if is_json else {})
