"""What the routes ask of the desk and how they show what comes back (N3.1, N3.2, N4.3, N6.3, N8.3, N11.1)."""

from typing import Any

import msgspec
import pytest
from tests.unit.api_stub import BATCH, NOON, Client, StubDesk

from noroshi.domain.addressing import Usage
from noroshi.domain.ids import show
from noroshi.domain.instants import Instant, iso
from noroshi.domain.people import FrequencyLimit, Preferences, QuietHours
from noroshi.domain.reasons import HoldReason, Reason
from noroshi.domain.records import StatusCounts
from noroshi.domain.states import Status
from noroshi.entrypoints.api.app import build_app
from noroshi.entrypoints.api.paging import IdBytes, RowNumber, place_in, seal
from noroshi.entrypoints.api.sentences import WHY_LATER, WHY_NOT

SHOWN = show(BATCH)
PREFERENCES = "/api/v1/users/hanako/notification-preferences"
TEMPLATE: dict[str, Any] = {"channel": "email", "locale": "ja", "body": "{{ name }}\n様"}


class Desk:
    """A desk with a client at it."""

    def __init__(self) -> None:
        self.desk = StubDesk()
        self.call = Client(build_app(self.desk)).call


@pytest.fixture
def at() -> Desk:
    return Desk()


async def everything(at: Desk, target: str, limit: int) -> list[Any]:
    items: list[Any] = []
    cursor = ""
    for _ in range(20):
        page = (await at.call("GET", f"{target}?limit={limit}{cursor}")).json
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = f"&cursor={page['next_cursor']}"
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("target", "key"),
    [
        (f"/api/v1/notifications/{SHOWN}", "notification_id"),
        (f"/api/v1/notifications/{SHOWN}/rejections", "user_id"),
        ("/api/v1/users/hanako/notifications", "notification_id"),
        ("/api/v1/users/hanako/devices", "token_id"),
        ("/api/v1/templates/welcome", "version"),
    ],
)
async def test_pages_together_hold_every_item_once(at: Desk, target: str, key: str, limit: int) -> None:
    for number in range(5):
        await at.call("POST", "/api/v1/users/hanako/devices", {"platform": "ios", "device_token": str(number)})
        await at.call("POST", "/api/v1/templates/welcome", TEMPLATE)
    seen = [item[key] for item in await everything(at, target, limit)]
    assert len(seen) == len(set(seen)) == 5


@pytest.mark.parametrize("cursor", ["AQ=", "AQ", "!", "gKw", seal("text"), seal(-1), seal(2**63), seal(7) + "AA"])
async def test_a_cursor_that_the_list_did_not_give_is_422(at: Desk, cursor: str) -> None:
    reply = await at.call("GET", f"/api/v1/notifications/{SHOWN}?cursor={cursor}")
    assert (reply.status, reply.json["field"]) == (422, "cursor")


def test_a_cursor_gives_back_its_place() -> None:
    assert place_in(seal(7), RowNumber) == 7
    assert place_in(seal((1, bytes(BATCH))), tuple[RowNumber, IdBytes]) == (1, BATCH)
    assert place_in(None, RowNumber) is None


async def test_a_batch_shows_each_notification_with_the_trail_that_explains_it(at: Desk) -> None:
    batch = (await at.call("GET", f"/api/v1/notifications/{SHOWN}")).json
    assert (batch["batch_id"], batch["status"], batch["undecided"]) == (SHOWN, "processing", 1)
    assert batch["items"][0]["status"] == "SUPPRESSED"
    assert batch["items"][0]["trail"] == [
        {"at": iso(NOON), "kind": "suppressed", "detail": {"code": "duplicate"}, "sentence": WHY_NOT["duplicate"]}
    ]


def test_every_reason_has_a_sentence() -> None:
    assert set(WHY_NOT) == set(Reason)
    assert set(WHY_LATER) == set(HoldReason)


