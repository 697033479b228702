"""Reservations on every store: farms, customers, times, payments and cancellations."""

import asyncio
import re
from datetime import timedelta

import pytest
from msgspec.structs import replace

from noroshi.domain.instants import plus
from noroshi.domain.notification_jobs import (
    CancelVerdict,
    ClaimVerdict,
    PaymentVerdict,
)
from noroshi.domain.reservations import (
    Farm,
    FarmId,
    PaymentStatus,
    ReminderPolicy,
    ReservationId,
    ReservationStatus,
)
from tests.callers import ForeignCaller
from tests.conformance.company import beside
from tests.conformance.shop_counter import (
    CANCEL,
    CONFIRMATION,
    ELSEWHERE,
    FAILED,
    HERE,
    IN_THREE_DAYS,
    MINUTE,
    PENDING,
    REMINDER,
    SENT,
    Counter,
)
from tests.conformance.stores import HandClock, Store
from tests.reservation_cast import FARM, HANAKO, LINE_USER_ID

# farms, customers, reservations


async def test_a_farm_is_kept_replaced_and_listed(counter: Counter, store: Store) -> None:
    # L16
    assert counter.farm == replace(FARM, farm_id=counter.farm.farm_id)
    bare = Farm(farm_id=counter.farm.farm_id, name="新しい名", reminder_policy=ReminderPolicy.TIME_SLOTS)
    assert await counter.put_farm(bare) == bare
    second = await counter.put_farm(Farm(name="二つ目"))
    assert await store.reservations.list_farms(HERE, FarmId(0), 10) == [bare, second]
    assert await store.reservations.list_farms(HERE, bare.farm_id, 10) == [second]
    assert await store.reservations.find_farm(HERE, second.farm_id) == second


async def test_a_farm_that_was_never_kept_cannot_be_replaced(store: Store) -> None:
    assert await store.reservations.put_farm(HERE, Farm(farm_id=FarmId(99), name="nowhere")) is None


async def test_a_line_user_id_lies_sealed_in_the_store(counter: Counter, store: Store, caller: ForeignCaller) -> None:
    # N17.2: also in the jobs, from which it is opened for sending
    number = await counter.reserve()
    await counter.pay(number)
    assert await store.reservations.find_customer(HERE, "hanako") == HANAKO
    kept = [
        *caller.rows("SELECT line_user_id FROM customers"),
        *caller.rows("SELECT customer_line_user_id FROM notification_jobs"),
    ]
    assert len(kept) == 3
    assert all(LINE_USER_ID.encode() not in bytes(sealed) for (sealed,) in kept)
    assert (await counter.claimed((await counter.job(number, CONFIRMATION)).job_id)).line_user_id == LINE_USER_ID


async def test_a_reservation_is_found_with_its_farm_and_its_customer(counter: Counter, clock: HandClock) -> None:
    # L16
    number = await counter.reserve(qty_25=1, subtotal_25=11_000, total=500)
    booking = await counter.find(number)
    assert (booking.farm, booking.customer, booking.jobs) == (counter.farm, HANAKO, ())
    kept = booking.reservation
    assert (kept.status, kept.payment_status) == (ReservationStatus.PENDING, PaymentStatus.UNPAID)
    assert (kept.event_start, kept.event_end) == (plus(clock.now(), IN_THREE_DAYS), kept.pickup_end)
    assert (kept.rice_subtotal, kept.total, kept.pickup_code) == (20_500, 500, "0417")
    assert (kept.created_at, kept.confirmed_at, kept.cancelled_at) == (clock.now(), None, None)


async def test_a_reservation_needs_a_farm_and_a_customer_that_exist(counter: Counter, store: Store) -> None:
    assert await store.reservations.add(HERE, counter.new(farm_id=FarmId(99))) is None
    assert await store.reservations.add(HERE, counter.new(customer_id="nobody")) is None
    assert await store.reservations.add(ELSEWHERE, counter.new()) is None


async def test_reservations_are_listed_newest_first(counter: Counter, store: Store) -> None:
    numbers = [await counter.reserve() for _ in range(4)]
    await counter.pay(numbers[1])
    listed = await store.reservations.list_bookings(HERE, None, 3)
    assert [one.reservation.reservation_id for one in listed] == numbers[:0:-1]
    assert [len(one.jobs) for one in listed] == [0, 0, 2]
    older = await store.reservations.list_bookings(HERE, numbers[1], 3)
    assert [one.reservation.reservation_id for one in older] == numbers[:1]


