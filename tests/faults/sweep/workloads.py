"""What drives the product past its crash points. Each may be begun again after a crash, with the same keys."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
from msgspec import Struct, field
from stripe import WebhookSignature

from noroshi.care.restore import BY
from noroshi.domain.instants import plus
from noroshi.domain.marks import Mark, Restored
from noroshi.domain.states import Status
from noroshi.flow.accept.intake import ANSWER_WAIT
from tests.faults.machinery.load import PATH
from tests.faults.sweep.launcher import VARIABLE
from tests.faults.sweep.seeded import BODY, SUBJECT, TEMPLATE
from tests.faults.sweep.trial import Trial, now
from tests.stand_ins.ledger_provider.wire import Conduct
from tests.stand_ins.line.process import NOWHERE, user_id
from tests.stand_ins.line.webhooks import signature, unfollowing

CODES = "one_time_code"
"""The category whose messages may never be doubled."""

_MOST_RECIPIENTS = 10_000
_OVERTIME = timedelta(milliseconds=300)
_TRIES_AT_THE_LOCK = 5
_RECIPIENTS_TO_CANCEL = 300
_BUSY = 503
_REJECTED = 400
_LATE = "late"
_FOLLOWER = user_id(1_000_000)
"""None of the people who were there before."""
_SIGNING_SECRET = "whsec_of_the_sweep"
_LEASES_RUN_OUT = 20

Act = Callable[[Trial], None]


def _nothing(_trial: Trial) -> None:
    return


class Workload(Struct, frozen=True):
    """`prepare` runs before the life that crashes, `check` after the drain. `is_command`: not the server dies, but
    a command beside it. `needs_line`: the trial has a LINE of its own."""

    name: str
    run: Act
    prepare: Act = _nothing
    check: Act = _nothing
    plants: Sequence[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    is_command: bool = False
    needs_line: bool = False


def _send(trial: Trial) -> None:
    people = trial.seeded.people
    for number in range(3):
        trial.post(f"single-{number}", people[number : number + 1], "email", "sms")
    trial.post("codes", people[3:8], "sms", category=CODES, priority="critical")
    trial.post("many", people[10:50], "email")
    trial.drain()


def _send_to_many(trial: Trial) -> None:
    trial.post("very many", trial.seeded.people, "email")
    trial.drain()


def _answer_late(trial: Trial) -> None:
    """Everything is kept, nothing more is decided, and after two seconds the caller is told so."""
    strangers = [f"stranger-{number}" for number in range(_MOST_RECIPIENTS - len(trial.seeded.people))]
    recipients = [*strangers, *trial.seeded.people]
    if trial.posted:
        for key in list(trial.posted):
            trial.post(key, recipients, "email", priority="critical")
    else:
        any(_is_answered_late(trial, f"late {number}", recipients) for number in range(_TRIES_AT_THE_LOCK))
    trial.drain()


def _is_answered_late(trial: Trial, key: str, recipients: Sequence[str]) -> bool:
    """The writer is held from the moment the batch is kept until its caller has been told; False if that came too
    late, when all was decided."""
    with ThreadPoolExecutor(1) as caller:
        answer = caller.submit(trial.post, key, recipients, "email", priority="critical")
        with trial.store.held_when("SELECT count(*) FROM batches WHERE state = 0", answer.done) as is_held:
            if is_held:
                time.sleep((ANSWER_WAIT + _OVERTIME).total_seconds())
        answer.result()
    return is_held


def _cancel(trial: Trial) -> None:
    pause_id = trial.call("POST", "/api/v1/pauses", {"kind": "everything"}, expect=201).fields["pause_id"]
    batch_id = trial.post("withdrawn", trial.seeded.people[:_RECIPIENTS_TO_CANCEL], "email")
    trial.call("POST", f"{PATH}/{batch_id}/cancel", expect=200)
    trial.call("DELETE", f"/api/v1/pauses/{pause_id}", expect=204)
    trial.post("kept", trial.seeded.people[-2:], "email")
    trial.drain()


def _check_cancelled(trial: Trial) -> None:
    batch_id = trial.posted["withdrawn"].batch_id
    statuses = trial.call("GET", f"{PATH}/{batch_id}/status", expect=200).fields["statuses"]
    assert statuses == {"CANCELLED": _RECIPIENTS_TO_CANCEL}


def _pause(trial: Trial) -> None:
    pause_id = trial.call("POST", "/api/v1/pauses", {"kind": "category", "name": "social"}, expect=201).fields[
        "pause_id"
    ]
    trial.post("paused", trial.seeded.people[:20], "email", category="social")
    if trial.posted["paused"].heard[-1].status == 202:
        trial.await_store("deliveries", "state = 2", 20)
    trial.call("DELETE", f"/api/v1/pauses/{pause_id}", expect=204)
    trial.drain()


def _check_unpaused(trial: Trial) -> None:
    assert trial.call("GET", "/api/v1/pauses", expect=200).fields["items"] == []


def _enqueue(trial: Trial) -> None:
    """Three requests in callers' own transactions, one of them dead until its template is written."""
    people = trial.seeded.people
    trial.enqueue("enqueued", people[:5], "email")
    trial.enqueue("enqueued too", people[5:10], "email")
    late = trial.enqueue("late", people[10:12], "email", template_id=_LATE)
    trial.await_store("requests", "state = 0", 0)
    version = {"channel": "email", "locale": "en", "subject": SUBJECT, "body": BODY}
    trial.call("POST", f"/api/v1/templates/{_LATE}", version, expect=201)
    if trial.call("GET", f"/api/v1/requests/{late}", expect=200).fields["state"] == "dead":
        trial.call("POST", f"/api/v1/requests/{late}/retry", expect=200)
    trial.await_store("requests", "state = 0", 0)
    trial.drain()
    trial.note_enqueued()


