"""The client: what it understands is what the API says, and whatever goes wrong is one error that tells what to do."""

import asyncio
import contextlib
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.api_stub import BATCH, KEYS, REQUEST, StubDesk

from noroshi.client import Noroshi, NoroshiError, answers
from noroshi.client.calls import each
from noroshi.client.following import follow
from noroshi.client.inbox import InboxCaller
from noroshi.client.transports import AsgiTransport, Call, Reply
from noroshi.domain.ids import notification_id, show
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api import (
    alerts,
    batches,
    caught,
    dead_letters,
    health,
    inbox,
    notifications,
    passes,
    pauses,
    preferences,
    previews,
    requests,
    templates,
    users,
    wire,
    workload,
)
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.api.routes import ROUTES
from noroshi.settings import read_settings

SAID_BY: dict[type, type] = {
    answers.Alert: alerts.AlertItem,
    answers.Attachment: wire.AttachmentItem,
    answers.Batch: notifications.BatchAnswer,
    answers.BatchEntry: batches.BatchItem,
    answers.BatchStatus: notifications.StatusAnswer,
    answers.Cancelled: notifications.CancelAnswer,
    answers.Caught: caught.CaughtItem,
    answers.DeadLetter: dead_letters.DeadLetterItem,
    answers.Device: users.DeviceAnswer,
    answers.Discarded: dead_letters.DiscardAnswer,
    answers.Enqueued: requests.RequestItem,
    answers.InboxEntry: inbox.EntryItem,
    answers.InboxState: inbox.InboxState,
    answers.Limit: preferences.LimitBody,
    answers.Marked: inbox.MarkedAnswer,
    answers.Notification: wire.NotificationItem,
    answers.Pause: pauses.PauseItem,
    answers.Preferences: preferences.PreferencesAnswer,
    answers.Preview: previews.PreviewAnswer,
    answers.QuietHours: preferences.QuietHoursBody,
    answers.ReadAll: inbox.ReadAllAnswer,
    answers.Readiness: health.ReadyAnswer,
    answers.Rejection: notifications.RejectionText,
    answers.Replayed: dead_letters.ReplayAnswer,
    answers.Sums: batches.SumsItem,
    answers.TemplateEntry: templates.TemplateEntry,
    answers.TemplateVersion: templates.TemplateItem,
    answers.Ticket: passes.TicketAnswer,
    answers.Token: passes.TokenAnswer,
    answers.TrailEntry: wire.TrailEntry,
    answers.User: users.UserAnswer,
    answers.UserEntry: users.UserItem,
    answers.Version: templates.VersionAnswer,
    answers.Lane: workload.LaneItem,
    answers.RateLimits: preferences.RateLimitsAnswer,
    answers.Window: preferences.WindowAnswer,
    answers.Windows: preferences.ChannelWindows,
    answers.Workload: workload.WorkloadAnswer,
}


FOR_A_PAGE = "a person's page holds it open; the web component does"
FOR_BROWSERS = "a browser loads it"
FOR_MONITORS = "a monitor asks for it"
FOR_PROVIDERS = "a provider calls it"
FOR_THE_SHOP = "reservations are an application of their own, with pages: docs/reservations.md"

WITHOUT_A_METHOD = {
    "open_stream": FOR_A_PAGE,
    "open_socket": FOR_A_PAGE,
    "add_farm": FOR_THE_SHOP,
    "list_farms": FOR_THE_SHOP,
    "replace_farm": FOR_THE_SHOP,
    "show_farm": FOR_THE_SHOP,
    "put_customer": FOR_THE_SHOP,
    "show_customer": FOR_THE_SHOP,
    "add_reservation": FOR_THE_SHOP,
    "list_reservations": FOR_THE_SHOP,
    "show_reservation": FOR_THE_SHOP,
    "cancel_reservation": FOR_THE_SHOP,
    "show_booked": FOR_THE_SHOP,
    "preview_notifications": FOR_THE_SHOP,
    "send_pending": FOR_THE_SHOP,
    "send_job": FOR_THE_SHOP,
    "take_payment": FOR_PROVIDERS,
    "hear_webhook": FOR_PROVIDERS,
    "show_health": FOR_MONITORS,
    "show_metrics": FOR_MONITORS,
    "show_inbox_script": FOR_BROWSERS,
    "show_inbox_look": FOR_BROWSERS,
    "show_inbox_demo": FOR_BROWSERS,
    "show_inbox_demo_script": FOR_BROWSERS,
    "show_errors": FOR_BROWSERS,
    "show_openapi": "other tools read it",
}

