"""A caller of the API: method, path and body go in, the answer comes out; and a product with people to write to."""

import http.client
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

NOTIFICATIONS = "/api/v1/notifications"
TEMPLATE = "greeting"


class Answered(Struct, frozen=True):
    """What came back; `fields` is the JSON object, empty if the body is none."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def fields(self) -> dict[str, Any]:
        try:
            decoded = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {}
        return decoded if isinstance(decoded, dict) else {}


class Caller:
    def __init__(self, url: str, key: str | None, patience: float = 30) -> None:
        self.key = key
        self._address = urlsplit(url).netloc
        self._patience = patience

    def call(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Answered:
        """`body` is sent as it is if it is bytes, else as JSON."""
        raw = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        connection = http.client.HTTPConnection(self._address, timeout=self._patience)
        authorized = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        try:
            connection.request(method, path, raw, {**authorized, **(headers or {})})
            response = connection.getresponse()
            return Answered(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def seed(self, people: int, channel: str = "in_app") -> None:
        """People `user-0` ... and a template for them; every message has its `number`."""
        for number in range(people):
            answer = self.call("PUT", f"/api/v1/users/user-{number}", {"email": f"user-{number}@example.com"})
            assert answer.status == 200, answer
        template = {"channel": channel, "locale": "ja", "body": "hello {{ number }}", "subject": "hello"}
        answer = self.call("POST", f"/api/v1/templates/{TEMPLATE}", template)
        assert answer.status == 201, answer

    def notify(self, number: int, *users: str, filler: str = "", **more: Any) -> Answered:
        data = {"number": number, "filler": filler}
        return self.call("POST", NOTIFICATIONS, {"user_ids": list(users), "template_id": TEMPLATE, "data": data} | more)

    def statuses(self, batch_id: str) -> dict[str, str]:
        """The status of each person's notification in a batch."""
        items = self.call("GET", f"{NOTIFICATIONS}/{batch_id}?limit=100").fields["items"]
        return {item["user_id"]: item["status"] for item in items}