def _check_enqueued(trial: Trial) -> None:
    assert trial.store.count("requests", "state = 1") == trial.store.count("requests") == 3
    assert trial.store.count("batches") == 3


def _bury(trial: Trial) -> None:
    trial.provider.behave(Conduct(status=_REJECTED))
    trial.post("rejected", trial.seeded.people[:10], "email")
    trial.drain()
    trial.provider.behave(Conduct())


def _replay(trial: Trial) -> None:
    _bury(trial)
    trial.call("POST", "/api/v1/dead-letters/replay", {"all": True}, expect=200)
    trial.drain()


def _check_replayed(trial: Trial) -> None:
    assert trial.store.count("notifications", "status = 60") == 10
    assert trial.store.count("dead_letters") == 0


def _discard(trial: Trial) -> None:
    _bury(trial)
    trial.call("POST", "/api/v1/dead-letters/discard", {"all": True}, expect=200)


def _check_discarded(trial: Trial) -> None:
    assert trial.store.count("notifications", "status = 70") == 10
    assert trial.store.count("dead_letters") == 0


def _limit(trial: Trial) -> None:
    trial.provider.behave(Conduct(is_limiting=True, retry_after="1", requests=1))
    trial.post("limited", trial.seeded.people[:10], "email")
    trial.drain()


def _catch(trial: Trial) -> None:
    trial.post("called", trial.seeded.people[:10], "voice")
    trial.drain()


def _change_people(trial: Trial) -> None:
    newcomer, leaver = "/api/v1/users/newcomer", f"/api/v1/users/{trial.seeded.people[-1]}"
    trial.post("bystander", trial.seeded.people[:1], "email")
    trial.drain()
    trial.call("PUT", newcomer, {"email": "newcomer@example.com"}, expect=200)
    trial.call("PUT", f"{newcomer}/notification-preferences", {"channels": {"sms": False}}, expect=200)
    device = {"platform": "ios", "device_token": "a" * 64}
    token_id = trial.call("POST", f"{newcomer}/devices", device, expect=200).fields["token_id"]
    trial.call("DELETE", f"{newcomer}/devices/{token_id}", expect=204)
    trial.call("DELETE", leaver)


