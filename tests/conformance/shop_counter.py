"""The shop counter: a store in, the words in which tests of reservations speak to it out."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.instants import plus
from noroshi.domain.notification_jobs import (
    Booking,
    CancelVerdict,
    Claim,
    ClaimVerdict,
    Job,
    JobId,
    JobKind,
    JobStatus,
    LeaseAnswer,
    PaymentVerdict,
)
from noroshi.domain.reservations import (
    Farm,
    FarmId,
    NewReservation,
    Payment,
    ReservationId,
)
from noroshi.reservations.claims import LEASE, decide_claim
from noroshi.reservations.scheduling import decide_cancellation, decide_confirmation
from tests.conformance.stores import HandClock, Store
from tests.reservation_cast import FARM, HANAKO

HERE = DEFAULT_TENANT
ELSEWHERE = TenantId(2)
CONFIRMATION, REMINDER, CANCEL = JobKind.CONFIRMATION, JobKind.REMINDER, JobKind.CANCEL_COMPLETED
PENDING, SENT, FAILED = JobStatus.PENDING, JobStatus.SENT, JobStatus.FAILED
MINUTE = timedelta(minutes=1)
IN_THREE_DAYS = timedelta(days=3)
ME = "me"


class Counter:
    """The words of these tests over one store."""

    def __init__(self, store: Store, clock: HandClock) -> None:
        self.store = store
        self.clock = clock

    async def open(self) -> "Counter":
        await self.store.reservations.put_customer(HERE, HANAKO)
        self.farm = await self.put_farm(replace(FARM, farm_id=FarmId(0)))
        return self

    async def put_farm(self, farm: Farm, tenant: TenantId = HERE) -> Farm:
        kept = await self.store.reservations.put_farm(tenant, farm)
        assert kept is not None
        return kept

    def new(self, pickup_in: timedelta = IN_THREE_DAYS, **fields: Any) -> NewReservation:
        start = plus(self.clock.now(), pickup_in)
        return NewReservation(
            **{
                "farm_id": self.farm.farm_id,
                "customer_id": HANAKO.customer_id,
                "pickup_start": start,
                "pickup_end": plus(start, timedelta(hours=1)),
                "pickup_code": "0417",
                "total": 9_500,
                "qty_5": 2,
                "subtotal_5": 9_500,
                **fields,
            }
        )

    async def reserve(self, pickup_in: timedelta = IN_THREE_DAYS, **fields: Any) -> ReservationId:
        booking = await self.store.reservations.add(HERE, self.new(pickup_in, **fields))
        assert booking is not None
        return booking.reservation.reservation_id

    async def find(self, number: ReservationId, tenant: TenantId = HERE) -> Booking:
        booking = await self.store.reservations.find(tenant, number)
        assert booking is not None
        return booking

    async def job(self, number: ReservationId, kind: JobKind) -> Job:
        job = (await self.find(number)).job(kind)
        assert job is not None
        return job

    async def pay(self, number: ReservationId, amount: int = 9_500, store: Store | None = None) -> PaymentVerdict:
        payment = Payment(number, amount, "jpy", "pi_1")
        return await (store or self.store).notification_jobs.schedule_for_reservation(
            HERE, payment, decide_confirmation
        )

    async def cancel(self, number: ReservationId) -> CancelVerdict | None:
        return await self.store.notification_jobs.schedule_cancel_completed(HERE, number, decide_cancellation)

    async def lease(self, holder: str = ME, store: Store | None = None) -> LeaseAnswer:
        return await (store or self.store).notification_jobs.take_lease(HERE, holder, LEASE)

    async def claim(self, job_id: JobId, holder: str = ME, *, is_asked: bool = False) -> Claim | None:
        return await self.store.notification_jobs.claim(HERE, job_id, holder, LEASE, decide_claim, is_asked=is_asked)

    async def claimed(self, job_id: JobId, *, is_asked: bool = False) -> Claim:
        await self.lease()
        claim = await self.claim(job_id, is_asked=is_asked)
        assert claim is not None
        return claim

    async def end(self, job_id: JobId, error: str | None = None, *, is_asked: bool = False) -> Job:
        """Claimed, sent and recorded."""
        claim = await self.claimed(job_id, is_asked=is_asked)
        assert claim.decision.verdict is ClaimVerdict.SEND, claim.decision
        job = await self.store.notification_jobs.record(HERE, job_id, claim.attempt, error)
        assert job is not None
        return job

    async def due(self, first: ReservationId | None = None, limit: int = 50) -> list[JobId]:
        found = await self.store.notification_jobs.list_due(HERE, first, limit)
        return [facts.job.job_id for facts in found.facts]