ARGUMENTS: dict[str, Any] = {
    "user_ids": "hanako",
    "user_id": "hanako",
    "template_id": "welcome",
    "batch_id": show(BATCH),
    "notification_id": show(notification_id(BATCH, 0, 0)),
    "request_id": show(REQUEST),
    "entry_id": 1,
    "token_id": 1,
    "dead_letter_id": 1,
    "pause_id": 1,
    "caught_id": 1,
    "position": 0,
    "platform": "ios",
    "device_token": "a-token",
    "wishes": {},
    "channel": "email",
    "locale": "en",
    "body": "Hello",
    "version": 1,
    "kind": "everything",
    "fault": "error",
}


class Recording(AsgiTransport):
    """Carries calls to the API and writes down which routes they were for."""

    def __init__(self) -> None:
        super().__init__(build_app(StubDesk()), KEYS[KeyScope.ADMIN])
        self.called: set[str] = set()

    async def carry(self, call: Call) -> Reply:
        self.called.add(route_of(call))
        return await super().carry(call)


def route_of(call: Call) -> str:
    """The one with the fewest variables wins, as in the API."""
    fitting = [
        row
        for row in ROUTES
        if row.method == call.method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", row.path), call.path)
    ]
    assert fitting, f"no route takes {call.method} {call.path}"
    return min(fitting, key=lambda row: row.path.count("{")).name


async def call_every_method(noroshi: Noroshi) -> None:
    methods = [*vars(InboxCaller).items(), *vars(Noroshi).items()]
    for name, method in methods:
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            wanted = inspect.signature(method).parameters.values()
            needed = [one.name for one in wanted if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
            with contextlib.suppress(NoroshiError):  # what matters is where it went, and that its answer was read
                await getattr(noroshi, name)(**{one: ARGUMENTS[one] for one in needed if one != "self"})


def structs() -> list[type]:
    return [
        one
        for one in vars(answers).values()
        if isinstance(one, type) and one.__module__ == answers.__name__ and one is not answers.Page
    ]


@pytest.fixture
async def noroshi() -> AsyncIterator[Noroshi]:
    async with Noroshi.inside(build_app(StubDesk()), KEYS[KeyScope.ADMIN]) as opened:
        yield opened


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_an_answer_has_the_fields_that_the_api_says(struct: type) -> None:
    theirs = {field.encode_name for field in msgspec.structs.fields(SAID_BY[struct])}
    assert {field.name for field in msgspec.structs.fields(struct)} == theirs


async def test_every_route_has_a_method_or_a_reason_to_have_none() -> None:
    transport = Recording()
    await call_every_method(Noroshi._over(transport))
    assert transport.called.isdisjoint(WITHOUT_A_METHOD)
    assert transport.called | WITHOUT_A_METHOD.keys() == {row.name for row in ROUTES}


async def test_an_inbox_is_read_through_the_client(noroshi: Noroshi) -> None:  # N1.6
    [entry] = (await noroshi.inbox("hanako", is_unread=True)).items
    assert entry.content.body == "Hello"
    assert (await noroshi.unread_count("hanako")).unread == 1
    assert (await noroshi.read("hanako", entry.entry_id)).unread == 0
    assert (await noroshi.archive("hanako", entry.entry_id)).entry_id == 1
    assert (await noroshi.read_all("hanako", up_to=1)).read == 1
    assert (await noroshi.token("hanako", expires_in=timedelta(minutes=5))).user_id == "hanako"
    assert (await noroshi.ticket("hanako")).ticket


async def test_a_device_is_forgotten_through_the_client(noroshi: Noroshi) -> None:
    device = await noroshi.register_device("hanako", "ios", "a-token")
    await noroshi.remove_device("hanako", device.token_id)
    with pytest.raises(NoroshiError, match="device"):
        await noroshi.remove_device("hanako", 99)


async def test_a_dead_request_is_taken_in_again_through_the_client(noroshi: Noroshi) -> None:
    [dead] = (await noroshi.requests(state="dead")).items
    assert (await noroshi.request(dead.request_id)).code == "unknown_template"
    assert (await noroshi.retry_request(dead.request_id)).state == "waiting"


async def test_what_the_api_refuses_is_one_error_with_code_field_and_what_to_do(noroshi: Noroshi) -> None:
    with pytest.raises(NoroshiError) as refused:
        await noroshi.put_user("hanako", email="nonsense")
    error = refused.value
    assert (error.code, error.field, error.status) == ("bad_field", "email", 422)
    assert error.todo
    assert "nonsense" not in str(error)


async def test_an_overloaded_server_says_how_long_to_wait() -> None:
    desk = StubDesk()
    desk.raises = ProblemError("overloaded", "Too many wait.", retry_after=timedelta(seconds=3))
    with pytest.raises(NoroshiError) as refused:
        await Noroshi.inside(build_app(desk), KEYS[KeyScope.ADMIN]).send("hanako", "welcome")
    assert (refused.value.status, refused.value.retry_after) == (503, 3)


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[]"])
async def test_an_answer_that_is_not_ours_is_said_to_be_strange(body: bytes) -> None:
    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 502, "headers": []})
        await send({"type": "http.response.body", "body": body})

    with pytest.raises(NoroshiError) as refused:
        await Noroshi.inside(proxy, "key").users()
    assert (refused.value.code, refused.value.status) == ("strange_answer", 502)


