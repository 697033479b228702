"""Notification jobs on every store: what is due, claims and their results, the lease of the one who sends."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from noroshi.domain.instants import iso, plus
from noroshi.domain.notification_jobs import (
    ClaimVerdict,
    LeaseAnswer,
)
from noroshi.domain.records import PauseKind
from noroshi.domain.reservations import (
    Customer,
)
from noroshi.reservations.claims import LEASE
from noroshi.reservations.doubts import RETRY_KEY_LIVES
from tests.callers import ForeignCaller
from tests.conformance.company import beside
from tests.conformance.shop_counter import (
    CANCEL,
    CONFIRMATION,
    FAILED,
    HERE,
    ME,
    MINUTE,
    PENDING,
    REMINDER,
    SENT,
    Counter,
)
from tests.conformance.stores import HandClock, Store
from tests.reservation_cast import LINE_USER_ID

# what is due


async def test_due_jobs_come_oldest_first_and_all_are_counted(counter: Counter, store: Store, clock: HandClock) -> None:
    # L8
    numbers = []
    for _ in range(4):
        numbers.append(await counter.reserve())
        await counter.pay(numbers[-1])
        clock.move(MINUTE)
    ids = [(await counter.job(number, CONFIRMATION)).job_id for number in numbers]
    found = await store.notification_jobs.list_due(HERE, None, 3)
    assert (found.total, found.now) == (4, clock.now())
    assert [facts.job.job_id for facts in found.facts] == ids[:3]
    assert await counter.due(first=numbers[2]) == [ids[2], ids[0], ids[1], ids[3]]


async def test_a_job_is_due_from_its_very_microsecond_on(counter: Counter, clock: HandClock) -> None:
    # L8: at its time, not after it
    number = await counter.reserve()
    await counter.pay(number)
    await counter.end((await counter.job(number, CONFIRMATION)).job_id)
    reminder = (await counter.job(number, REMINDER)).job_id
    clock.move(timedelta(days=1) - timedelta(microseconds=1))
    assert await counter.due() == []
    clock.move(timedelta(microseconds=1))
    assert await counter.due() == [reminder]


async def test_what_was_tried_too_often_keeps_nobody_waiting(counter: Counter, caller: ForeignCaller) -> None:
    # L8: SKIPPED again and again, and never in the way of others
    numbers = [await counter.reserve() for _ in range(3)]
    for number in numbers:
        await counter.pay(number)
    ids = [(await counter.job(number, CONFIRMATION)).job_id for number in numbers]
    caller.rows(f"UPDATE notification_jobs SET attempt_count = 5 WHERE job_id = {ids[0]} RETURNING 1")  # noqa: S608
    caller.commit()
    assert await counter.due(limit=2) == ids[1:]
    assert await counter.due() == [ids[1], ids[2], ids[0]]


# claims and results


async def test_a_claim_marks_an_attempt_and_its_result_counts_it(
    counter: Counter, store: Store, clock: HandClock, caller: ForeignCaller
) -> None:
    # L8, L10
    number = await counter.reserve()
    await counter.pay(number)
    job = await counter.job(number, CONFIRMATION)
    claim = await counter.claimed(job.job_id)
    assert (claim.decision.verdict, claim.attempt, claim.before) == (ClaimVerdict.SEND, 1, job)
    facts = await store.notification_jobs.find_facts(HERE, job.job_id)
    assert facts is not None
    assert (facts.open_since, facts.job.attempt_count) == (clock.now(), 0)
    clock.move(MINUTE)
    recorded = await store.notification_jobs.record(HERE, job.job_id, 1, None)
    assert recorded is not None
    assert (recorded.status, recorded.attempt_count, recorded.updated_at) == (SENT, 1, clock.now())
    ((started, ended),) = caller.rows("SELECT started_at, ended_at FROM notification_job_attempts")
    assert (started, ended) == (iso(plus(clock.now(), -MINUTE)), iso(clock.now()))


async def test_a_failure_keeps_its_error_in_full_until_the_next_result(counter: Counter) -> None:
    # L8, L11
    number = await counter.reserve()
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    error = '429: {"message":"You have reached your monthly limit."}' + "x" * 5_000
    failed = await counter.end(job_id, error)
    assert (failed.status, failed.attempt_count, failed.last_error) == (FAILED, 1, error)
    claim = await counter.claimed(job_id, is_asked=True)
    assert (claim.before.status, claim.after.status, claim.after.last_error) == (FAILED, PENDING, error)
    sent = await counter.store.notification_jobs.record(HERE, job_id, claim.attempt, None)
    assert sent is not None
    assert (sent.status, sent.attempt_count, sent.last_error) == (SENT, 2, None)


async def test_what_may_not_be_sent_fails_in_the_claim_itself(counter: Counter, store: Store) -> None:
    # L8: the decision and its record in one commit
    await store.reservations.put_customer(HERE, Customer("unlinked"))
    number = await counter.reserve(customer_id="unlinked")
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    claim = await counter.claimed(job_id)
    assert (claim.decision.verdict, claim.after.status, claim.after.attempt_count) == (ClaimVerdict.FAIL, FAILED, 1)
    assert (await counter.job(number, CONFIRMATION)).last_error == "customer_line_user_id is missing"


async def test_whoever_was_linked_meanwhile_gets_it_when_a_person_sends_it_again(
    counter: Counter, store: Store
) -> None:
    # L11
    await store.reservations.put_customer(HERE, Customer("unlinked"))
    number = await counter.reserve(customer_id="unlinked")
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    await counter.claimed(job_id)
    await store.reservations.put_customer(HERE, Customer("unlinked", line_user_id=LINE_USER_ID))
    claim = await counter.claimed(job_id, is_asked=True)
    assert (claim.decision.verdict, claim.line_user_id) == (ClaimVerdict.SEND, LINE_USER_ID)


async def test_a_skipped_and_a_refused_claim_change_nothing(counter: Counter) -> None:
    # L8, L11
    number = await counter.reserve()
    await counter.pay(number)
    reminder = await counter.job(number, REMINDER)
    skipped = await counter.claimed(reminder.job_id)
    assert skipped.decision.verdict is ClaimVerdict.SKIP
    await counter.cancel(number)
    cancel = await counter.job(number, CANCEL)
    failed = await counter.end(cancel.job_id, "500: no")
    refused = await counter.claimed(cancel.job_id, is_asked=True)
    assert refused.decision.verdict is ClaimVerdict.REFUSE
    assert await counter.job(number, CANCEL) == failed


async def test_an_attempt_that_nobody_recorded_is_repeated_within_a_day_and_then_left_to_a_person(
    counter: Counter, clock: HandClock
) -> None:
    # L10
    first, second = await counter.reserve(timedelta(days=9)), await counter.reserve(timedelta(days=9))
    jobs = []
    for number in (first, second):
        await counter.pay(number)
        jobs.append((await counter.job(number, CONFIRMATION)).job_id)
        await counter.claimed(jobs[-1])
    clock.move(RETRY_KEY_LIVES - MINUTE)
    assert (await counter.end(jobs[0])).status is SENT
    clock.move(MINUTE)
    claim = await counter.claimed(jobs[1])
    assert claim.decision.verdict is ClaimVerdict.FAIL
    assert (await counter.job(second, CONFIRMATION)).status is FAILED


async def test_that_line_took_it_is_true_whoever_says_so(counter: Counter, store: Store, clock: HandClock) -> None:
    # L10, W9: the first sender froze, the second took over; the failure of the first is no state
    number = await counter.reserve()
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    first = await counter.claimed(job_id)
    clock.move(LEASE)
    assert await counter.lease("another") is LeaseAnswer.TAKEN
    second = await counter.claim(job_id, "another")
    assert second is not None
    record = partial(store.notification_jobs.record, HERE, job_id)
    assert await record(first.attempt, "no answer: frozen") is None
    assert (await counter.job(number, CONFIRMATION)).status is PENDING
    recorded = await record(second.attempt, None)
    assert recorded is not None
    assert await record(first.attempt, "no answer: frozen") is None
    assert await counter.job(number, CONFIRMATION) == recorded


async def test_a_late_success_is_not_hidden_by_an_earlier_failure(counter: Counter, store: Store) -> None:
    # L10
    number = await counter.reserve()
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    claim = await counter.claimed(job_id)
    await store.notification_jobs.record(HERE, job_id, claim.attempt, "no answer: cut off")
    recorded = await store.notification_jobs.record(HERE, job_id, claim.attempt, None)
    assert recorded is not None
    assert (recorded.status, recorded.last_error) == (SENT, None)


# the lease


async def test_one_sender_at_a_time(counter: Counter, store: Store, clock: HandClock) -> None:
    # L10
    async with beside(store, clock) as other:
        answers = await asyncio.gather(*(counter.lease(f"sender-{n}", one) for n, one in enumerate([store, other] * 5)))
    assert sorted(answers) == [LeaseAnswer.BUSY] * 9 + [LeaseAnswer.TAKEN]


async def test_a_lease_ends_when_it_is_released_or_runs_out(counter: Counter, store: Store, clock: HandClock) -> None:
    # L10
    assert await counter.lease() is LeaseAnswer.TAKEN
    await store.notification_jobs.release_lease(HERE, "another")
    assert await counter.lease("another") is LeaseAnswer.BUSY
    await store.notification_jobs.release_lease(HERE, ME)
    assert await counter.lease("another") is LeaseAnswer.TAKEN
    clock.move(LEASE - timedelta(microseconds=1))
    assert await counter.lease() is LeaseAnswer.BUSY
    clock.move(timedelta(microseconds=1))
    assert await counter.lease() is LeaseAnswer.TAKEN


async def test_a_lease_of_a_clock_that_jumped_is_not_believed(counter: Counter, clock: HandClock) -> None:
    # W30
    clock.move(timedelta(days=300))
    assert await counter.lease("of the future") is LeaseAnswer.TAKEN
    clock.move(-timedelta(days=300))
    assert await counter.lease() is LeaseAnswer.TAKEN


async def test_a_lease_that_was_taken_a_moment_after_our_turn_began_is_not_ours_to_take(
    counter: Counter, clock: HandClock
) -> None:
    # L10: on a server a turn that waits for the row keeps the time of its beginning
    assert await counter.lease("who came first") is LeaseAnswer.TAKEN
    clock.move(-timedelta(milliseconds=1))
    assert await counter.lease() is LeaseAnswer.BUSY
    clock.move(-LEASE + timedelta(milliseconds=1))
    assert await counter.lease() is LeaseAnswer.BUSY
    clock.move(-timedelta(microseconds=1))
    assert await counter.lease() is LeaseAnswer.TAKEN


async def test_whoever_lost_the_lease_claims_nothing(counter: Counter, store: Store, clock: HandClock) -> None:
    # L10
    number = await counter.reserve()
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    await counter.lease()
    clock.move(LEASE)
    await counter.lease("another")
    assert await counter.claim(job_id) is None
    facts = await store.notification_jobs.find_facts(HERE, job_id)
    assert facts is not None
    assert facts.open_since is None


async def test_every_claim_begins_the_lease_anew(counter: Counter, clock: HandClock) -> None:
    # L10
    number = await counter.reserve()
    await counter.pay(number)
    job_id = (await counter.job(number, CONFIRMATION)).job_id
    await counter.lease()
    clock.move(LEASE - timedelta(seconds=1))
    await counter.claim(job_id)
    clock.move(LEASE - timedelta(seconds=1))
    assert await counter.lease("another") is LeaseAnswer.BUSY


@pytest.mark.parametrize(
    ("kind", "name", "answer"),
    [
        (PauseKind.EVERYTHING, None, LeaseAnswer.PAUSED),
        (PauseKind.CHANNEL, "line", LeaseAnswer.PAUSED),
        (PauseKind.CHANNEL, "email", LeaseAnswer.TAKEN),
    ],
)
async def test_nobody_sends_while_an_operator_has_stopped_line(
    counter: Counter, store: Store, kind: PauseKind, name: str | None, answer: LeaseAnswer
) -> None:
    # N4.7, W31: what a restore paused stays paused
    await store.pauses.add(HERE, kind, name, "operator")
    assert await counter.lease() is answer
