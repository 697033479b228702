"""Reservations, from the payment to the pickup, in virtual time (L)."""

from datetime import datetime, timedelta

import pytest

from noroshi.domain.ids import TenantId
from noroshi.domain.line import LineAnswer
from noroshi.domain.records import KeyScope
from noroshi.storage import notification_jobs
from tests.reservation_cast import JST, LINE_USER_ID
from tests.stand_ins.line_in_memory import MONTHLY_LIMIT
from tests.stories.client import Client
from tests.stories.conftest import Build
from tests.stories.shop import CANCELLED, COMPLETED, CONFIRMED, REMINDED, SECRET, SUCCEEDED, Shop
from tests.stories.world import World

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@pytest.fixture
def world(build: Build) -> World:
    """Begins on Monday, 2 March 2026, 18:00 in Japan."""
    return build(stripe_webhook_secret=SECRET)


@pytest.fixture
def shop(world: World) -> Shop:
    return Shop(world)


def jst(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=JST)


# the whole way


def test_from_the_reservation_to_the_reminder_to_the_cancellation(world: World, shop: Shop) -> None:
    # L4-L9
    number = shop.reserve(jst("03-08 10:00"))
    assert shop.states(number) == {"CONFIRMATION": "DASH", "REMINDER": "DASH", "CANCEL_COMPLETED": "DASH"}
    assert shop.pay(number) == "confirmed"
    assert shop.texts() == [CONFIRMED]
    assert shop.states(number) == {"CONFIRMATION": "SENT", "REMINDER": "PENDING", "CANCEL_COMPLETED": "DASH"}
    world.advance_to(jst("03-06 09:59"))
    assert shop.send_pending()["summary"]["total_candidates"] == 0
    world.advance(MINUTE)
    assert shop.send_pending()["summary"]["sent"] == 1
    assert shop.texts() == [CONFIRMED, REMINDED]
    assert shop.times() == [jst("03-02 18:00"), jst("03-06 10:00")]
    assert shop.cancel(number)["result"] == "cancelled"
    assert shop.texts() == [CONFIRMED, REMINDED, CANCELLED]
    assert shop.states(number) == dict.fromkeys(("CONFIRMATION", "REMINDER", "CANCEL_COMPLETED"), "SENT")
    world.advance(timedelta(days=7))
    assert shop.send_pending()["summary"]["processed"] == 0
    assert {one.to for one in shop.line.taken} == {LINE_USER_ID}


def test_a_cancelled_reservation_is_never_reminded_of(world: World, shop: Shop) -> None:
    # L7, S3 C
    number = shop.reserve(timedelta(days=4))
    shop.pay(number)
    shop.cancel(number)
    world.advance(timedelta(days=5))
    shop.send_pending()
    assert shop.texts() == [CONFIRMED, CANCELLED]
    assert shop.states(number)["REMINDER"] == "DASH"


def test_the_policy_of_time_slots(world: World) -> None:
    # L6: the farm's own policy
    shop = Shop(world, reminder_policy="time_slots")
    number = shop.reserve(jst("03-06 19:00"))
    shop.pay(number)
    assert shop.job(number, "REMINDER")["scheduled_at"] == "2026-03-06T03:00:00.000000+00:00"
    world.advance_to(jst("03-06 12:00"))
    shop.send_pending()
    assert shop.texts() == [CONFIRMED, REMINDED]


def test_what_would_have_been_a_reminder_after_the_pickup_fails_as_pickup_over(world: World, shop: Shop) -> None:
    # L8: cron stood still for days
    number = shop.reserve(timedelta(days=3))
    shop.pay(number)
    world.advance(timedelta(days=3, hours=1, seconds=1))
    assert shop.send_pending()["summary"]["failed"] == 1
    assert shop.job(number, "REMINDER")["last_error"].startswith("pickup over")
    assert shop.texts() == [CONFIRMED]


# the webhook


@pytest.mark.parametrize("order", [(COMPLETED, SUCCEEDED), (SUCCEEDED, COMPLETED)])
def test_both_events_in_either_order_are_one_message(shop: Shop, order: tuple[str, str]) -> None:
    # L5
    number = shop.reserve()
    assert [shop.pay(number, kind) for kind in order] == ["confirmed", "repeated"]
    assert shop.texts() == [CONFIRMED]