async def test_a_request_repeated_with_its_key_gives_the_first_answer() -> None:  # N4.2
    desk = StubDesk()
    first = await Noroshi.inside(build_app(desk), KEYS[KeyScope.ADMIN]).send("hanako", "welcome")
    extra = {"batch_id": first.batch_id, "first": msgspec.to_builtins(first)}
    desk.raises = ProblemError("idempotency_replay", "Accepted before.", extra=extra)
    assert await Noroshi.inside(build_app(desk), KEYS[KeyScope.ADMIN]).send("hanako", "welcome") == first
    desk.raises = ProblemError("idempotency_replay", "Accepted before.", extra={"first": None})
    with pytest.raises(NoroshiError):
        await Noroshi.inside(build_app(desk), KEYS[KeyScope.ADMIN]).send("hanako", "welcome")


@pytest.mark.parametrize("user_id", ["a/b", "a b?c=d#e", "花子", "100%", "..", "a%2Fb"])
async def test_an_id_may_hold_anything_that_an_address_gives_a_meaning(noroshi: Noroshi, user_id: str) -> None:
    assert (await noroshi.put_user(user_id, name="Someone")).user_id == user_id
    assert (await noroshi.user(user_id)).name == "Someone"


async def test_times_are_times(noroshi: Noroshi) -> None:
    one = await noroshi.notification(show(BATCH), show(notification_id(BATCH, 0, 0)))
    assert one.decided_at.utcoffset() == timedelta(0)
    assert one.trail[0].sentence


async def test_each_goes_through_every_page(noroshi: Noroshi) -> None:
    found = [one async for one in each(lambda cursor: noroshi.history("hanako", limit=2, cursor=cursor))]
    assert len(found) == 5