async def test_the_five_sums_add_up_to_the_total(at: Desk) -> None:  # N4.3
    status = (await at.call("GET", f"/api/v1/notifications/{SHOWN}/status")).json
    assert status == {
        "batch_id": SHOWN,
        "total": 6,
        "delivered": 2,
        "failed": 1,
        "pending": 2,
        "suppressed": 1,
        "cancelled": 0,
        "undecided": 2,
        "delivery_rate": pytest.approx(2 / 6),
        "statuses": {"SENT": 2, "DEAD_LETTERED": 1, "SUPPRESSED": 1},
    }


async def test_every_status_is_in_exactly_one_sum(at: Desk) -> None:  # N4.3
    at.desk.batches.status_counts = StatusCounts(
        {("email", status): 1 for status in Status}, undecided_recipients=0, channels=("email",), is_cancelled=False
    )
    at.desk.reporting_channels = frozenset({"email"})
    status = (await at.call("GET", f"/api/v1/notifications/{SHOWN}/status")).json
    assert status["total"] == len(Status)
    assert (status["delivered"], status["failed"], status["suppressed"], status["cancelled"]) == (4, 2, 1, 1)


async def test_what_a_cancelled_batch_left_undecided_is_cancelled(at: Desk) -> None:  # N4.3
    at.desk.batches.status_counts = StatusCounts({}, undecided_recipients=3, channels=("a", "b"), is_cancelled=True)
    status = (await at.call("GET", f"/api/v1/notifications/{SHOWN}/status")).json
    assert (status["total"], status["cancelled"], status["pending"]) == (6, 6, 0)


async def test_a_batch_without_notifications_has_the_rate_zero(at: Desk) -> None:  # N4.3
    at.desk.batches.status_counts = StatusCounts({}, undecided_recipients=0, channels=("a",), is_cancelled=False)
    assert (await at.call("GET", f"/api/v1/notifications/{SHOWN}/status")).json["delivery_rate"] == 0


@pytest.mark.parametrize("rest", ["", "/status", "/rejections", "/cancel"])
async def test_an_unknown_batch_is_404(at: Desk, rest: str) -> None:  # N4.3
    method = "POST" if rest == "/cancel" else "GET"
    other = SHOWN.replace("0007", "0008")
    assert (await at.call(method, f"/api/v1/notifications/{other}{rest}")).status == 404


async def test_cancelling_says_how_many_were_withdrawn(at: Desk) -> None:
    reply = await at.call("POST", f"/api/v1/notifications/{SHOWN}/cancel")
    assert (reply.status, reply.json) == (200, {"batch_id": SHOWN, "cancelled": 3})


async def test_the_header_key_reaches_the_desk(at: Desk) -> None:  # N4.2
    body = {"user_ids": ["hanako"], "template_id": "welcome"}
    await at.call("POST", "/api/v1/notifications", body, Idempotency_Key="order 7")
    caller, _, key = at.desk.accepted[0]
    assert (caller.name, key) == ("shop", "order 7")


async def test_a_person_is_stored_as_given_and_shown(at: Desk) -> None:
    body = {
        "email": "Taro@EXAMPLE.com",
        "phone": "+819012345678",
        "name": "太郎",
        "locale": "ja-JP",
        "timezone": "Asia/Tokyo",
        "attributes": {"plan": "gold", "tags": [1, None]},
    }
    assert (await at.call("PUT", "/api/v1/users/taro", body)).status == 200
    shown = (await at.call("GET", "/api/v1/users/taro")).json
    assert {name: shown[name] for name in body} == body | {"email": "Taro@example.com"}
    assert (await at.call("DELETE", "/api/v1/users/taro")).status == 204
    assert (await at.call("GET", "/api/v1/users/taro")).status == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "nope"),
        ("email", "a@b@example.com"),
        ("email", "a b@example.com"),
        ("phone", "09012345678"),
        ("phone", "+8190"),
        ("phone", "+999123456789"),
        ("locale", "japanese please"),
        ("locale", "ja_JP"),
        ("timezone", "Mars/Phobos"),
        ("timezone", "../../etc/passwd"),
        ("attributes", {"a": "x" * 17_000}),
        ("attributes", []),
        ("name", ""),
        ("name", "a\nb"),
    ],
)
async def test_a_wrong_contact_point_is_named_and_not_repeated(at: Desk, field: str, value: Any) -> None:
    reply = await at.call("PUT", "/api/v1/users/taro", {field: value})
    assert (reply.status, reply.json["field"]) == (422, field)
    assert not value or str(value).encode() not in reply.body
    assert "taro" not in at.desk.people.users