async def test_another_tenant_sees_nothing(counter: Counter, store: Store) -> None:
    # API1
    number = await counter.reserve()
    await counter.pay(number)
    job = await counter.job(number, CONFIRMATION)
    assert await store.reservations.find(ELSEWHERE, number) is None
    assert await store.reservations.list_bookings(ELSEWHERE, None, 10) == []
    assert await store.reservations.find_customer(ELSEWHERE, "hanako") is None
    assert await store.notification_jobs.find_facts(ELSEWHERE, job.job_id) is None
    assert (await store.notification_jobs.list_due(ELSEWHERE, None, 10)).total == 0


# times


TABLES = (
    *("farms", "customers", "reservations", "notification_jobs", "notification_job_attempts", "notification_senders"),
    "reservation_counters",
)
TIME = re.compile(r"\w+_at|until|pickup_(start|end)")
FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
WRONG = [
    "2026-03-02T09:00:00.000000",
    "2026-03-02T18:00:00.000000+09:00",
    "2026-03-02T09:00:00+00:00",
    "2026-03-02T09:00:00.000000Z",
    "2026-03-02 09:00:00.000000+00:00",
    "",
]


class Schema:
    """What a store says of its own tables."""

    def __init__(self, caller: ForeignCaller, *, is_on_postgres: bool) -> None:
        self.caller = caller
        self._is_on_postgres = is_on_postgres

    def columns(self, table: str) -> list[str]:
        question = f"SELECT name FROM pragma_table_info('{table}')"  # noqa: S608
        if self._is_on_postgres:
            question = (
                "SELECT column_name FROM information_schema.columns "  # noqa: S608
                f"WHERE table_schema = current_schema() AND table_name = '{table}'"
            )
        return [name for (name,) in self.caller.rows(question)]

    def indexes(self, table: str) -> set[tuple[str, ...]]:
        """The columns of each, in their order; that of the primary key among them."""
        question = (
            "SELECT l.name, i.name FROM pragma_index_list('{table}') l, pragma_index_info(l.name) i "
            "ORDER BY l.name, i.seqno"
        )
        if self._is_on_postgres:
            question = (
                "SELECT i.indexrelid::text, a.attname FROM pg_index i "
                "CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k(column_number, place) "
                "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number "
                "WHERE i.indrelid = '{table}'::regclass ORDER BY i.indexrelid, k.place"
            )
        found: dict[str, list[str]] = {}
        for index, column in self.caller.rows(question.format(table=table)):
            found.setdefault(index, []).append(column)
        return {tuple(columns) for columns in found.values()}


@pytest.fixture
def schema(request: pytest.FixtureRequest, caller: ForeignCaller) -> Schema:
    return Schema(caller, is_on_postgres=request.node.callspec.params["store"] == "postgres")


def times_of(schema: Schema) -> list[tuple[str, str]]:
    """Every column of time, by its name."""
    found = [(table, name) for table in TABLES for name in schema.columns(table) if TIME.fullmatch(name)]
    assert {table for table, _ in found} == {*TABLES} - {"reservation_counters"}
    return found


async def test_the_table_of_jobs_is_the_one_of_the_specification(counter: Counter, schema: Schema) -> None:
    # L1: the columns of S1 and of S3, and what is looked for by an index
    assert {
        *("job_id", "reservation_id", "kind", "scheduled_at", "status", "attempt_count", "last_error"),
        *("created_at", "updated_at", "farm_id", "customer_line_user_id", "message_text"),
    } == set(schema.columns("notification_jobs")) - {"tenant"}
    assert schema.indexes("notification_jobs") == {
        ("tenant", "job_id"),
        ("tenant", "reservation_id", "kind"),
        ("tenant", "status", "scheduled_at"),
    }


async def test_a_second_job_of_a_kind_cannot_be_stored(counter: Counter, caller: ForeignCaller) -> None:
    # L1: of each kind a reservation has one
    number, other = await counter.reserve(), await counter.reserve()
    await counter.pay(number)
    await counter.pay(other)
    for change in ("kind = 'CONFIRMATION'", f"reservation_id = {number}"):
        with pytest.raises(Exception, match=r"(?i)unique"):
            caller.rows(f"UPDATE notification_jobs SET {change} RETURNING 1")  # noqa: S608
        caller.rollback()


async def filled(counter: Counter) -> None:
    """A row in every table, and something in every column of time."""
    number = await counter.reserve()
    await counter.pay(number)
    await counter.end((await counter.job(number, CONFIRMATION)).job_id)
    await counter.cancel(number)
    await counter.lease()


