"""The sender and the desk over a store of our own making: what is pushed, refused and logged (L5, L8-L11)."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.reservation_cast import EARLY, LINE_USER_ID, PICKUP_END, job

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant, plus
from noroshi.domain.line import LineAnswer
from noroshi.domain.notification_jobs import (
    Claim,
    ClaimDecision,
    ClaimFacts,
    DueJobs,
    Job,
    JobKind,
    JobStatus,
    LeaseAnswer,
    PaymentVerdict,
)
from noroshi.domain.problems import ProblemError
from noroshi.domain.reservations import Payment, ReservationId
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.reservations.claims import LEASE
from noroshi.reservations.links import Links
from noroshi.reservations.sender import ANSWERS_WITHIN, Sender, retry_key
from noroshi.reservations.shop import Shop

HERE = DEFAULT_TENANT
NUMBER = ReservationId(237)
MICROSECOND = timedelta(microseconds=1)


class HandClock:
    def __init__(self) -> None:
        self._now = EARLY

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return (self._now - EARLY) / 1_000_000

    async def sleep(self, span: timedelta) -> None:
        self.move(span)

    def move(self, span: timedelta) -> None:
        self._now = plus(self._now, span)


class OneDie:
    def bits(self, count: int) -> int:
        return 1

    def fraction(self) -> float:
        return 0.5


class Line:
    """Takes everything."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        self.texts.append(text)
        return LineAnswer(200, "{}")


class OneJob:
    """A store with one job, which it always gives away. `claim_takes`: so long it keeps its caller waiting."""

    def __init__(self, clock: HandClock, of: Job, verdict: PaymentVerdict = PaymentVerdict.CONFIRMED) -> None:
        self.clock = clock
        self.job = of
        self.verdict = verdict
        self.claim_takes = timedelta(0)

    def _facts(self, *, is_asked: bool = False) -> ClaimFacts:
        return ClaimFacts(
            job=self.job, now=self.clock.now(), event_end=PICKUP_END, is_cancelled=True, is_asked=is_asked
        )

    async def schedule_for_reservation(self, tenant: Any, payment: Any, decide: Any) -> PaymentVerdict:
        return self.verdict

    async def list_due(self, tenant: Any, first: Any, limit: int) -> DueJobs:
        return DueJobs(self.clock.now(), 1, (self._facts(),))

    async def find_facts(self, tenant: Any, job_id: Any) -> ClaimFacts:
        return self._facts()

    async def take_lease(self, tenant: Any, holder: str, span: timedelta) -> LeaseAnswer:
        return LeaseAnswer.TAKEN

    async def release_lease(self, tenant: Any, holder: str) -> None:
        return

    async def claim(self, tenant: Any, job_id: Any, holder: str, span: Any, decide: Any, *, is_asked: bool) -> Claim:
        decision: ClaimDecision = decide(self._facts(is_asked=is_asked))
        self.clock.move(self.claim_takes)
        return Claim(self.job, self.job, decision, 1, LINE_USER_ID)

    async def record(self, tenant: Any, job_id: Any, attempt: int, error: str | None) -> Job:
        return replace(self.job, status=JobStatus.SENT, attempt_count=1)


class Believing:
    def is_genuine(self, body: bytes, signature: str | None) -> bool:
        return True


def sender_of(jobs: OneJob, line: Line | None) -> Sender:
    return Sender(jobs, line, jobs.clock, OneDie(), NoCrashPoints())  # type: ignore[arg-type]


def shop_of(jobs: OneJob, line: Line | None) -> Shop:
    return Shop(
        reservations=None,  # type: ignore[arg-type]
        jobs=jobs,  # type: ignore[arg-type]
        sender=sender_of(jobs, line),
        signatures=Believing(),
        links=Links(b"", ""),
        clock=jobs.clock,
        dice=OneDie(),  # type: ignore[arg-type]
        is_live=True,
    )


# the lease


@pytest.mark.parametrize(
    ("takes", "pushes"), [(LEASE - ANSWERS_WITHIN, 1), (LEASE - ANSWERS_WITHIN + MICROSECOND, 0), (LEASE * 100, 0)]
)
async def test_a_sender_that_was_frozen_in_its_claim_pushes_nothing(takes: timedelta, pushes: int) -> None:
    # L10: with too little of the lease left, another may be sending before LINE has answered
    line, jobs = Line(), OneJob(HandClock(), job())
    jobs.claim_takes = takes
    report = await sender_of(jobs, line).send_pending_jobs(HERE)
    assert len(line.texts) == report.summary.sent == report.summary.processed == pushes


async def test_a_person_whose_sender_was_frozen_is_told_to_look_again() -> None:
    line, jobs = Line(), OneJob(HandClock(), job())
    jobs.claim_takes = LEASE
    with pytest.raises(ProblemError, match="look at it again"):
        await sender_of(jobs, line).send_single_job(HERE, jobs.job.job_id)
    assert line.texts == []