class Ticking:
    """A clock on which only sleeping takes time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> Any:
        raise NotImplementedError

    async def sleep(self, span: timedelta) -> None:
        self.seconds += span.total_seconds()


def standing(**statuses: int) -> answers.BatchStatus:
    return answers.BatchStatus("b", 1, 0, 0, 1, 0, 0, statuses.pop("undecided", 0), 0.0, statuses)


@pytest.mark.parametrize(
    ("looks", "seen"),
    [
        ([standing(SENT=1)], 1),
        ([standing(QUEUED=1), standing(SENDING=1), standing(SENT=1)], 3),
        ([standing(undecided=1), standing(SCHEDULED=1)], 2),
    ],
    ids=["done", "on its way", "held"],
)
async def test_a_batch_is_followed_until_nothing_of_it_moves(looks: list[answers.BatchStatus], seen: int) -> None:
    left = iter(looks)

    async def look() -> answers.BatchStatus:
        return next(left)

    followed = [one async for one in follow(look, timedelta(seconds=10), Ticking())]
    assert len(followed) == seen
    assert followed[-1] == looks[seen - 1]


async def test_a_batch_that_goes_on_moving_is_followed_until_the_time_is_over() -> None:
    async def look() -> answers.BatchStatus:
        return standing(RETRYING=1)

    clock = Ticking()
    followed = [one async for one in follow(look, timedelta(seconds=10), clock)]
    assert clock.seconds == pytest.approx(10)
    assert 10 < len(followed) < 30  # often at first, then once a second


async def test_whoever_is_not_started_is_told_to_start(tmp_path: Path) -> None:
    embedded = Noroshi(read_settings({}, {"data": str(tmp_path)}))
    for made in (Noroshi.connect("http://127.0.0.1:1", "key"), embedded):
        with pytest.raises(NoroshiError, match="start"):
            await made.users()


async def test_nobody_at_the_address_is_said_without_the_key() -> None:
    async with Noroshi.connect("http://127.0.0.1:1", "nrs_secret") as noroshi:
        with pytest.raises(NoroshiError) as failed:
            await noroshi.users()
    assert (failed.value.code, failed.value.status) == ("unreachable", 0)
    assert "nrs_secret" not in repr(failed.value) + str(failed.value)


def test_an_address_without_http_is_refused() -> None:
    with pytest.raises(NoroshiError, match="http://"):
        Noroshi.connect("127.0.0.1:8000", "key")


def test_whoever_only_connects_loads_no_server_and_who_is_inside_no_http_client() -> None:
    heavy = ("apsw", "asyncpg", "cryptography", "starlette", "uvicorn", "rich", "typer", "httptools")
    script = f"import sys; from noroshi.client import Noroshi; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


class Server:
    """Answers each request on a connection with the next of its answers; None hangs up instead."""

    def __init__(self, *answers: bytes | None) -> None:
        self._answers = list(answers)
        self.heard: list[bytes] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while self._answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"Content-Length: (\d+)", head)
                self.heard.append(head + await reader.readexactly(int(length[1]) if length else 0))
                said = self._answers.pop(0)
                if said is None:
                    break
                writer.write(said)
                await writer.drain()
                if b"Connection: close" in said:
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


EMPTY = b'{"items": [], "next_cursor": null}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(EMPTY), EMPTY)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(EMPTY), EMPTY)
LAST = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)


async def test_a_connection_is_kept_for_the_next_call_and_given_up_when_the_server_says_so() -> None:
    async with Server(OK, CHUNKED, LAST, OK, None) as server, Noroshi.connect(server.url, "nrs_key") as noroshi:
        for _ in range(4):
            assert (await noroshi.users()).items == []
    assert server.connections == 2
    assert b"Authorization: Bearer nrs_key\r\n" in server.heard[0]


async def test_calls_at_once_have_a_connection_each() -> None:
    async with Server(*[OK] * 10, None) as server, Noroshi.connect(server.url, "nrs_key") as noroshi:
        await asyncio.gather(*(noroshi.users() for _ in range(10)))
    assert server.connections == 10


@pytest.mark.parametrize(
    "said", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{", b"what?"]
)
async def test_an_answer_that_breaks_off_is_unreachable(said: bytes | None) -> None:
    async with Server(said, None) as server, Noroshi.connect(server.url, "nrs_key") as noroshi:
        with pytest.raises(NoroshiError) as failed:
            await noroshi.users()
    assert failed.value.code == "unreachable"


async def test_a_server_that_is_silent_is_given_up_in_time() -> None:
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"
    async with (
        Server(begun, None) as server,
        Noroshi.connect(server.url, "nrs_key", timeout=timedelta(milliseconds=200)) as noroshi,
    ):
        with pytest.raises(NoroshiError, match="too long"):
            await noroshi.users()


async def test_a_path_before_the_api_is_kept() -> None:
    async with Server(OK, None) as server, Noroshi.connect(f"{server.url}/noroshi/", "nrs_key") as noroshi:
        await noroshi.users(prefix="a b")
    assert server.heard[0].startswith(b"GET /noroshi/api/v1/users?prefix=a+b HTTP/1.1\r\n")


@pytest.mark.parametrize("key", ["nrs_a\r\nX-Evil: 1", "nrs_ü"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(NoroshiError) as refused:
        Noroshi.connect("http://127.0.0.1", key)
    assert key not in str(refused.value)
