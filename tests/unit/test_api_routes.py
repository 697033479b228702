"""The table of routes: scopes, methods, the OpenAPI document and what every answer carries (N4.5)."""

import asyncio
import re
from base64 import b64encode
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.api_stub import BATCH, KEYS, REQUEST, Client, StubDesk

from noroshi.domain.ids import notification_id, show
from noroshi.domain.problems import PROBLEMS, ProblemError
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.api.calls import Row
from noroshi.entrypoints.api.openapi import describe, problem_codes
from noroshi.entrypoints.api.routes import ACCEPT, HEALTH_ROUTES, ROUTES

FINE = {"user_ids": ["hanako"], "template_id": "welcome"}
GUARDED = [row for row in ROUTES if row.scope is not None]
OPEN = [row for row in ROUTES if row.scope is None and row.body is None]

REVIEWED = """
POST send /api/v1/notifications
GET read /api/v1/notifications
GET read /api/v1/notifications/{batch_id}
GET read /api/v1/notifications/{batch_id}/status
GET read /api/v1/notifications/{batch_id}/rejections
GET read /api/v1/notifications/{batch_id}/notifications/{notification_id}
POST send /api/v1/notifications/{batch_id}/cancel
GET read /api/v1/users
PUT send /api/v1/users/{user_id}
GET read /api/v1/users/{user_id}
DELETE send /api/v1/users/{user_id}
POST send /api/v1/users/{user_id}/devices
GET read /api/v1/users/{user_id}/devices
DELETE send /api/v1/users/{user_id}/devices/{token_id}
GET read /api/v1/users/{user_id}/notification-preferences
PUT send /api/v1/users/{user_id}/notification-preferences
GET read /api/v1/users/{user_id}/rate-limits
GET read /api/v1/users/{user_id}/notifications
GET read /api/v1/users/{user_id}/inbox
GET read /api/v1/users/{user_id}/inbox/unread-count
POST send /api/v1/users/{user_id}/inbox/read-all
POST send /api/v1/users/{user_id}/inbox/{entry_id}/read
POST send /api/v1/users/{user_id}/inbox/{entry_id}/archive
POST read /api/v1/users/{user_id}/inbox/tickets
GET read /api/v1/users/{user_id}/inbox/stream
GET read /api/v1/users/{user_id}/inbox/socket
POST send /api/v1/users/{user_id}/tokens
GET read /api/v1/templates
POST admin /api/v1/templates/{template_id}
GET read /api/v1/templates/{template_id}
POST admin /api/v1/templates/{template_id}/rollback
POST read /api/v1/templates/{template_id}/preview
GET read /api/v1/dead-letters
POST admin /api/v1/dead-letters/replay
POST admin /api/v1/dead-letters/discard
GET read /api/v1/dead-letters/{dead_letter_id}
DELETE admin /api/v1/dead-letters/{dead_letter_id}
POST admin /api/v1/dead-letters/{dead_letter_id}/replay
GET read /api/v1/requests
GET read /api/v1/requests/{request_id}
POST admin /api/v1/requests/{request_id}/retry
POST admin /api/v1/pauses
GET read /api/v1/pauses
DELETE admin /api/v1/pauses/{pause_id}
GET read /api/v1/caught
PUT admin /api/v1/caught/misbehaviour
DELETE admin /api/v1/caught/misbehaviour
GET read /api/v1/alerts
GET read /api/v1/caught/{caught_id}
GET read /api/v1/caught/{caught_id}/attachments/{position}
GET read /api/v1/workload
POST admin /api/v1/farms
GET read /api/v1/farms
PUT admin /api/v1/farms/{farm_id}
GET read /api/v1/farms/{farm_id}
PUT send /api/v1/customers/{customer_id}
GET read /api/v1/customers/{customer_id}
POST send /api/v1/reservations
GET read /api/v1/reservations
GET read /api/v1/reservations/{reservation_id}
POST send /reservations/{reservation_id}/cancel
GET read /reservations/{reservation_id}/booked
GET read /dev/notifications/preview
POST admin /notifications/send-pending
POST admin /notifications/send-job/{job_id}
POST None /stripe/webhook
POST None /webhooks/{account}
GET None /healthz
GET None /readyz
GET None /metrics
GET None /inbox.js
GET None /inbox-look.js
GET None /inbox-demo
GET None /inbox-demo.js
GET None /docs/errors
GET None /openapi.json
"""


def target(row: Row) -> str:
    one = show(notification_id(BATCH, 0, 0))
    ids = {
        "batch_id": show(BATCH),
        "notification_id": one,
        "request_id": show(REQUEST),
        "user_id": "hanako",
        "template_id": "welcome",
    }
    numbers = {"token_id": 1, "dead_letter_id": 1, "pause_id": 1, "entry_id": 1, "caught_id": 1, "position": 0}
    ids |= {"account": "line", "customer_id": "hanako"}
    numbers |= {"farm_id": 1, "reservation_id": 237, "job_id": 20}
    return row.path.format(**ids, **numbers)