def test_a_hundred_events_at_once_are_one_message_of_each_kind(world: World, shop: Shop) -> None:
    # L5
    number = shop.reserve()
    bodies = [shop.event(number, kind) for kind in (COMPLETED, SUCCEEDED) * 50]

    async def race() -> list[str]:
        calls = [shop.anyone.call("POST", "/stripe/webhook", body, shop.signed(body)) for body in bodies]
        tasks = [world.loop.create_task(call) for call in calls]
        answers = [await task for task in tasks]
        assert {answer.status for answer in answers} == {200}
        return [answer["result"] for answer in answers]

    results = world.run(race())
    assert sorted(results) == ["confirmed", *["repeated"] * 99]
    assert shop.texts() == [CONFIRMED]
    assert [row[0] for row in world.rows("SELECT kind FROM notification_jobs ORDER BY job_id")] == [
        "CONFIRMATION",
        "REMINDER",
    ]
    world.advance(DAY)
    shop.send_pending()
    shop.send_pending()
    assert shop.texts() == [CONFIRMED, REMINDED]


@pytest.mark.parametrize("headers", [{}, {"Stripe-Signature": "t=1,v1=00"}])
def test_a_forged_event_is_400_and_changes_nothing(shop: Shop, headers: dict[str, str]) -> None:
    # L5
    number = shop.reserve()
    answer = shop.tell(shop.event(number), headers)
    assert (answer.status, answer["code"]) == (400, "bad_event_signature")
    other = shop.tell(shop.event(number), shop.signed(shop.event(number), "whsec_of_another"))
    assert other.status == 400
    assert shop.booking(number)["status"] == "pending"
    assert shop.texts() == []


def test_a_payment_that_confirms_nothing_is_answered_200(shop: Shop) -> None:
    # L5: amount, mode, unknown reservation, other events
    number = shop.reserve()
    assert shop.pay(number, amount_received=4_999) == "amount_too_low"
    assert {one["why"] for one in shop.booking(number)["notifications"][:2]} == {"paid_too_little"}
    assert shop.pay(number, currency="usd") == "wrong_currency"
    assert shop.pay(number, is_live=False) == "wrong_mode"
    assert shop.pay(number, COMPLETED, payment_status="unpaid") == "ignored"
    assert shop.pay(number, "charge.refunded") == "ignored"
    assert shop.pay(999_999) == "unknown_reservation"
    assert (shop.booking(number)["status"], shop.texts()) == ("pending", [])


def test_a_payment_after_the_cancellation_is_recorded_and_tells_nobody(shop: Shop) -> None:
    # L5
    number = shop.reserve()
    shop.cancel(number)
    assert shop.pay(number) == "cancelled"
    booking = shop.booking(number)
    assert (booking["status"], booking["payment_status"], booking["confirmed_at"]) == ("cancelled", "succeeded", None)
    assert {one["why"] for one in booking["notifications"][:2]} == {"paid_after_cancellation"}
    assert shop.texts() == [CANCELLED]