def test_the_key_of_a_job_never_changes() -> None:
    # L10: LINE knows a push of yesterday's version again
    assert retry_key(HERE, job()) == UUID("4db746aa-ab9a-559f-8b24-133b96f3cc90")


# refusals


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (
            job(JobKind.CANCEL_COMPLETED, JobStatus.FAILED, attempt_count=1),
            "A notice of cancellation is tried once, and its failure is final: tell the customer in another way.",
        ),
        (
            job(JobKind.CONFIRMATION, JobStatus.FAILED, attempt_count=1),
            "Its reservation is cancelled: what it says is no longer true. Nobody is to be told.",
        ),
    ],
)
@pytest.mark.parametrize("is_dry", [True, False])
async def test_a_refusal_is_a_sentence_that_says_what_to_do(of: Job, sentence: str, is_dry: bool) -> None:
    # L11
    with pytest.raises(ProblemError) as refused:
        await sender_of(OneJob(HandClock(), of), Line()).send_single_job(HERE, of.job_id, is_dry=is_dry)
    assert refused.value.kind.code == "conflict"
    assert refused.value.detail == f"The job may not be sent again. {sentence}"


# what is logged of payments


@pytest.mark.parametrize(
    ("verdict", "level", "event"),
    [
        (PaymentVerdict.CONFIRMED, "info", "payment_taken"),
        (PaymentVerdict.REPEATED, "info", "payment_taken"),
        (PaymentVerdict.AMOUNT_TOO_LOW, "warning", "payment_confirmed_nothing"),
        (PaymentVerdict.WRONG_CURRENCY, "warning", "payment_confirmed_nothing"),
        (PaymentVerdict.UNKNOWN_RESERVATION, "warning", "payment_confirmed_nothing"),
        (PaymentVerdict.CANCELLED, "warning", "payment_confirmed_nothing"),
    ],
)
async def test_money_that_confirms_nothing_is_a_warning(verdict: PaymentVerdict, level: str, event: str) -> None:
    # L5
    line, jobs = Line(), OneJob(HandClock(), job(), verdict)
    with capture_logs() as lines:
        await shop_of(jobs, line).schedule_for_reservation(HERE, Payment(NUMBER, 1, "jpy", "pi_1"))
    assert lines == [{"log_level": level, "event": event, "reservation_id": NUMBER, "code": verdict}]
    assert len(line.texts) == (verdict is PaymentVerdict.CONFIRMED)


@pytest.mark.parametrize(
    ("kind", "money", "logged"),
    [
        ("charge.refunded", {}, {"code": "ignored", "reason": "another event"}),
        ("payment_intent.succeeded", {}, {"code": "unknown_reservation", "reason": "no reservation_id"}),
        ("checkout.session.completed", {}, {"code": "ignored", "reason": "not paid yet"}),
        ("checkout.session.async_payment_failed", {}, {"code": "ignored", "reason": "another event"}),
    ],
)
async def test_an_event_that_is_no_payment_is_logged(kind: str, money: dict[str, Any], logged: dict[str, str]) -> None:
    # L5
    body = msgspec.json.encode({"id": "evt_1", "type": kind, "livemode": True, "data": {"object": money}})
    with capture_logs() as lines:
        await shop_of(OneJob(HandClock(), job()), Line()).take_payment(body, "signed")
    assert lines == [{"log_level": "info", "event": "payment_event_ignored", "kind": kind, **logged}]


async def test_a_payment_of_the_other_mode_is_logged() -> None:
    # L5
    body = b'{"id":"evt_1","type":"payment_intent.succeeded","livemode":false,"data":{}}'
    with capture_logs() as lines:
        assert await shop_of(OneJob(HandClock(), job()), Line()).take_payment(body, "signed") == "wrong_mode"
    assert [(one["event"], one["code"]) for one in lines] == [("payment_event_ignored", "wrong_mode")]


async def test_a_payment_while_line_is_not_set_up_says_so() -> None:
    # L9: cron sends it when there is a token
    with capture_logs() as lines:
        await shop_of(OneJob(HandClock(), job()), None).schedule_for_reservation(
            HERE, Payment(NUMBER, 1, "jpy", "pi_1")
        )
    assert [(one["log_level"], one["event"]) for one in lines] == [
        ("info", "payment_taken"),
        ("warning", "line_is_off"),
    ]


async def test_an_initial_attempt_that_breaks_is_logged_and_fails_nothing() -> None:
    # L9
    class Broken(OneJob):
        async def take_lease(self, tenant: Any, holder: str, span: timedelta) -> LeaseAnswer:
            raise OSError("the store is away")

    with capture_logs() as lines:
        verdict = await shop_of(Broken(HandClock(), job()), Line()).schedule_for_reservation(
            HERE, Payment(NUMBER, 1, "jpy", "pi_1")
        )
    assert verdict is PaymentVerdict.CONFIRMED
    assert lines[-1] == {
        "log_level": "error",
        "event": "initial_attempt_failed",
        "reservation_id": NUMBER,
        "error": "OSError",
    }