def _check_people(trial: Trial) -> None:
    newcomer, leaver = "/api/v1/users/newcomer", f"/api/v1/users/{trial.seeded.people[-1]}"
    assert trial.call("GET", newcomer, expect=200).fields["email"] == "newcomer@example.com"
    preferences = trial.call("GET", f"{newcomer}/notification-preferences", expect=200).fields
    assert preferences["channels"]["sms"] is False
    assert trial.call("GET", f"{newcomer}/devices", expect=200).fields["items"] == []
    trial.call("GET", leaver, expect=404)


def _hear(trial: Trial) -> None:
    """LINE tells us that somebody has had enough of us; after a crash, it tells us again."""
    trial.post("bystander", trial.seeded.people[:1], "email")
    trial.call("PUT", "/api/v1/users/follower", {"line_user_id": _FOLLOWER}, expect=200)
    told = unfollowing(_FOLLOWER, 1_700_000_000_000)
    trial.call("POST", "/webhooks/line", told, expect=200, X_Line_Signature=signature(msgspec.json.encode(told)))
    trial.drain()


def _check_heard(trial: Trial) -> None:
    assert trial.store.count("suppressions", "reason = 'unfollowed'") == trial.store.count("reachability") == 1
    assert trial.store.count("endpoints", "kind = 'line' AND NOT is_active") == 1


def _change_template(trial: Trial) -> None:
    path = f"/api/v1/templates/{TEMPLATE}"
    worse = {"channel": "email", "locale": "en", "subject": "Note", "body": "worse"}
    trial.call("POST", path, worse, expect=201)
    trial.call("POST", f"{path}/rollback", {"channel": "email", "locale": "en", "version": 1}, expect=200)
    trial.post("as before", trial.seeded.people[:5], "email")
    trial.drain()


def _change_keys(trial: Trial) -> None:
    trial.post("bystander", trial.seeded.people[:5], "email")
    trial.command("keys", "create", "--name", "second", "--scopes", "read")
    for key_id in _live_keys(trial, "second"):
        trial.command("keys", "revoke", key_id)


def _live_keys(trial: Trial, name: str) -> list[str]:
    rows = trial.store.rows("SELECT key_id FROM api_keys WHERE name = ? AND revoked_at IS NULL", name)
    return [key_id for (key_id,) in rows]


def _check_keys(trial: Trial) -> None:
    assert _live_keys(trial, "second") == []


def _live_long_ago(trial: Trial) -> None:
    trial.start(**{VARIABLE: "lives_long_ago"})
    trial.post("old", trial.seeded.people[:20], "email")
    trial.post("old, in-app", trial.seeded.people[:5], "in_app")
    trial.drain()
    assert trial.noroshi.stop() == 0
    assert len(trial.provider.taken()) == 20
    trial.begin_anew()


def _tidy(trial: Trial) -> None:
    trial.post("new", trial.seeded.people[20:40], "email")
    trial.drain()
    for table in ("notifications", "inbox"):
        trial.await_store(table, f"at < {plus(now(), -timedelta(days=1))}", 0)


def _check_tidied(trial: Trial) -> None:
    assert trial.store.count("batches") == trial.store.count("idempotency_keys") == 1


def _fill_inboxes(trial: Trial) -> None:
    """Ten people are told two things each; one of them reads, puts away, and looks on."""
    people = trial.seeded.people[:10]
    inbox = f"/api/v1/users/{people[0]}/inbox"
    for number in range(2):
        trial.post(f"in-app-{number}", people, "in_app")
    trial.drain()
    trial.call("POST", f"{inbox}/1/read", expect=200)
    trial.call("POST", f"{inbox}/read-all", expect=200)
    trial.call("POST", f"{inbox}/2/archive", expect=200)
    ticket = trial.call("POST", f"{inbox}/tickets", expect=201).fields["ticket"]
    trial.call("HEAD", f"{inbox}/stream?ticket={ticket}", expect=200)
    trial.call("HEAD", f"{inbox}/stream?ticket={ticket}", expect=401)