async def test_every_time_is_stored_as_utc_text_of_one_form(counter: Counter, schema: Schema) -> None:
    # L2
    await filled(counter)
    caller = schema.caller
    for table, column in times_of(schema):
        values = [value for (value,) in caller.rows(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")]  # noqa: S608
        assert values, (table, column)
        assert all(FORM.fullmatch(value) for value in values), (table, column)


@pytest.mark.parametrize("text", WRONG)
async def test_a_time_of_any_other_form_cannot_be_stored(counter: Counter, schema: Schema, text: str) -> None:
    # L2: above all a naive one
    await filled(counter)
    caller = schema.caller
    for table, column in times_of(schema):
        with pytest.raises(Exception, match=r"(?i)check"):
            caller.rows(f"UPDATE {table} SET {column} = '{text}' RETURNING 1")  # noqa: S608
        caller.rollback()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notification_jobs SET kind = 'CANCEL_TEMPLATE'",
        "UPDATE notification_jobs SET status = 'DASH'",
        "UPDATE notification_jobs SET status = 'NONE'",
        "UPDATE reservations SET status = 'paid'",
        "UPDATE farms SET reminder_policy = 'never'",
        "UPDATE reservations SET pickup_end = pickup_start",
    ],
)
async def test_what_the_specification_does_not_know_cannot_be_stored(
    counter: Counter, caller: ForeignCaller, change: str
) -> None:
    # L3, L4, L6
    await filled(counter)
    with pytest.raises(Exception, match=r"(?i)check"):
        caller.rows(f"{change} RETURNING 1")
    caller.rollback()


# payments


async def test_a_payment_confirms_and_makes_both_jobs_in_one_commit(counter: Counter, clock: HandClock) -> None:
    # L5, L6, L7
    number = await counter.reserve()
    assert await counter.pay(number) is PaymentVerdict.CONFIRMED
    booking = await counter.find(number)
    kept = booking.reservation
    assert (kept.status, kept.payment_status) == (ReservationStatus.CONFIRMED, PaymentStatus.SUCCEEDED)
    assert (kept.confirmed_at, kept.paid_amount, kept.payment_reference) == (clock.now(), 9_500, "pi_1")
    assert kept.reminder_policy is ReminderPolicy.FIXED_48H
    assert [(job.kind, job.scheduled_at, job.status, job.attempt_count) for job in booking.jobs] == [
        (CONFIRMATION, clock.now(), PENDING, 0),
        (REMINDER, plus(clock.now(), timedelta(days=1)), PENDING, 0),
    ]


async def test_a_payment_again_changes_nothing_and_keeps_the_first_confirmations_time(
    counter: Counter, clock: HandClock
) -> None:
    # L5
    number = await counter.reserve()
    await counter.pay(number)
    before = await counter.find(number)
    clock.move(MINUTE)
    assert await counter.pay(number) is PaymentVerdict.REPEATED
    assert await counter.find(number) == before


async def test_many_payments_at_once_make_one_job_of_each_kind(
    counter: Counter, store: Store, clock: HandClock
) -> None:
    # L5
    number = await counter.reserve()
    async with beside(store, clock) as other:
        verdicts = await asyncio.gather(*(counter.pay(number, store=one) for one in [store, other] * 25))
    assert verdicts.count(PaymentVerdict.CONFIRMED) == 1
    assert verdicts.count(PaymentVerdict.REPEATED) == 49
    assert [job.kind for job in (await counter.find(number)).jobs] == [CONFIRMATION, REMINDER]


async def test_payments_of_many_reservations_at_once_get_different_jobs(
    counter: Counter, store: Store, clock: HandClock
) -> None:
    # L1: no two jobs have the same number
    numbers = [await counter.reserve() for _ in range(20)]
    async with beside(store, clock) as other:
        await asyncio.gather(*(counter.pay(one, store=store if one % 2 else other) for one in numbers))
    ids = [job.job_id for one in numbers for job in (await counter.find(one)).jobs]
    assert len(set(ids)) == 40


async def test_a_payment_that_is_too_low_is_kept_and_confirms_nothing(counter: Counter) -> None:
    # L5: the operator sees what came in, and the rest may still come
    number = await counter.reserve()
    before = await counter.find(number)
    assert await counter.pay(number, 9_499) is PaymentVerdict.AMOUNT_TOO_LOW
    after = await counter.find(number)
    assert after.reservation == replace(before.reservation, paid_amount=9_499, payment_reference="pi_1")
    assert after.jobs == ()
    assert await counter.pay(number) is PaymentVerdict.CONFIRMED
    assert await counter.pay(number, 9_499) is PaymentVerdict.AMOUNT_TOO_LOW
    kept = (await counter.find(number)).reservation
    assert (kept.payment_status, kept.paid_amount) == (PaymentStatus.SUCCEEDED, 9_500)