def test_the_routes_and_their_scopes_are_those_that_were_reviewed() -> None:
    assert [f"{row.method} {row.scope} {row.path}" for row in ROUTES] == REVIEWED.strip().splitlines()


@pytest.mark.parametrize("row", GUARDED, ids=lambda row: row.name)
@pytest.mark.parametrize("scope", KeyScope)
async def test_a_key_passes_only_with_the_rows_scope_or_admin(row: Row, scope: KeyScope) -> None:
    reply = await Client(build_app(StubDesk()), KEYS[scope]).call(row.method, target(row), b"")
    if scope in (row.scope, KeyScope.ADMIN):
        assert reply.status not in (401, 403)
    else:
        assert (reply.status, reply.json["code"]) == (403, "forbidden")
        assert str(row.scope) in reply.json["detail"]


@pytest.mark.parametrize("row", GUARDED, ids=lambda row: row.name)
async def test_without_a_key_every_route_of_the_api_is_401(row: Row) -> None:
    reply = await Client(build_app(StubDesk()), None).call(row.method, target(row), b"")
    assert (reply.status, reply.json["code"]) == (401, "unauthorized")
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("row", OPEN, ids=lambda row: row.name)
async def test_open_routes_need_no_key_and_ignore_queries(row: Row) -> None:
    assert (await Client(build_app(StubDesk()), None).call(row.method, f"{row.path}?probe=1")).status == 200


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
async def test_every_answer_has_a_request_id_and_is_not_sniffed_nor_cached_unless_it_says_so(row: Row) -> None:
    reply = await Client(build_app(StubDesk())).call(row.method, target(row), b"")
    assert reply.headers["x-request-id"]
    assert reply.headers["cache-control"] == dict(row.headers).get(b"cache-control", b"no-store").decode()
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_demonstration_is_there_in_development_only() -> None:
    desk = StubDesk()
    desk.is_dev = False
    for path in ("/inbox-demo", "/inbox-demo.js"):
        assert (await Client(build_app(desk), None).call("GET", path)).status == 404
    assert (await Client(build_app(desk), None).call("GET", "/inbox.js")).status == 200


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/api/v1/notifications", "POST, GET, HEAD"),
        ("/api/v1/users/hanako", "PUT, GET, DELETE, HEAD"),
        ("/healthz", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_405_with_those_allowed(path: str, allow: str) -> None:
    reply = await Client(build_app(StubDesk())).call("PATCH", path)
    assert (reply.status, reply.json["code"], reply.headers["allow"]) == (405, "method_not_allowed", allow)


@pytest.mark.parametrize("path", ["/", "/api/v1", "/api/v1/notifications/", "/api/v2/notifications", "/docs"])
async def test_an_unknown_path_is_404(path: str) -> None:
    reply = await Client(build_app(StubDesk())).call("GET", path)
    assert (reply.status, reply.json["code"]) == (404, "not_found")


async def test_a_problem_says_what_where_and_what_to_do() -> None:
    reply = await Client(build_app(StubDesk())).call("POST", "/api/v1/notifications", FINE | {"priority": 1})
    assert reply.json == {
        "type": "/docs/errors#bad_field",
        "title": PROBLEMS["bad_field"].title,
        "status": 422,
        "detail": reply.json["detail"],
        "code": "bad_field",
        "todo": PROBLEMS["bad_field"].todo,
        "request_id": reply.headers["x-request-id"],
        "field": "priority",
    }


@pytest.mark.parametrize("rows", [ROUTES, HEALTH_ROUTES], ids=["server", "worker"])
async def test_the_link_of_a_problem_leads_to_what_it_means(rows: tuple[Row, ...]) -> None:
    client = Client(build_app(StubDesk(), rows), None)
    link = (await client.call("GET", "/nowhere")).json["type"]
    path, _, anchor = link.partition("#")
    page = await client.call("GET", path)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert anchor == "not_found"
    assert re.findall(r'<section id="(.*?)">', page.body.decode()) == list(PROBLEMS)


async def test_the_page_of_the_errors_runs_nothing_and_allows_only_its_own_style() -> None:
    page = await Client(build_app(StubDesk()), None).call("GET", "/docs/errors")
    [style] = re.findall(r"<style>(.*?)</style>", page.body.decode(), re.DOTALL)
    allowed = f"style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}';"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and allowed in policy and "script" not in policy
    assert "<script" not in page.body.decode()


async def test_a_bug_is_500_logged_by_its_request_id_and_leaks_nothing() -> None:
    desk = StubDesk()
    desk.raises = ValueError("hanako@example.com")
    with capture_logs() as logs:
        reply = await Client(build_app(desk)).call("POST", "/api/v1/notifications", FINE)
    assert (reply.status, reply.json["code"]) == (500, "internal")
    assert logs[0]["request_id"] == reply.headers["x-request-id"]
    assert b"hanako" not in reply.body
    assert "hanako" not in repr(logs)


async def test_an_overloaded_server_says_when_to_come_back() -> None:  # N4.5
    desk = StubDesk()
    desk.raises = ProblemError("overloaded", "Too many wait.", retry_after=timedelta(seconds=1.2))
    reply = await Client(build_app(desk)).call("POST", "/api/v1/notifications", FINE)
    assert (reply.status, reply.headers["retry-after"]) == (503, "2")


async def test_a_client_that_hangs_up_gets_no_answer_and_nothing_is_accepted() -> None:
    desk = StubDesk()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    authorization = b"Bearer " + KEYS[KeyScope.SEND].encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": ACCEPT.path,
        "query_string": b"",
        "headers": [(b"authorization", authorization)],
    }
    await build_app(desk)(scope, receive, send)
    assert (sent, desk.accepted) == ([], [])