async def test_who_said_nothing_has_the_defaults(at: Desk) -> None:  # N3.1
    shown = (await at.call("GET", PREFERENCES)).json
    assert set(shown["channels"].values()) == {True}
    on = {name: shown["categories"][name] for name in ("marketing", "transaction", "social", "security")}
    assert on == {"marketing": False, "transaction": True, "social": True, "security": True}
    assert shown["quiet_hours"] == {"enabled": False, "start": "23:00", "end": "07:00", "timezone": None}


async def test_preferences_are_replaced_and_what_is_left_out_takes_its_default(at: Desk) -> None:  # N3.2
    at.desk.people.wishes["hanako"] = Preferences(channels={"push": False}, categories={"marketing": True})
    body = {
        "channels": {"sms": False},
        "categories": {"social": False, "newsletter": False},
        "quiet_hours": {"enabled": True, "timezone": "Europe/Berlin"},
        "category_channels": {"general": {"email": False}},
        "frequency_limit": {"email": {"per_hour": 1, "per_day": 2}},
    }
    reply = await at.call("PUT", PREFERENCES, body)
    assert reply.status == 200
    assert at.desk.people.wishes["hanako"] == Preferences(
        channels={"sms": False},
        categories={"social": False, "newsletter": False},
        quiet_hours=QuietHours(enabled=True, timezone="Europe/Berlin"),
        category_channels={"general": {"email": False}},
        frequency_limit={"email": FrequencyLimit(1, 2)},
    )
    shown = reply.json
    assert shown["channels"]["push"]
    assert not shown["channels"]["sms"]
    off = {name for name, is_on in shown["categories"].items() if not is_on}
    assert off == {"marketing", "social", "like", "follow", "comment", "mention", "newsletter"}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"categories": {"security": False}}, "required_category", "categories.security"),
        ({"categories": {"one_time_code": False}}, "required_category", "categories.one_time_code"),
        ({"channels": {"pigeon": True}}, "bad_field", "channels.pigeon"),
        ({"frequency_limit": {"pigeon": {"per_hour": 1, "per_day": 1}}}, "bad_field", "frequency_limit.pigeon"),
        ({"frequency_limit": {"email": {"per_hour": 0, "per_day": 1}}}, "bad_field", "frequency_limit.*.per_hour"),
        ({"category_channels": {"general": {"fax": True}}}, "bad_field", "category_channels.general.fax"),
        ({"quiet_hours": {"start": "24:00"}}, "bad_field", "quiet_hours.start"),
        ({"quiet_hours": {"end": "7:00"}}, "bad_field", "quiet_hours.end"),
        ({"quiet_hours": {"end": "07:00\n"}}, "bad_field", "quiet_hours.end"),
        ({"quiet_hours": {"timezone": "Mars"}}, "bad_field", "quiet_hours.timezone"),
        ({"timezone": "Mars"}, "bad_field", "timezone"),
        ({"channels": {"push": 1}}, "bad_field", "channels.*"),
    ],
)
async def test_a_wrong_wish_is_named(at: Desk, body: Any, code: str, field: str) -> None:  # N3.1
    reply = await at.call("PUT", PREFERENCES, body)
    assert (reply.status, reply.json["code"], reply.json["field"]) == (422, code, field)
    assert at.desk.people.wishes == {}


