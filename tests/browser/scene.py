"""A scene: the demonstration's server in; what an operator finds on a busy morning, and words for acting in it, out."""

import http.client
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

Json = dict[str, Any]

CANDLES: Json = {
    "order_id": "A-1042",
    "carrier": "Yamato",
    "arrives": "Friday",
    "items": [
        {"name": "Beeswax candle", "count": 2, "price": "¥1,800"},
        {"name": "Matches", "count": 1, "price": "¥300"},
    ],
    "total": "¥3,900",
}
SALE: Json = {"percent": 20, "until": "20 March"}


def until(is_so: Callable[[], bool], within: float = 20) -> None:
    deadline = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


class Scene:
    """Calls the API over a socket, as any caller would."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key

    def call(self, method: str, path: str, body: Any = None) -> Json:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        try:
            headers = {"Authorization": f"Bearer {self._key}"}
            connection.request(method, path, None if body is None else msgspec.json.encode(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        assert answer.status < 400, (path, text)
        decoded: Json = msgspec.json.decode(text or b"{}")
        return decoded

    def meet(self, user_id: str, person: Json, *tokens: str) -> None:
        self.call("PUT", f"/api/v1/users/{quote(user_id, safe='')}", person)
        for token in tokens:
            device = {"platform": "ios", "device_token": token, "app_version": "3.2.0"}
            self.call("POST", f"/api/v1/users/{quote(user_id, safe='')}/devices", device)

    def write(self, template_id: str, version: Json) -> None:
        self.call("POST", f"/api/v1/templates/{quote(template_id, safe='')}", version)

    def tell(self, template_id: str, *user_ids: str, **fields: Any) -> str:
        body = {"user_ids": list(user_ids), "template_id": template_id, **fields}
        batch_id: str = self.call("POST", "/api/v1/notifications", body)["batch_id"]
        return batch_id

    def tell_and_wait(self, template_id: str, *user_ids: str, **fields: Any) -> str:
        """Until everything of it has ended, one way or another."""
        batch_id = self.tell(template_id, *user_ids, **fields)
        until(lambda: self.call("GET", f"/api/v1/notifications/{batch_id}/status")["pending"] == 0)
        return batch_id

    def caught(self, channel: str) -> int:
        """The last message on a channel."""
        number: int = self.call("GET", f"/api/v1/caught?channel={channel}&limit=1")["items"][0]["caught_id"]
        return number

    def play(self) -> None:
        """To what the demonstration has, some of everything."""
        for user_id in ("alice", "priya"):
            self.tell_and_wait("order-shipped", user_id, data={**CANDLES, "order_id": f"A-{user_id}"})
        self.tell_and_wait(
            "spring-sale", *("alice", "pierre", "priya", "sakura", "hanako"), data=SALE, category="marketing"
        )
        code = {"code": "493022", "minutes": 10}
        self.tell_and_wait(
            "security-code", "hanako", channels=["voice"], data=code, category="one_time_code", priority="high"
        )
        self.tell("order-shipped", "alice", data=CANDLES, scheduled_at="2027-01-05T09:00:00+00:00", channels=["email"])
        comment = {"who": "Kenji", "what": "lantern.jpg", "text": "Where is this?"}
        self.tell_and_wait("new-comment", "alice", "hanako", data=comment, category="social")
        self.tell_and_wait(
            "security-code", "alice", channels=["sms"], data=code, category="one_time_code", priority="critical"
        )
        self.tell_and_wait("order-shipped", "hanako", "alice", "nobody", data=CANDLES, category="transaction")