async def test_the_application_starts_and_stops_as_asgi_asks() -> None:
    heard = asyncio.Queue[dict[str, Any]]()
    said: list[str] = []
    await heard.put({"type": "lifespan.startup"})
    await heard.put({"type": "lifespan.shutdown"})

    async def send(message: Any) -> None:
        said.append(message["type"])

    await build_app(StubDesk())({"type": "lifespan", "state": {}}, heard.get, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_ready_shows_notes_and_not_ready_shows_what_is_wrong() -> None:
    desk = StubDesk()
    client = Client(build_app(desk), None)
    assert (await client.call("GET", "/readyz")).json["notes"] == ["The catcher stands in for email."]
    desk.problems = ["The disk is full."]
    reply = await client.call("GET", "/readyz")
    assert (reply.status, reply.json["problems"]) == (503, ["The disk is full."])
    assert (await client.call("GET", "/healthz")).status == 200


async def test_metrics_are_text() -> None:
    reply = await Client(build_app(StubDesk()), None).call("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    assert reply.body == b"noroshi_up 1\n"


async def test_the_document_describes_every_row() -> None:
    reply = await Client(build_app(StubDesk()), None).call("GET", "/openapi.json")
    document = reply.json
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(row.method, row.path) for row in ROUTES}
    accept = document["paths"]["/api/v1/notifications"]["post"]
    assert accept["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/NotificationRequest")
    assert {"202", "400", "401", "403", "409", "413", "422", "429", "500", "503"} == set(accept["responses"])


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = describe(ROUTES)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}

    def references(node: Any) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if "$ref" in node else set()
            return own.union(*(references(value) for value in node.values()))
        return set().union(*(references(value) for value in node)) if isinstance(node, list) else set()

    assert references(document) <= known


def test_operation_names_are_unique() -> None:
    assert len({row.name for row in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_every_row_names_only_registered_problems(row: Row) -> None:
    assert set(problem_codes(row)) <= set(PROBLEMS)


@pytest.mark.parametrize("wrong", ["hanako", "U123", "u" + "0" * 32, "U" + "0" * 33, "U" + "g" * 32, "", 7])
async def test_what_is_no_line_user_id_is_refused_by_name(wrong: object) -> None:  # N1.13
    reply = await Client(build_app(StubDesk())).call("PUT", "/api/v1/users/hanako", {"line_user_id": wrong})
    assert (reply.status, reply.json["field"]) == (422, "line_user_id")


async def test_a_webhook_is_passed_on_as_it_came() -> None:
    desk = StubDesk()
    raw = b'{ "events":[],\r\n"a":1,"a":2}\x00'
    reply = await Client(build_app(desk), None).call(
        "POST", "/webhooks/line", parts=[raw[:5], raw[5:]], X_Line_Signature="s="
    )
    assert reply.status == 200
    ((account, headers, heard),) = desk.heard
    assert (account, headers["x-line-signature"], heard) == ("line", "s=", raw)
    unsigned = await Client(build_app(desk), None).call("POST", "/webhooks/line", raw)
    assert (unsigned.status, unsigned.json["code"]) == (401, "bad_signature")


async def test_a_webhook_has_a_largest_size() -> None:
    reply = await Client(build_app(StubDesk()), None).call("POST", "/webhooks/line", b"x" * 5_000_001)
    assert (reply.status, reply.json["code"]) == (413, "too_large")