async def test_security_cannot_be_turned_off_channel_by_channel(at: Desk) -> None:  # N3.1
    channels = (await at.call("GET", PREFERENCES)).json["channels"]
    all_off = {"category_channels": {"security": dict.fromkeys(channels, False)}}
    assert (await at.call("PUT", PREFERENCES, all_off)).json["code"] == "required_category"
    all_off["category_channels"]["security"]["email"] = True
    assert (await at.call("PUT", PREFERENCES, all_off)).status == 200


async def test_rate_limits_show_what_is_left_and_when_it_frees(at: Desk) -> None:  # N8.3
    at.desk.people.used = {"email": Usage(2, 9, NOON, Instant(NOON - 3_600_000_000))}
    email = (await at.call("GET", "/api/v1/users/hanako/rate-limits")).json["channels"]["email"]
    assert email["hour"] == {"limit": 3, "remaining": 1, "reset": iso(Instant(NOON + 3_600_000_000))}
    assert email["day"] == {"limit": 10, "remaining": 1, "reset": iso(Instant(NOON + 23 * 3_600_000_000))}


async def test_a_persons_own_limit_replaces_the_default(at: Desk) -> None:  # N8.2
    at.desk.people.wishes["hanako"] = Preferences(frequency_limit={"sms": FrequencyLimit(1, 1)})
    at.desk.people.used = {"sms": Usage(3, 3, NOON, NOON)}
    channels = (await at.call("GET", "/api/v1/users/hanako/rate-limits")).json["channels"]
    assert (channels["sms"]["hour"]["limit"], channels["sms"]["hour"]["remaining"]) == (1, 0)
    assert channels["push"]["hour"] == {"limit": 10, "remaining": 10, "reset": None}


@pytest.mark.parametrize("rest", ["", "/notification-preferences", "/rate-limits", "/notifications", "/devices"])
async def test_an_unknown_person_is_404(at: Desk, rest: str) -> None:  # N3.2
    assert (await at.call("GET", f"/api/v1/users/nobody{rest}")).status == 404


async def test_a_template_gets_a_version_and_may_hold_line_breaks(at: Desk) -> None:
    reply = await at.call("POST", "/api/v1/templates/welcome", TEMPLATE)
    version = {"template_id": "welcome", "version": 1, "channel": "email", "locale": "ja", "variant": ""}
    assert (reply.status, reply.json) == (201, version)
    assert at.desk.templates.rows[0].created_by == "shop"
    back = {"channel": "email", "locale": "ja", "version": 1}
    assert (await at.call("POST", "/api/v1/templates/welcome/rollback", back)).json == version
    assert (await at.call("POST", "/api/v1/templates/welcome/rollback", back | {"version": 2})).status == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"channel": "fax"}, "channel"),
        ({"locale": "x"}, "locale"),
        ({"subject": "a\nb"}, "subject"),
        ({"body": "x" * 65_537}, "body"),
        ({"body": "\0"}, "body"),
        ({"metadata": {"html_body": "\0"}}, "metadata.html_body"),
    ],
)
async def test_a_wrong_template_field_is_named(at: Desk, change: dict[str, Any], field: str) -> None:
    reply = await at.call("POST", "/api/v1/templates/welcome", TEMPLATE | change)
    assert (reply.status, reply.json["field"]) == (422, field)
    assert at.desk.templates.rows == []


@pytest.mark.parametrize(
    ("complaint", "field"),
    [("subject: no", "subject"), ("metadata.html_body: no", "metadata.html_body"), ("it: is odd", "body")],
)
async def test_the_renderers_complaint_is_422_with_its_part(at: Desk, complaint: str, field: str) -> None:
    at.desk.renderer.complaint = complaint
    reply = await at.call("POST", "/api/v1/templates/welcome", TEMPLATE)
    assert (reply.status, reply.json["code"], reply.json["field"]) == (422, "bad_template", field)
    assert at.desk.templates.rows == []