def _check_inboxes(trial: Trial) -> None:
    """Numbers without a gap, counts that are right, and what was read is OPENED."""
    heads = trial.store.rows("SELECT user_id, last_number, unread FROM inboxes")
    assert len(heads) == 10
    for owner, last_number, unread in heads:
        rows = trial.store.rows("SELECT number, read_at, archived_at FROM inbox WHERE user_id = ?", owner)
        assert sorted(row[0] for row in rows) == list(range(1, last_number + 1))
        assert unread == sum(read_at is None and archived_at is None for _, read_at, archived_at in rows)
    read = trial.store.count("inbox", "read_at IS NOT NULL")
    assert trial.store.count("notifications", f"status = {Status.OPENED.value}") == read == 2


def _send_slowly(trial: Trial) -> None:
    if "slow" not in trial.posted:
        trial.provider.behave(Conduct(delay=timedelta(seconds=4), requests=1))
    trial.post("slow", trial.seeded.people[:10], "email")
    trial.drain()


def _break(trial: Trial) -> None:
    if "failed" not in trial.posted:
        trial.provider.behave(Conduct(status=_BUSY, requests=1))
    trial.post("failed", trial.seeded.people[:10], "email")
    trial.drain()


def _try_nobody(trial: Trial) -> None:
    """The account's trial falls to a message whose person is gone: it needs no send."""
    people = trial.seeded.people[:5]
    trial.provider.behave(Conduct(status=_BUSY))
    trial.post("for nobody", people, "email")
    trial.await_store("deliveries", "tries = 0", 0)
    for person in people:
        trial.call("DELETE", f"/api/v1/users/{person}")
    trial.provider.behave(Conduct())
    trial.drain()


def _be_restored(trial: Trial) -> None:
    """As a restore leaves it: paused, with ten messages of which nobody knows whether they were sent."""
    trial.start()
    trial.call("POST", "/api/v1/pauses", {"kind": "everything"}, expect=201)
    trial.post("doubtful", trial.seeded.people[:10], "email")
    trial.await_store("batches", "state = 1", 1)
    assert trial.noroshi.stop() == 0
    at = now()
    trial.store.change("UPDATE pauses SET created_by = ?", (BY,))
    mark = (Mark.RESTORED.value, msgspec.json.encode(Restored(at, at)).decode(), at)
    trial.store.change("INSERT INTO marks (tenant, name, value, at) VALUES (0, ?, ?, ?)", mark)


def _resume(trial: Trial) -> None:
    if trial.store.count("marks"):
        trial.command("restore", "--resume", "--discard-due")
    trial.post("kept", trial.seeded.people[-2:], "email")
    trial.drain()


def _check_resumed(trial: Trial) -> None:
    assert trial.store.count("marks") == trial.store.count("pauses") == 0
    assert trial.store.count("notifications", f"status = {Status.CANCELLED.value}") == 10


