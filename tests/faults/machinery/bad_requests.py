"""Bad requests: a table of what is sent, and of what must be said of it."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from tests.faults.machinery.caller import NOTIFICATIONS

ADDRESS = "canary.address@example.com"
PHONE = "+819012340987"
TOKEN = "canary-device-token"
PASSWORD = "canary-password"
"""Secrets that no answer and no log may repeat."""

USER = "/api/v1/users/hanako"
TEMPLATE = "/api/v1/templates/greeting"


def request(**changes: Any) -> dict[str, Any]:
    """A request that would be accepted, but for the changes."""
    return {"user_ids": ["hanako"], "template_id": "greeting", "data": {"number": 1}} | changes


class Case(Struct, frozen=True):
    """What is sent, and what must be said of it."""

    name: str
    body: Any = None
    status: int = 422
    field: str | None = None
    method: str = "POST"
    path: str = NOTIFICATIONS
    headers: dict[str, str] = {}  # msgspec copies it

    def __str__(self) -> str:
        return self.name


def text(value: object) -> bytes:
    return json.dumps(value).encode()


UNREADABLE = [
    Case("empty body", b"", 400),
    Case("blank body", b"  \n", 400),
    Case("broken JSON", b'{"user_ids": ["hanako"', 400),
    Case("trailing comma", b'{"user_ids": ["hanako"],}', 400),
    Case("two objects", text(request()) * 2, 400),
    Case("single quotes", b"{'user_ids': ['hanako']}", 400),
    Case("wrong types before broken JSON", b'{"user_ids": 5, "template_id": ', 400),
    Case("invalid UTF-8", b'{"user_ids": ["\xff\xfe"], "template_id": "greeting"}', 400),
    Case("UTF-16", json.dumps(request()).encode("utf-16"), 400),
    Case("byte order mark", b"\xef\xbb\xbf" + text(request()), 400),
    Case("a lone surrogate", b'{"user_ids": ["\\ud800"], "template_id": "greeting"}', 400),
    Case(
        "a lone surrogate in data",
        b'{"user_ids": ["hanako"], "template_id": "greeting", "data": {"a": "\\udc00"}}',
        400,
    ),
    Case("a raw control character", b'{"user_ids": ["ha\x01nako"], "template_id": "greeting"}', 400),
    Case("NaN", b'{"user_ids": ["hanako"], "template_id": "greeting", "data": {"a": NaN}}', 400),
    Case(
        "a number beyond every float", b'{"user_ids": ["hanako"], "template_id": "greeting", "data": {"a": 1e999}}', 400
    ),
    Case("depth 50,000 in data", b'{"data": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, 400),
    Case("depth 50,000 of nothing", b"[" * 50_000 + b"]" * 50_000, 400),
    Case("depth 50,000 unfinished", b"[" * 50_000, 400),
    Case("a form", b"user_ids=hanako", 400, headers={"Content-Type": "application/x-www-form-urlencoded"}),
    Case("multipart", b"--x\r\n\r\nhanako\r\n--x--", 400, headers={"Content-Type": "multipart/form-data; boundary=x"}),
    Case("gzip", gzip.compress(text(request())), 400, headers={"Content-Encoding": "gzip"}),
    Case("13 MB", text(request(data={"a": "x" * 13_000_000})), 413),
    Case("13 MB of blanks", b" " * 13_000_000, 413),
    Case("6 MB of data", text(request(data={"a": "x" * 6_000_000})), field="data"),
    Case(
        "6 MB attached",
        text(request(attachments=[{"filename": "a", "content": "AAAA" * 2_000_000}])),
        field="attachments[0].content",
    ),
    Case(
        "6 MB in two files",
        text(request(attachments=[{"filename": "a", "content": "AAAA" * 1_000_000}] * 2)),
        field="attachments",
    ),
    Case("no base64", text(request(attachments=[{"filename": "a", "content": "*"}])), field="attachments[0].content"),
    Case(
        "a header in a file's name",
        text(request(attachments=[{"filename": "a\r\nBcc: b@c.example", "content": ""}])),
        field="attachments[0].filename",
    ),
    Case("attachments that are no list", text(request(attachments={})), field="attachments"),
]

SHAPES = [
    Case("a list", b"[]", field="$"),
    Case("a number", b"1", field="$"),
    Case("null", b"null", field="$"),
    Case("a string", b'"hanako"', field="$"),
    Case("nothing at all", {}, field="user_ids"),
    Case("no template", {"user_ids": ["hanako"]}, field="template_id"),
    Case("an unknown field", request(users=["hanako"]), field="users"),
    Case("a field set by us", request(tenant=2), field="tenant"),
    Case("a status", request(status="SENT"), field="status"),
    Case("0 users", request(user_ids=[]), field="user_ids"),
    Case("10,001 users", request(user_ids=[f"u{n}" for n in range(10_001)]), field="user_ids"),
    Case("users as text", request(user_ids="hanako"), field="user_ids"),
    Case("users as an object", request(user_ids={"0": "hanako"}), field="user_ids"),
    Case("a user who is a number", request(user_ids=["hanako", 1]), field="user_ids[1]"),
    Case("a user who is null", request(user_ids=[None]), field="user_ids[0]"),
    Case("a user without a name", request(user_ids=[""]), field="user_ids[0]"),
    Case("a user with too long a name", request(user_ids=["x" * 129]), field="user_ids[0]"),
    Case("an unknown template", request(template_id="nobodys"), field="template_id"),
    Case("a template that is a number", request(template_id=1), field="template_id"),
    Case("a template that is null", request(template_id=None), field="template_id"),
    Case("an unknown channel", request(channels=["in_app", "pigeon"]), field="channels[1]"),
    Case("channels as text", request(channels="in_app"), field="channels"),
    Case("no channels", request(channels=[]), field="channels"),
    Case("too many channels", request(channels=["in_app"] * 17), field="channels"),
    Case("an unknown priority", request(priority="urgent"), field="priority"),
    Case("a priority that is a number", request(priority=1), field="priority"),
    Case("data as a list", request(data=[1]), field="data"),
    Case("data as text", request(data="number=1"), field="data"),
    Case("data of the person's own", request(data={"user": {}}), field="data.user"),
    Case("a number over 64 bits", request(data={"a": [10**30]}), field="data.a[0]"),
    Case("an enormous number", request(data={"a": 10**4000}), field="data.a"),
    Case(
        "data 100 deep",
        request(data=json.loads('{"a":' * 100 + "1" + "}" * 100)),
        field=("data" + ".a" * 63)[:100] + "...",
    ),
    Case("a naive time", request(scheduled_at="2026-12-31T09:00:00"), field="scheduled_at"),
    Case("no time at all", request(scheduled_at="tomorrow"), field="scheduled_at"),
    Case("a time that is a number", request(scheduled_at=1_800_000_000), field="scheduled_at"),
    Case("the 30th of February", request(scheduled_at="2026-02-30T09:00:00Z"), field="scheduled_at"),
    Case("the year 10000", request(scheduled_at="10000-01-01T09:00:00Z"), field="scheduled_at"),
    Case("a naive expiry", request(expires_at="2026-12-31T09:00:00"), field="expires_at"),
    Case(
        "expired before it begins",
        request(scheduled_at="2030-01-02T00:00:00Z", expires_at="2030-01-01T00:00:00Z"),
        field="expires_at",
    ),
    Case("the strategy fallback", request(strategy="fallback"), field="strategy"),
    Case("a strategy that is a number", request(strategy=1), field="strategy"),
    Case("an empty key", request(idempotency_key=""), field="idempotency_key"),
    Case("too long a key", request(idempotency_key="x" * 256), field="idempotency_key"),
    Case("a key that is a number", request(idempotency_key=1), field="idempotency_key"),
    Case("an empty category", request(category=""), field="category"),
    Case("an empty digest key", request(digest_key=""), field="digest_key"),
    Case(
        "two keys that differ",
        request(idempotency_key="one"),
        headers={"Idempotency-Key": "two"},
        field="idempotency_key",
    ),
    Case("an empty key in the header", request(), headers={"Idempotency-Key": ""}, field="Idempotency-Key"),
    Case("too long a key in the header", request(), headers={"Idempotency-Key": "x" * 256}, field="Idempotency-Key"),
    Case("a tab in the header", request(), headers={"Idempotency-Key": "a\tb"}, field="Idempotency-Key"),
    Case("Latin in the header", request(), headers={"Idempotency-Key": "caf\xe9"}, field="Idempotency-Key"),
    Case("users twice", text(request())[:-1] + b', "user_ids": ["taro"]}', field="user_ids"),
    Case("a key twice", b'{"idempotency_key": "a", ' + text(request(idempotency_key="b"))[1:], field="idempotency_key"),
]

OTHERS = [
    Case("no address", {"email": f"{PASSWORD} at example.com"}, field="email", method="PUT", path=USER),
    Case("two addresses", {"email": f"{ADDRESS}, {ADDRESS}"}, field="email", method="PUT", path=USER),
    Case("a header in an address", {"email": f"{ADDRESS}\r\nBcc: {ADDRESS}"}, field="email", method="PUT", path=USER),
    Case("a local number", {"phone": "090-1234-0987"}, field="phone", method="PUT", path=USER),
    Case("no number", {"phone": "+1"}, field="phone", method="PUT", path=USER),
    Case("no zone", {"timezone": "Mars/Olympus"}, field="timezone", method="PUT", path=USER),
    Case("a zone above", {"timezone": "../../etc/passwd"}, field="timezone", method="PUT", path=USER),
    Case("no locale", {"locale": "日本語"}, field="locale", method="PUT", path=USER),
    Case("attributes as text", {"attributes": "x"}, field="attributes", method="PUT", path=USER),
    Case("large attributes", {"attributes": {"a": "x" * 20_000}}, field="attributes", method="PUT", path=USER),
    Case("a name of NUL", {}, field="user_id", method="PUT", path="/api/v1/users/a%00b"),
    Case("a name of bytes", {}, field="user_id", method="PUT", path="/api/v1/users/%ff"),
    Case("too long a name", {}, field="user_id", method="PUT", path="/api/v1/users/" + "x" * 129),
    Case("no platform", {"device_token": TOKEN, "platform": "fax"}, field="platform", path=f"{USER}/devices"),
    Case("no token", {"device_token": "", "platform": "ios"}, field="device_token", path=f"{USER}/devices"),
    Case(
        "a token too long",
        {"device_token": "x" * 5_000, "platform": "ios"},
        field="device_token",
        path=f"{USER}/devices",
    ),
    Case("nobody's device", {"device_token": TOKEN, "platform": "ios"}, 404, path="/api/v1/users/nobody/devices"),
    Case("no syntax", {"channel": "in_app", "locale": "ja", "body": "{{ number"}, field="body", path=TEMPLATE),
    Case("a bomb", {"channel": "in_app", "locale": "ja", "body": "{{ '%9s'|format(1) }}"}, field="body", path=TEMPLATE),
    Case("an include", {"channel": "in_app", "locale": "ja", "body": "{% include 'x' %}"}, field="body", path=TEMPLATE),
    Case("70 kB", {"channel": "in_app", "locale": "ja", "body": "x" * 70_000}, field="body", path=TEMPLATE),
    Case("no channel", {"channel": "pigeon", "locale": "ja", "body": "x"}, field="channel", path=TEMPLATE),
    Case("no such version", {"channel": "in_app", "locale": "ja", "version": 99}, 404, path=f"{TEMPLATE}/rollback"),
    Case(
        "version 0", {"channel": "in_app", "locale": "ja", "version": 0}, field="version", path=f"{TEMPLATE}/rollback"
    ),
    Case("no kind", {"kind": "server"}, field="kind", path="/api/v1/pauses"),
    Case("no name", {"kind": "channel"}, field="name", path="/api/v1/pauses"),
    Case("no filter", {}, field="all", path="/api/v1/dead-letters/discard"),
    Case("no filter to replay", {}, field="all", path="/api/v1/dead-letters/replay"),
    Case(
        "no hour",
        {"quiet_hours": {"enabled": True, "start": "25:00"}},
        field="quiet_hours.start",
        method="PUT",
        path=f"{USER}/notification-preferences",
    ),
    Case(
        "a required one",
        {"categories": {"security": False}},
        field="categories.security",
        method="PUT",
        path=f"{USER}/notification-preferences",
    ),
    Case("no batch", status=404, path=f"{NOTIFICATIONS}/nobodys/cancel"),
    Case("no batch either", status=404, path=f"{NOTIFICATIONS}/00000000-0000-7000-8000-000000000000/cancel"),
    Case("no letter", status=404, method="DELETE", path="/api/v1/dead-letters/-1"),
    Case("an enormous letter", status=404, method="DELETE", path="/api/v1/dead-letters/" + "9" * 40),
    Case("no path", status=404, path="/api/v1/nothing"),
    Case("no method", status=405, method="PATCH"),
    Case("a bad cursor", field="cursor", method="GET", path="/api/v1/dead-letters?cursor=%21%21"),
    Case("another list's cursor", field="cursor", method="GET", path="/api/v1/caught?cursor=WyJhIl0"),
    Case("limit 0", field="limit", method="GET", path="/api/v1/caught?limit=0"),
    Case("limit -1", field="limit", method="GET", path="/api/v1/caught?limit=-1"),
    Case("limit a million", field="limit", method="GET", path="/api/v1/caught?limit=1000000"),
    Case("limit of words", field="limit", method="GET", path="/api/v1/caught?limit=ten"),
    Case("two limits", field="limit", method="GET", path="/api/v1/caught?limit=1&limit=2"),
    Case("an unknown parameter", field="token", method="GET", path=f"/api/v1/caught?token={PASSWORD}"),
    Case("a query of bytes", field="query", method="GET", path="/api/v1/caught?user_id=%ff"),
    Case("NUL in a query", field="user_id", method="GET", path="/api/v1/caught?user_id=%00"),
]

NOBODY = [
    Case("a wrong key", request(), 401, headers={"Authorization": f"Bearer nrs_{PASSWORD}"}),
    Case("a key in another scheme", request(), 401, headers={"Authorization": f"Basic {PASSWORD}"}),
    Case("an empty key", request(), 401, headers={"Authorization": "Bearer "}),
    Case("an enormous key", request(), 401, headers={"Authorization": "Bearer " + "x" * 8_000}),
    Case("a key of bytes", request(), 401, headers={"Authorization": "Bearer \xff\xfe"}),
]

TEXTS: dict[tuple[str, str], tuple[dict[str, Any], tuple[str, ...]]] = {
    ("POST", NOTIFICATIONS): (
        request(strategy="all"),
        ("user_ids", "template_id", "channels", "data", "category", "digest_key", "idempotency_key", "strategy"),
    ),
    ("PUT", USER): ({}, ("email", "phone", "name", "locale", "timezone", "attributes")),
    ("POST", f"{USER}/devices"): (
        {"platform": "ios", "device_token": TOKEN},
        ("platform", "device_token", "app_version"),
    ),
    ("POST", TEMPLATE): (
        {"channel": "in_app", "locale": "ja", "body": "x"},
        ("channel", "locale", "body", "variant", "subject", "title", "metadata"),
    ),
    ("POST", f"{TEMPLATE}/rollback"): (
        {"channel": "in_app", "locale": "ja", "version": 1},
        ("channel", "locale", "variant"),
    ),
    ("PUT", f"{USER}/notification-preferences"): ({}, ("locale", "timezone", "categories", "channels")),
    ("POST", "/api/v1/pauses"): ({"kind": "channel", "name": "in_app"}, ("kind", "name")),
    ("POST", "/api/v1/dead-letters/discard"): ({}, ("channel", "code", "category", "user_id", "batch_id")),
}
"""Every text of every body, to be given a control character."""

LISTS = {"user_ids", "channels"}
OBJECTS = {"data", "attributes", "metadata"}
SWITCHES = {"categories", "channels"}


def spoilt() -> Iterator[Case]:
    for (method, path), (body, names) in TEXTS.items():
        for name in names:
            for code in (0x00, 0x01, 0x1F, 0x7F, 0x85):
                value: Any = f"a{chr(code)}b"
                if name in OBJECTS:
                    value = {"a": value}
                elif path.endswith("preferences") and name in SWITCHES:
                    value = {value: True}
                elif name in LISTS and path == NOTIFICATIONS:
                    value = [value]
                yield Case(
                    f"{code:#04x} in {name} of {path}", body | {name: value}, field=name, method=method, path=path
                )