async def test_dead_letters_are_replayed_singly(at: Desk) -> None:  # N6.3
    assert (await at.call("POST", "/api/v1/dead-letters/1/replay")).json["replayed"] == 1
    assert at.desk.changes == 1
    assert (await at.call("POST", "/api/v1/dead-letters/2/replay")).json["code"] == "conflict"
    assert (await at.call("POST", "/api/v1/dead-letters/3/replay")).status == 404
    assert at.desk.changes == 1


@pytest.mark.parametrize(("verb", "count"), [("replay", "replayed"), ("discard", "discarded")])
async def test_dead_letters_go_by_filter_until_none_is_left(at: Desk, verb: str, count: str) -> None:  # N6.3
    reply = await at.call("POST", f"/api/v1/dead-letters/{verb}", {"channel": "email"})
    assert (reply.json[count], reply.json["is_complete"], at.desk.dead_letters.left) == (450, True, 0)


@pytest.mark.parametrize("verb", ["replay", "discard"])
async def test_all_dead_letters_are_touched_only_when_that_is_said(at: Desk, verb: str) -> None:  # N6.3
    for body in ({}, {"all": False}, {"channel": None}):
        assert (await at.call("POST", f"/api/v1/dead-letters/{verb}", body)).json["field"] == "all"
    assert (await at.call("POST", f"/api/v1/dead-letters/{verb}", {"batch_id": "x"})).json["field"] == "batch_id"
    assert at.desk.dead_letters.left == 450
    assert (await at.call("POST", f"/api/v1/dead-letters/{verb}", {"all": True})).status == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "everything"}, 201),
        ({"kind": "channel", "name": "email"}, 201),
        ({"kind": "everything", "name": "x"}, 422),
        ({"kind": "channel"}, 422),
        ({"kind": "channel", "name": "pigeon"}, 422),
    ],
)
async def test_a_pause_needs_the_name_its_kind_asks_for(at: Desk, body: Any, status: int) -> None:  # N4.7
    reply = await at.call("POST", "/api/v1/pauses", body)
    assert reply.status == status
    assert at.desk.changes == (status == 201)
    assert status == 201 or reply.json["field"] == "name"


async def test_removing_a_pause_wakes_dispatch(at: Desk) -> None:  # N4.7
    assert (await at.call("DELETE", "/api/v1/pauses/1")).status == 204
    assert (await at.call("DELETE", "/api/v1/pauses/2")).status == 404
    assert at.desk.changes == 1


async def test_the_catcher_can_be_told_to_fail_only_where_there_is_one(at: Desk) -> None:
    how = {"fault": "slow", "channel": "email", "count": 5, "seconds": 2.0, "retry_after": None}
    reply = await at.call("PUT", "/api/v1/caught/misbehaviour", how)
    assert (reply.status, reply.json) == (200, how)
    assert (await at.call("DELETE", "/api/v1/caught/misbehaviour")).status == 204
    at.desk.has_catcher = False
    assert (await at.call("PUT", "/api/v1/caught/misbehaviour", how)).status == 404
    assert (await at.call("DELETE", "/api/v1/caught/misbehaviour")).status == 404


async def test_a_scheduled_batch_says_so_until_it_is_due(at: Desk) -> None:  # N5.5
    view = at.desk.batches.view
    head = msgspec.structs.replace(view.head, due_at=Instant(NOON + 60_000_000))
    progress = msgspec.structs.replace(view.progress, is_scheduled=True)
    at.desk.batches.view = msgspec.structs.replace(view, head=head, progress=progress)
    batch = (await at.call("GET", f"/api/v1/notifications/{SHOWN}")).json
    assert (batch["status"], batch["scheduled_at"]) == ("scheduled", iso(head.due_at))
    at.desk.clock.elapsed = 61
    assert (await at.call("GET", f"/api/v1/notifications/{SHOWN}")).json["status"] == "processing"