def _reserve(trial: Trial) -> None:
    """A reservation is paid and cancelled; whoever gets no answer asks again, and cron comes round."""
    if not trial.store.count("farms"):
        trial.call("POST", "/api/v1/farms", {"name": "Farm"}, expect=201)
    trial.call("PUT", "/api/v1/customers/hanako", {"line_user_id": user_id(1)}, expect=200)
    if not trial.store.count("reservations"):
        times = {"pickup_start": "2100-01-01T10:00:00+09:00", "pickup_end": "2100-01-01T11:00:00+09:00"}
        wanted = {"farm_id": 1, "customer_id": "hanako", **times, "total": 1}
        trial.call("POST", "/api/v1/reservations", wanted, expect=201)
    money = {"id": "pi_1", "metadata": {"reservation_id": "1"}, "currency": "jpy", "amount_received": 1}
    event = {"id": "evt_1", "type": "payment_intent.succeeded", "livemode": True, "data": {"object": money}}
    signed = WebhookSignature.generate_signature_header(msgspec.json.encode(event).decode(), _SIGNING_SECRET)
    trial.call("POST", "/stripe/webhook", event, expect=200, Stripe_Signature=signed)
    _run_cron(trial)
    trial.call("POST", "/reservations/1/cancel", expect=200)
    _run_cron(trial)


def _run_cron(trial: Trial) -> None:
    """Until nothing is due: a dead sender's lease has to run out first."""
    deadline = time.monotonic() + _LEASES_RUN_OUT
    while trial.call("POST", "/notifications/send-pending", expect=200).fields["summary"]["total_candidates"]:
        assert time.monotonic() < deadline, "something stays due"
        time.sleep(0.05)


def _check_reserved(trial: Trial) -> None:
    """LINE's own ledger decides."""
    assert trial.line is not None
    told = sorted(text[:3] for pushed in trial.line.pushed() for text in pushed.texts)
    assert told == ["ご予約", "ご予約"], told
    assert {text.partition("\n")[0] for pushed in trial.line.pushed() for text in pushed.texts} == {
        "ご予約いただき、誠にありがとうございます。",
        "ご予約のキャンセルを承りました。",
    }
    jobs = trial.store.rows("SELECT kind, status FROM notification_jobs ORDER BY kind")
    assert [tuple(job) for job in jobs] == [("CANCEL_COMPLETED", "SENT"), ("CONFIRMATION", "SENT")]


SEND = Workload("send", _send)
SEND_TO_MANY = Workload("send to many", _send_to_many)
ANSWER_LATE = Workload("answer late", _answer_late)
CANCEL = Workload("cancel", _cancel, check=_check_cancelled)
PAUSE = Workload("pause", _pause, check=_check_unpaused)
REPLAY = Workload("replay", _replay, check=_check_replayed)
DISCARD = Workload("discard", _discard, check=_check_discarded)
LIMIT = Workload("limit", _limit)
CATCH = Workload("catch", _catch, environment={"NOROSHI_CATCHER": "on"})
PEOPLE = Workload("people", _change_people, check=_check_people)
HEAR = Workload("hear", _hear, check=_check_heard, environment=NOWHERE)
RESERVE = Workload(
    "reserve",
    _reserve,
    check=_check_reserved,
    plants=("has_a_short_sender",),
    environment={"NOROSHI_STRIPE_WEBHOOK_SECRET": _SIGNING_SECRET},
    needs_line=True,
)
TEMPLATES = Workload("templates", _change_template)
ENQUEUE = Workload("enqueue", _enqueue, check=_check_enqueued)
KEYS = Workload("keys", _change_keys, check=_check_keys, is_command=True)
RESUME = Workload("resume", _resume, prepare=_be_restored, check=_check_resumed, is_command=True)
TIDY = Workload("tidy", _tidy, prepare=_live_long_ago, check=_check_tidied, plants=("tidies_often",))
INBOX = Workload("inbox", _fill_inboxes, check=_check_inboxes)
RENEW = Workload("renew", _send_slowly, environment={"LEDGER_PROVIDER_TIMEOUT": "5", "NOROSHI_LEASE_MARGIN": "1"})
_SHORT_LEASES = {"LEDGER_PROVIDER_TIMEOUT": "2", "NOROSHI_LEASE_MARGIN": "1"}
BREAK = Workload("break", _break, plants=("has_a_short_breaker",), environment=_SHORT_LEASES)
TRY_NOBODY = Workload("try nobody", _try_nobody, plants=("has_a_short_breaker",), environment=_SHORT_LEASES)
