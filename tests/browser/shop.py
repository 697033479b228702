"""A shop behind a real socket: a folder in; the whole product in a thread, its clock and its LINE in our hand, out."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import apsw
import uvicorn
from msgspec.structs import replace

from noroshi.bootstrap.machine import Machine
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import join
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant, plus
from noroshi.domain.notification_jobs import JobKind
from noroshi.domain.records import KeyScope
from noroshi.domain.reservations import Customer, FarmId, NewReservation, Payment, ReservationId
from noroshi.entrypoints.api.app import build_app
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.dice import SystemDice
from noroshi.machine.meter import NullMeter
from noroshi.machine.prometheus import PrometheusMeter
from noroshi.machine.secrets import load_secrets
from noroshi.settings import read_settings
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import open_inline_store
from tests.reservation_cast import FARM, HANAKO, LINE_USER_ID, jst
from tests.stand_ins.line_in_memory import LineInMemory
from tests.stories.world import StillRenderer

T = TypeVar("T")

OPENED = jst("2026-03-02 18:00")


class MovedClock:
    """Stands still until a test moves it; what must wait does so in real time."""

    def __init__(self) -> None:
        self._now = OPENED

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._now / 1_000_000

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(min(span.total_seconds(), 0.01))

    def move(self, span: timedelta) -> None:
        self._now = plus(self._now, span)


class ServedShop:
    """`key` is an operator's, `reader` one that may only look."""

    key: str
    reader: str

    def __init__(self, folder: Path) -> None:
        self.clock = MovedClock()
        self.line = LineInMemory(self.clock)
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._open)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def worked() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(worked(), self._loop).result(20)

    async def _open(self) -> None:
        settings = read_settings({}, {"data": str(self._folder), "public_url": self.url})
        secrets = load_secrets(self._folder, None)
        machine = Machine(
            clock=self.clock,
            dice=SystemDice(),
            meter=PrometheusMeter(),
            crash_points=NoCrashPoints(),
            renderer=StillRenderer(),
            secrets=secrets,
        )
        self._file = settings.store_path
        store = open_inline_store(
            open_connection(str(self._file), synchronous="OFF"),
            sealer=machine.sealer,
            clock=self.clock,
            meter=NullMeter(),
            crash_points=machine.crash_points,
        )
        self.noroshi: Noroshi = join(settings, machine, store, None, is_dev=True, line=self.line)
        await store.start()
        self.key = await self.noroshi.mint_key("operator", list(KeyScope))
        self.reader = await self.noroshi.mint_key("reader", [KeyScope.READ])
        await self._furnish()
        config = uvicorn.Config(build_app(self.noroshi), log_config=None, lifespan="off", access_log=False)
        self._server = uvicorn.Server(config)
        self._serving = asyncio.create_task(self._server._serve([self._socket]))

    async def _furnish(self) -> None:
        shop = self.noroshi.shop.reservations
        await shop.put_customer(DEFAULT_TENANT, HANAKO)
        await shop.put_customer(DEFAULT_TENANT, Customer("unlinked", "<b>次郎</b> & sons"))
        farm = await shop.put_farm(DEFAULT_TENANT, replace(FARM, farm_id=FarmId(0)))
        assert farm is not None
        self.farm_id = farm.farm_id

    async def _close(self) -> None:
        self._server.should_exit = True
        await self._serving
        self._socket.close()

    # the words of tests

    def reserve(self, pickup_in: timedelta = timedelta(days=3), customer_id: str = "hanako") -> ReservationId:
        start = plus(self.clock.now(), pickup_in)
        new = NewReservation(
            farm_id=self.farm_id,
            customer_id=customer_id,
            pickup_start=start,
            pickup_end=plus(start, timedelta(hours=1)),
            pickup_code="0417",
            total=9_500,
            qty_5=2,
            qty_10=1,
            subtotal_5=5_000,
            subtotal_10=4_500,
        )
        booking = self.run(lambda: self.noroshi.shop.reservations.add(DEFAULT_TENANT, new))
        assert booking is not None
        return booking.reservation.reservation_id

    def meet(self, customer_id: str, name: str) -> None:
        customer = Customer(customer_id, name, LINE_USER_ID)
        self.run(lambda: self.noroshi.shop.reservations.put_customer(DEFAULT_TENANT, customer))

    def pay(self, number: ReservationId, amount: int = 9_500) -> None:
        payment = Payment(number, amount, "jpy", "pi_1")
        self.run(lambda: self.noroshi.shop.schedule_for_reservation(DEFAULT_TENANT, payment))

    def cancel(self, number: ReservationId) -> None:
        self.run(lambda: self.noroshi.shop.schedule_cancel_completed(DEFAULT_TENANT, number))

    def forget(self, number: ReservationId, kind: JobKind) -> None:
        """Somebody's hand in the table."""
        statement = "DELETE FROM notification_jobs WHERE reservation_id = ? AND kind = ?"
        with closing(apsw.Connection(str(self._file))) as connection:
            connection.execute(statement, (number, kind.value))

    def link(self, number: ReservationId) -> str:
        view = self.run(lambda: self.noroshi.shop.view_booking(DEFAULT_TENANT, number))
        assert view is not None
        return view.link
