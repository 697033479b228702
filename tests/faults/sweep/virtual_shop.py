"""A shop in virtual time, crashing at chosen steps: real rules, a real store, LINE in memory, people who ask again."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from msgspec import Struct

from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import plus
from noroshi.domain.notification_jobs import JobKind
from noroshi.domain.reservations import Customer, Farm, FarmId, NewReservation, Payment, ReservationId
from noroshi.machine.meter import NullMeter
from noroshi.machine.sealing import AesSealer
from noroshi.reservations.links import Links
from noroshi.reservations.sender import Sender
from noroshi.reservations.shop import Shop
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import open_inline_store
from noroshi.storage.store import Store
from tests.faults.machinery.kept_store import KeptStore, StoreDatabase
from tests.faults.machinery.sim_loop import CrashError
from tests.faults.machinery.sim_machine import SimMachine
from tests.reservation_cast import LINE_USER_ID
from tests.stand_ins.line_in_memory import MONTHLY_LIMIT, LineInMemory
from tests.stores import hasty

MINUTE = timedelta(minutes=1)
PICKUP_IN = timedelta(days=3)
REMINDED_AFTER = timedelta(days=1)

_KEY = bytes(32)
_CALM = 50
"""Steps after which a trial that still is not done never will be."""

Ask = Callable[["VirtualShop"], Awaitable[object]]


class Trial(Struct):
    """What LINE took of one reservation, by kind, and where its jobs ended. `steps` are the points that were passed."""

    number: ReservationId
    taken: dict[JobKind, int]
    ended: dict[JobKind, str]
    steps: list[str]
    crashed_at: str | None = None

    @property
    def lost(self) -> int:
        """Told as SENT and never taken, or left without an end."""
        unsent = sum(self.ended[kind] == "SENT" and not self.taken.get(kind) for kind in self.ended)
        return unsent + sum(status == "PENDING" for status in self.ended.values())

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.taken.values() if count > 1)


class VirtualShop:
    """Through any number of lives on one store. Whoever was not answered asks again in the next: Stripe, the customer,
    and cron, which comes every minute."""

    shop: Shop
    store: Store
    farm_id: FarmId
    number: ReservationId
    reminded: ReservationId | None = None

    def __init__(self, kept: KeptStore, planted: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self.kept = kept
        self.machine = SimMachine(1, is_wired=isinstance(kept, StoreDatabase))
        self.clock = self.machine.clock
        self.line = LineInMemory(self.clock)
        self._planted = planted
        self._live(_furnish)

    def try_out(self, *asks: Ask, crash_at: int = 0, is_cron_late: bool = False) -> Trial:
        """One reservation through all that is asked of the shop, in order; the process ends at step `crash_at` of it
        (0: never). `is_cron_late`: whoever was not answered asks again before cron comes."""
        taken_before, steps, crash = len(self.line.taken), list[str](), None
        points = self.machine.crash_points

        async def begin(shop: "VirtualShop") -> None:
            await _reserve(shop)
            points.listeners[:] = [steps.append]
            if crash_at:
                points.arm_any(crash_at)

        waiting: list[Ask] = [begin, *asks]
        for _ in range(_CALM):
            ended = self._live_through(waiting, is_cron_late=is_cron_late)
            crash = crash or ended
            if ended is None and not waiting:
                break
        points.disarm()
        points.listeners.clear()
        return self._found(taken_before, steps, crash)

    def _live_through(self, waiting: list[Ask], *, is_cron_late: bool) -> str | None:
        """One life: everything that waits, and cron until nothing is due. Where it crashed, if it did."""

        async def script(shop: "VirtualShop") -> None:
            if not is_cron_late:
                await shop.run_cron()
            while waiting:
                await waiting[0](shop)
                del waiting[0]
                await shop.run_cron()

        return self._live(script)

    async def run_cron(self) -> None:
        """Until nothing is due; what a dead sender had is free when its lease has run out."""
        for _ in range(_CALM):
            await self.shop.send_pending_jobs(DEFAULT_TENANT)
            due = await self.store.notification_jobs.list_due(DEFAULT_TENANT, None, 1)
            if not due.total:
                return
            await self.clock.sleep(MINUTE)
        raise AssertionError("something stays due for ever")

    def _live(self, script: Ask) -> str | None:
        with self.machine.life() as life, self._planted():
            try:
                life.loop.run_until_complete(self._begin(script))
            except CrashError as end:
                return str(end)
        return None

    async def _begin(self, script: Ask) -> None:
        self.store = store = self._open_store()
        await store.start()
        machine = self.machine
        self.shop = Shop(
            reservations=store.reservations,
            jobs=store.notification_jobs,
            sender=Sender(store.notification_jobs, self.line, machine.clock, machine.dice, machine.crash_points),
            signatures=None,
            links=Links(_KEY, "http://shop"),
            clock=machine.clock,
            dice=machine.dice,
            is_live=True,
        )
        await script(self)
        await store.stop()

    def _open_store(self) -> Store:
        sealer, machine = AesSealer({1: _KEY}, _KEY), self.machine
        if isinstance(self.kept, StoreDatabase):
            return PostgresStore(
                hasty(self.kept.place),
                sealer=sealer,
                meter=NullMeter(),
                crash_points=machine.crash_points,
                clock=machine.clock,
                is_unsafe=True,
            )
        return open_inline_store(
            open_connection(self.kept.place, synchronous="OFF"),
            sealer=sealer,
            clock=machine.clock,
            meter=NullMeter(),
            crash_points=machine.crash_points,
        )

    def _found(self, taken_before: int, steps: list[str], crash: str | None) -> Trial:
        taken: dict[JobKind, int] = {}
        for one in self.line.taken[taken_before:]:
            kind = _kind_of(one.text)
            taken[kind] = taken.get(kind, 0) + 1
        rows = self.kept.rows("SELECT kind, status FROM notification_jobs WHERE reservation_id = ?", self.number)
        return Trial(self.number, taken, {JobKind(kind): status for kind, status in rows}, steps, crash)


def _kind_of(text: str) -> JobKind:
    return next(kind for kind in JobKind if text.partition("\n")[0] == _FIRST_LINES[kind])


_FIRST_LINES = {
    JobKind.CONFIRMATION: "ご予約いただき、誠にありがとうございます。",
    JobKind.REMINDER: "お米の受け渡し日時が近づいてまいりましたので、ご案内申し上げます。",
    JobKind.CANCEL_COMPLETED: "ご予約のキャンセルを承りました。",
}


async def _furnish(shop: VirtualShop) -> None:
    farm = await shop.store.reservations.put_farm(DEFAULT_TENANT, Farm(name="やまだ農園"))
    assert farm is not None
    shop.farm_id = farm.farm_id
    await shop.store.reservations.put_customer(DEFAULT_TENANT, Customer("hanako", None, LINE_USER_ID))


async def _reserve(shop: VirtualShop) -> None:
    """When whatever a dead sender of the last trial had is free again."""
    await shop.clock.sleep(MINUTE)
    start = plus(shop.clock.now(), PICKUP_IN)
    new = NewReservation(
        farm_id=shop.farm_id,
        customer_id="hanako",
        pickup_start=start,
        pickup_end=plus(start, timedelta(hours=1)),
        pickup_code="0417",
        total=1,
    )
    booking = await shop.store.reservations.add(DEFAULT_TENANT, new)
    assert booking is not None
    shop.number = booking.reservation.reservation_id


# what people ask of the shop


async def pay(shop: VirtualShop) -> None:
    """Stripe tells of the payment by both of its events."""
    for reference in ("cs_1", "pi_1"):
        await shop.shop.schedule_for_reservation(DEFAULT_TENANT, Payment(shop.number, 1, "jpy", reference))


async def cancel(shop: VirtualShop) -> None:
    await shop.shop.schedule_cancel_completed(DEFAULT_TENANT, shop.number)


async def pay_while_line_refuses(shop: VirtualShop) -> None:
    """The month's messages are used up, until the job has failed of it."""
    shop.line.conduct = lambda _to: MONTHLY_LIMIT
    await pay(shop)
    await shop.run_cron()
    shop.line.conduct = lambda _to: None


async def send_again(shop: VirtualShop) -> None:
    """A person presses the button of what has failed, when whatever a dead sender had is free again."""
    await shop.clock.sleep(MINUTE)
    view = await shop.shop.view_booking(DEFAULT_TENANT, shop.number)
    assert view is not None
    for kind in view.kinds:
        if kind.job is not None and kind.no_resend is None:
            await shop.shop.send_single_job(DEFAULT_TENANT, kind.job.job_id)


async def remind_and_cancel(shop: VirtualShop) -> None:
    """Cron comes once when the reminder is due; whatever becomes of it, the customer cancels next."""
    if shop.reminded != shop.number:
        shop.reminded = shop.number
        await shop.clock.sleep(REMINDED_AFTER)
        await shop.shop.send_pending_jobs(DEFAULT_TENANT)
    await cancel(shop)


async def wait_for_the_reminder(shop: VirtualShop) -> None:
    await shop.clock.sleep(REMINDED_AFTER)
    await shop.run_cron()