async def test_a_payment_for_a_reservation_that_is_not_there_changes_nothing(counter: Counter) -> None:
    # L5
    number = await counter.reserve()
    before = await counter.find(number)
    assert await counter.pay(ReservationId(99)) is PaymentVerdict.UNKNOWN_RESERVATION
    assert await counter.find(number) == before


async def test_a_job_keeps_the_text_it_was_made_with_whatever_becomes_of_its_farm(counter: Counter) -> None:
    # L1: what the operator sees is what is sent
    number = await counter.reserve()
    await counter.pay(number)
    job = await counter.job(number, CONFIRMATION)
    await counter.put_farm(replace(counter.farm, pickup_place_name="新しい直売所"))
    assert (await counter.find(number)).farm.pickup_place_name == "新しい直売所"
    claim = await counter.claimed(job.job_id)
    assert claim.before.message_text == job.message_text
    assert FARM.pickup_place_name is not None
    assert FARM.pickup_place_name in claim.before.message_text


async def test_a_payment_for_a_cancelled_reservation_is_recorded_and_nothing_else(counter: Counter) -> None:
    # L5
    number = await counter.reserve()
    await counter.cancel(number)
    assert await counter.pay(number) is PaymentVerdict.CANCELLED
    booking = await counter.find(number)
    kept = booking.reservation
    assert (kept.status, kept.payment_status) == (ReservationStatus.CANCELLED, PaymentStatus.SUCCEEDED)
    assert kept.confirmed_at is None
    assert [job.kind for job in booking.jobs] == [CANCEL]


# cancellations


async def test_a_cancellation_deletes_the_pending_reminder_and_nothing_else(counter: Counter, clock: HandClock) -> None:
    # L7
    number, other = await counter.reserve(), await counter.reserve()
    await counter.pay(number)
    await counter.pay(other)
    clock.move(MINUTE)
    assert await counter.cancel(number) is CancelVerdict.CANCELLED
    booking = await counter.find(number)
    assert booking.reservation.cancelled_at == clock.now()
    assert [(job.kind, job.scheduled_at) for job in booking.jobs] == [
        (CONFIRMATION, plus(clock.now(), -MINUTE)),
        (CANCEL, clock.now()),
    ]
    assert [job.kind for job in (await counter.find(other)).jobs] == [CONFIRMATION, REMINDER]


@pytest.mark.parametrize("error", [None, "500: no"])
async def test_a_reminder_that_has_its_result_outlives_the_cancellation(
    counter: Counter, clock: HandClock, error: str | None
) -> None:
    # L7, L4
    number = await counter.reserve()
    await counter.pay(number)
    clock.move(timedelta(days=1))
    await counter.end((await counter.job(number, REMINDER)).job_id, error)
    await counter.cancel(number)
    assert (await counter.job(number, REMINDER)).status is (SENT if error is None else FAILED)


async def test_a_reminder_that_is_being_sent_is_not_deleted_and_its_result_is_recorded(
    counter: Counter, store: Store, clock: HandClock
) -> None:
    # L10
    number = await counter.reserve()
    await counter.pay(number)
    clock.move(timedelta(days=1))
    job = await counter.job(number, REMINDER)
    claim = await counter.claimed(job.job_id)
    await counter.cancel(number)
    assert (await counter.job(number, REMINDER)).status is PENDING
    recorded = await store.notification_jobs.record(HERE, job.job_id, claim.attempt, None)
    assert recorded is not None
    assert (await counter.job(number, REMINDER)).status is SENT


async def test_a_claim_and_a_cancellation_at_once_never_lose_a_reminder_that_was_claimed(
    counter: Counter, store: Store, clock: HandClock
) -> None:
    # L10
    for _ in range(10):
        number = await counter.reserve()
        await counter.pay(number)
        clock.move(timedelta(days=1))
        job_id = (await counter.job(number, REMINDER)).job_id
        await counter.lease()
        claim, _ = await asyncio.gather(counter.claim(job_id), counter.cancel(number))
        left = (await counter.find(number)).job(REMINDER)
        assert (left is None) == (claim is None or claim.decision.verdict is not ClaimVerdict.SEND)


async def test_a_second_cancellation_changes_nothing(counter: Counter, clock: HandClock) -> None:
    # L7
    number = await counter.reserve()
    await counter.cancel(number)
    before = await counter.find(number)
    clock.move(MINUTE)
    assert await counter.cancel(number) is CancelVerdict.REPEATED
    assert await counter.find(number) == before
    assert await counter.cancel(ReservationId(99)) is None