def test_a_store_that_fails_is_5xx_keeps_nothing_and_stripe_comes_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # L5: in the middle of the transaction, after the reservation was confirmed
    number = shop.reserve()
    before = shop.booking(number)

    async def fail(*_words: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(notification_jobs, "_insert_jobs", fail)
        assert shop.tell(shop.event(number)).status >= 500
    assert (shop.booking(number), shop.line.pushes) == (before, 0)
    assert (shop.pay(number), shop.texts()) == ("confirmed", [CONFIRMED])


def test_a_store_that_fails_after_the_commit_fails_no_webhook(
    world: World, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # L9: what is committed is answered as such, and cron sends it
    number = shop.reserve()

    async def fail(*_words: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(world.store.notification_jobs, "take_lease", fail)
        assert shop.pay(number) == "confirmed"
    assert (shop.states(number)["CONFIRMATION"], shop.line.pushes) == ("PENDING", 0)
    assert shop.send_pending()["summary"]["sent"] == 1


def test_payments_are_the_default_tenants_alone(world: World, shop: Shop) -> None:
    # L5: Stripe knows one shop, and no number of another tenant's is confirmed by it
    other = world.client(KeyScope.SEND, KeyScope.READ, KeyScope.ADMIN, tenant=TenantId(2))
    farm = world.call("POST", "/api/v1/farms", {"name": "やまだ農園"}, client=other)
    world.call("PUT", "/api/v1/customers/hanako", {"line_user_id": LINE_USER_ID}, client=other)
    start = world.now + timedelta(days=3)
    body = {
        "farm_id": farm["farm_id"],
        "customer_id": "hanako",
        "pickup_start": start.isoformat(),
        "pickup_end": (start + timedelta(hours=1)).isoformat(),
    }
    number = world.call("POST", "/api/v1/reservations", body, client=other)["reservation_id"]
    assert shop.pay(number) == "unknown_reservation"
    assert world.call("GET", f"/api/v1/reservations/{number}", client=other)["status"] == "pending"


def test_without_a_secret_payments_are_refused(build: Build) -> None:
    shop = Shop(build())
    answer = shop.tell(b"{}", {"Stripe-Signature": "t=1,v1=00"})
    assert (answer.status, answer["code"]) == (400, "bad_event_signature")


# the sender


def test_the_summary_is_the_one_of_the_specification(world: World, shop: Shop) -> None:
    # L8, S3 4.1
    number = shop.reserve()
    shop.pay(number)
    world.advance(DAY)
    now = world.now
    assert shop.send_pending() == {
        "ok": True,
        "summary": {
            "now": now.isoformat(timespec="microseconds"),
            "total_candidates": 1,
            "processed": 1,
            "sent": 1,
            "skipped": 0,
            "failed": 0,
            "dry_run": False,
            "dry_run_count": 0,
        },
        "results": [
            {
                "job_id": 2,
                "reservation_id": number,
                "kind": "REMINDER",
                "status_before": "PENDING",
                "status_after": "SENT",
                "attempt_count_before": 0,
                "attempt_count_after": 1,
                "result": "SENT",
                "error": None,
            }
        ],
    }


def test_a_dry_run_calls_nothing_and_changes_nothing(world: World, shop: Shop) -> None:
    # L10, S1 9
    number = shop.reserve()
    shop.pay(number)
    world.advance(DAY)
    before, pushes = world.rows("SELECT * FROM notification_jobs ORDER BY job_id"), shop.line.pushes
    for answer in (shop.send_pending("?dry_run=true"), shop.send_job(2, "?dry_run=true").body):
        assert (answer["summary"]["dry_run"], answer["summary"]["dry_run_count"]) == (True, 1)
        (result,) = answer["results"]
        assert (result["result"], result["status_after"], result["attempt_count_after"]) == ("DRY_RUN", "PENDING", 0)
    assert world.rows("SELECT * FROM notification_jobs ORDER BY job_id") == before
    assert world.rows("SELECT count(*) FROM notification_senders") == [(0,)]
    assert shop.line.pushes == pushes


def test_the_limit_leaves_the_rest_to_the_next_run(world: World, shop: Shop) -> None:
    # L8: total_candidates are all that are due
    for _ in range(3):
        shop.pay(shop.reserve())
    world.advance(DAY)
    first, second = shop.send_pending("?limit=2"), shop.send_pending("?limit=2")
    assert [(one["summary"]["total_candidates"], one["summary"]["sent"]) for one in (first, second)] == [(3, 2), (1, 1)]


def test_the_monthly_limit_in_the_middle_of_fifty_jobs_stops_nobody(world: World, shop: Shop) -> None:
    # L8, S1 8: FAILED with the answer in full, and the run goes on
    for _ in range(50):
        shop.pay(shop.reserve())
    world.advance(DAY)
    shop.line.conduct = lambda _to: MONTHLY_LIMIT if len(shop.line.taken) >= 50 + 20 else None
    report = shop.send_pending()
    assert (report["summary"]["processed"], report["summary"]["sent"], report["summary"]["failed"]) == (50, 20, 30)
    assert {one["error"] for one in report["results"][20:]} == {f"429: {MONTHLY_LIMIT.body}"}
    assert {one["attempt_count_after"] for one in report["results"]} == {1}
    shop.line.conduct = lambda _to: None
    assert shop.send_pending()["summary"]["processed"] == 0, "FAILED is never sent again by itself"


def test_line_out_of_reach_fails_the_job_and_never_the_webhook(shop: Shop) -> None:
    # L9
    shop.line.conduct = lambda _to: LineAnswer(None, "ConnectError")
    number = shop.reserve()
    assert shop.pay(number) == "confirmed"
    job = shop.job(number, "CONFIRMATION")
    assert (job["status"], job["attempt_count"], job["last_error"]) == ("FAILED", 1, "no answer: ConnectError")
    shop.line.conduct = lambda _to: None
    assert (shop.pay(number, COMPLETED), shop.line.pushes) == ("repeated", 1), "L5: who made no job attempts nothing"
    assert shop.send_pending()["summary"]["processed"] == 0


def test_a_bug_in_the_way_to_line_fails_one_job_and_the_run_goes_on(shop: Shop) -> None:
    # L8: failure of any kind; the error's text may quote anything and is not kept
    def break_down(_to: str) -> LineAnswer:
        raise RuntimeError("token-of-the-shop")

    shop.line.conduct = break_down
    number = shop.reserve()
    assert shop.pay(number) == "confirmed"
    assert shop.job(number, "CONFIRMATION")["last_error"] == "no answer: RuntimeError"


def test_a_slow_line_costs_the_webhook_eight_seconds_and_the_customer_nothing(world: World, shop: Shop) -> None:
    # L9: what the budget cuts off stays pending, and cron sends it with the same key
    shop.line.answers_after = timedelta(seconds=9)
    number, before = shop.reserve(), world.now
    assert shop.pay(number) == "confirmed"
    assert timedelta(seconds=8) <= world.now - before < timedelta(seconds=8.5)
    assert shop.job(number, "CONFIRMATION")["status"] == "PENDING"
    assert (shop.pay(number, COMPLETED), shop.line.pushes) == ("repeated", 1), "L5: who made no job attempts nothing"
    shop.line.answers_after = timedelta(0)
    world.advance(MINUTE)
    assert shop.send_pending()["summary"]["sent"] == 1
    assert shop.texts() == [CONFIRMED], "LINE had taken it: the key made the second push harmless"


def test_the_initial_attempt_also_sends_what_else_is_due_its_own_first(world: World, shop: Shop) -> None:
    # L9
    first = shop.reserve()
    shop.pay(first)
    world.advance(DAY)
    shop.meet("taro", line_user_id="U" + "f" * 32)
    shop.pay(shop.reserve(customer_id="taro"))
    assert shop.texts() == [CONFIRMED, CONFIRMED, REMINDED]
    assert shop.line.taken[1].to == "U" + "f" * 32


def test_two_runs_at_once_send_a_job_once(world: World, shop: Shop) -> None:
    # L10
    for _ in range(5):
        shop.pay(shop.reserve())
    world.advance(DAY)
    answers = world.together([("POST", "/notifications/send-pending", None)] * 4)
    assert sum(answer["summary"]["sent"] for answer in answers) == 5
    assert shop.line.pushes == 10
    assert len(shop.texts()) == 10


def test_a_customer_without_a_line_user_id_fails_by_name(shop: Shop) -> None:
    # L8
    shop.meet("jiro")
    number = shop.reserve(customer_id="jiro")
    shop.pay(number)
    job = shop.job(number, "CONFIRMATION")
    assert (job["status"], job["attempt_count"], job["last_error"]) == ("FAILED", 1, "customer_line_user_id is missing")
    shop.meet("jiro", line_user_id=LINE_USER_ID)
    assert shop.send_job(job["job_id"])["summary"]["sent"] == 1


def test_a_pause_stops_the_sender_too(world: World, shop: Shop) -> None:
    # N4.7
    world.post("/api/v1/pauses", {"kind": "channel", "name": "line"})
    number = shop.reserve()
    assert shop.pay(number) == "confirmed"
    assert shop.send_pending()["summary"]["processed"] == 0
    job_id = shop.job(number, "CONFIRMATION")["job_id"]
    assert shop.send_job(job_id).status == 409
    assert shop.states(number)["CONFIRMATION"] == "PENDING"


# a person's command


def test_a_person_sends_a_failed_job_again(shop: Shop) -> None:
    # L11
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    number = shop.reserve()
    shop.pay(number)
    job_id = shop.job(number, "CONFIRMATION")["job_id"]
    shop.line.conduct = lambda _to: None
    (result,) = shop.send_job(job_id)["results"]
    assert (result["status_before"], result["status_after"], result["result"]) == ("FAILED", "SENT", "SENT")
    assert (result["attempt_count_before"], result["attempt_count_after"]) == (1, 2)
    assert shop.job(number, "CONFIRMATION")["last_error"] is None
    (again,) = shop.send_job(job_id)["results"]
    assert again["result"] == "SKIPPED"
    assert shop.texts() == [CONFIRMED]


def test_five_attempts_are_the_most(shop: Shop) -> None:
    # L11
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    number = shop.reserve()
    shop.pay(number)
    job_id = shop.job(number, "CONFIRMATION")["job_id"]
    assert [shop.send_job(job_id).status for _ in range(5)] == [200, 200, 200, 200, 409]
    assert shop.job(number, "CONFIRMATION")["attempt_count"] == 5


def test_what_is_final_or_cancelled_is_not_sent_again(shop: Shop) -> None:
    # L11, S1 13
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    number = shop.reserve()
    shop.pay(number)
    shop.cancel(number)
    shop.line.conduct = lambda _to: None
    for kind in ("CONFIRMATION", "CANCEL_COMPLETED"):
        job = shop.job(number, kind)
        assert job["status"] == "FAILED"
        for query in ("", "?dry_run=true"):
            answer = shop.send_job(job["job_id"], query)
            assert (answer.status, answer["code"]) == (409, "conflict")
            assert answer["detail"].endswith(("tell the customer in another way.", "Nobody is to be told."))
    assert shop.send_pending()["summary"]["processed"] == 0
    assert shop.texts() == []
    assert shop.send_job(999).status == 404


# what is shown


def test_a_preview_keeps_and_sends_nothing(world: World, shop: Shop) -> None:
    # L12; S3's would have made jobs that cron sends, even for an unpaid reservation
    number = shop.reserve()
    preview = world.get(f"/dev/notifications/preview?reservation_id={number}")
    assert [job["kind"] for job in preview["planned_jobs"]] == ["CONFIRMATION", "REMINDER"]
    assert preview["existing_jobs"] == []
    assert set(preview["texts"]) == {"CONFIRMATION", "REMINDER", "CANCEL_COMPLETED"}
    assert preview["context"]["customer_line_user_id"] == f"{LINE_USER_ID[:5]}…"
    assert world.rows("SELECT count(*) FROM notification_jobs") == [(0,)]
    world.advance(DAY * 2)
    assert shop.send_pending()["summary"]["total_candidates"] == 0
    assert shop.line.pushes == 0
    shop.pay(number)
    assert [job["kind"] for job in world.get(f"/dev/notifications/preview?reservation_id={number}")["existing_jobs"]]


def test_the_booked_page_is_for_the_key_and_for_the_link(world: World, shop: Shop) -> None:
    # L12, L14
    number, other = shop.reserve(), shop.reserve()
    token = shop.booking(number)["booked_url"].partition("token=")[2]
    path = f"/reservations/{number}/booked"
    by_key = world.get(path)
    by_link = world.call("GET", f"{path}?token={token}", client=shop.anyone)
    assert by_key.body == by_link.body
    assert by_key["pickup_display"] == "3月5日（木）18:00〜19:00"
    for stranger in (path, f"{path}?token=1.{'A' * 24}", f"/reservations/{other}/booked?token={token}"):
        assert world.call("GET", stranger, client=shop.anyone).status == 401
    mallory = world.client(KeyScope.READ, tenant=2)  # type: ignore[arg-type]
    assert world.call("GET", path, client=mallory).status == 404


def test_the_booked_page_empties_a_quarter_of_an_hour_after_the_end(world: World, shop: Shop) -> None:
    # L14, the table of S3 D
    number = shop.reserve(timedelta(hours=2))
    path, ends = f"/reservations/{number}/booked", world.now + timedelta(hours=3)
    found = []
    for after in (timedelta(0), timedelta(seconds=1), timedelta(minutes=15), timedelta(minutes=15, seconds=1)):
        world.advance_to(ends + after)
        view = world.get(path)
        found.append((view["is_expired"], view["is_expired_for_display"], view["pickup_code"], view["message"]))
    gone = "現在、予定している受け渡しの予約はありません"
    assert found == [
        (False, False, "0417", None),
        (True, False, "0417", None),
        (True, False, "0417", None),
        (True, True, None, gone),
    ]


def test_a_customer_cancels_by_their_link_once_and_not_after_the_pickup(world: World, shop: Shop) -> None:
    # L7, L12, L14
    number, late = shop.reserve(), shop.reserve(timedelta(hours=1))

    def link(of: int) -> str:
        return f"/reservations/{of}/cancel?{shop.booking(of)['booked_url'].partition('?')[2]}"

    first, late_link = link(number), link(late)
    assert world.call("POST", f"/reservations/{number}/cancel", client=shop.anyone).status == 401
    assert world.call("POST", first, client=shop.anyone)["result"] == "cancelled"
    assert world.call("POST", first, client=shop.anyone)["result"] == "repeated"
    assert shop.texts() == [CANCELLED]
    world.advance(timedelta(hours=2, seconds=1))
    answer = world.call("POST", late_link, client=shop.anyone)
    assert (answer.status, answer["code"]) == (409, "conflict")


def test_the_admin_view_says_in_a_sentence_why_there_is_no_job(shop: Shop) -> None:
    # L4
    number = shop.reserve(timedelta(hours=47))
    shop.pay(number)
    by_kind = {one["kind"]: one for one in shop.booking(number)["notifications"]}
    assert (by_kind["REMINDER"]["state"], by_kind["REMINDER"]["why"]) == ("DASH", "too_soon")
    assert "48 hours" in by_kind["REMINDER"]["sentence"]
    assert by_kind["CANCEL_COMPLETED"]["sentence"] == "The reservation is not cancelled."
    assert by_kind["CONFIRMATION"]["sentence"] is None


def test_a_job_that_somebody_removed_by_hand_shows_as_none(world: World, shop: Shop) -> None:
    # L4; the next payment event makes it anew
    number = shop.reserve()
    shop.pay(number)
    world.stop()
    world.change("DELETE FROM notification_jobs WHERE kind = 'CONFIRMATION'")
    world.start()
    shop = _again(world, shop)
    assert shop.states(number)["CONFIRMATION"] == "NONE"
    assert shop.pay(number) == "confirmed"
    assert shop.states(number)["CONFIRMATION"] == "SENT"


def _again(world: World, shop: Shop) -> Shop:
    shop.anyone = Client(world.app, None)
    return shop


# bad input

WRONG_RESERVATIONS: list[tuple[dict[str, object], str]] = [
    ({"pickup_start": "2026-03-05T10:00:00"}, "pickup_start"),
    ({"pickup_end": "2026-03-05T10:00:00+09:00"}, "pickup_end"),
    ({"pickup_start": "2026-03-01T10:00:00Z", "pickup_end": "2026-03-01T11:00:00Z"}, "pickup_end"),
    ({"farm_id": 999}, "farm_id"),
    ({"customer_id": "nobody"}, "customer_id"),
    ({"pickup_code": "12345"}, "pickup_code"),
    ({"pickup_code": "１２３４"}, "pickup_code"),
    ({"qty_5": -1}, "qty_5"),
    ({"total": 1.5}, "total"),
    ({"status": "confirmed"}, "status"),
]
WRONG_LINE_USER_IDS = ["hanako", "U123", "C" + "0" * 32, "U" + "G" * 32]
WRONG_RUNS = ["?limit=0", "?limit=1001", "?limit=x", "?dry_run=perhaps", "?kind=CANCEL_TEMPLATE"]


def test_what_cannot_be_is_422_and_names_the_field(world: World, shop: Shop) -> None:
    fine = {
        "farm_id": shop.farm_id,
        "customer_id": "hanako",
        "pickup_start": "2026-03-05T10:00:00+09:00",
        "pickup_end": "2026-03-05T11:00:00+09:00",
    }
    for fields, field in WRONG_RESERVATIONS:
        answer = world.call("POST", "/api/v1/reservations", {**fine, **fields})
        assert (answer.status, answer["field"]) == (422, field), fields
    for line_user_id in WRONG_LINE_USER_IDS:
        answer = world.call("PUT", "/api/v1/customers/hanako", {"line_user_id": line_user_id})
        assert (answer.status, answer["field"]) == (422, "line_user_id"), line_user_id
    for query in WRONG_RUNS:
        assert world.call("POST", f"/notifications/send-pending{query}").status == 422, query
    assert world.rows("SELECT count(*) FROM reservations") == [(0,)]


def test_only_an_operator_may_send(world: World, shop: Shop) -> None:
    # L12
    shopkeeper = world.client(KeyScope.SEND, KeyScope.READ)
    assert world.call("POST", "/notifications/send-pending", client=shopkeeper).status == 403
    assert world.call("POST", "/notifications/send-pending", client=shop.anyone).status == 401
    assert world.call("GET", "/dev/notifications/preview?reservation_id=1", client=shop.anyone).status == 401
