"""StoredReservations: farms, customers and reservations in, rows out, and back as bookings."""

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import Instant, instant_of_iso, iso
from noroshi.domain.notification_jobs import Booking, Job, JobId, JobKind, JobStatus
from noroshi.domain.reservations import (
    Customer,
    Farm,
    FarmId,
    NewReservation,
    PaymentStatus,
    ReminderPolicy,
    Reservation,
    ReservationId,
    ReservationStatus,
)
from noroshi.ports.sealer import Sealer
from noroshi.storage.turns import Readings, Row, Statements, Turn, Turns

_LAST = ReservationId(2**63 - 1)
_FIELD = "line_user_id"

JOB_COLUMNS = 12
_RESERVATION_COLUMNS = 22
_FARM_COLUMNS = 9


def when(text: str | None) -> Instant | None:
    return None if text is None else instant_of_iso(text)


async def count_on(turn: Turn, tenant: TenantId, name: str, how_many: int = 1) -> int:
    """The first of `how_many` new numbers."""
    row = await turn.one("count_on", tenant, name, how_many)
    assert row is not None  # noqa: S101 - it is inserted or counted on
    return int(row[0]) - how_many + 1


class CustomerSealer:
    """A LINE user id is closed with the key of its customer, for whom nobody else's key fits."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def new_key(self, tenant: TenantId, customer_id: str) -> bytes:
        return self._sealer.new_user_key(tenant, _owner(customer_id))

    def seal(self, data_key: bytes, tenant: TenantId, customer_id: str, clear: str | None) -> bytes | None:
        if clear is None:
            return None
        return self._sealer.seal(data_key, tenant, _owner(customer_id), _FIELD, clear)

    def open(self, data_key: bytes, tenant: TenantId, customer_id: str, sealed: bytes | None) -> str | None:
        return None if sealed is None else self._sealer.open(data_key, tenant, _owner(customer_id), _FIELD, sealed)


def _owner(customer_id: str) -> str:
    """Apart from the users of the platform, whose ids may be the same."""
    return f"customer/{customer_id}"


def read_job(row: Row) -> Job:
    """From its twelve columns."""
    return Job(
        job_id=JobId(row[0]),
        reservation_id=ReservationId(row[1]),
        farm_id=FarmId(row[2]),
        kind=JobKind(row[3]),
        scheduled_at=instant_of_iso(row[4]),
        status=JobStatus(row[5]),
        attempt_count=row[6],
        last_error=row[7],
        message_text=row[8],
        has_line_user_id=row[9] is not None,
        created_at=instant_of_iso(row[10]),
        updated_at=instant_of_iso(row[11]),
    )


def _read_farm(row: Row) -> Farm:
    return Farm(
        farm_id=FarmId(row[0]),
        name=row[1],
        pickup_place_name=row[2],
        pickup_map_url=row[3],
        pickup_detail_memo=row[4],
        label_5kg=row[5],
        label_10kg=row[6],
        label_25kg=row[7],
        reminder_policy=ReminderPolicy(row[8]),
    )


def _read_reservation(row: Row) -> Reservation:
    return Reservation(
        reservation_id=ReservationId(row[0]),
        farm_id=FarmId(row[1]),
        customer_id=row[2],
        status=ReservationStatus(row[3]),
        payment_status=PaymentStatus(row[4]),
        pickup_start=instant_of_iso(row[5]),
        pickup_end=instant_of_iso(row[6]),
        pickup_code=row[7],
        qty_5=row[8],
        qty_10=row[9],
        qty_25=row[10],
        subtotal_5=row[11],
        subtotal_10=row[12],
        subtotal_25=row[13],
        total=row[14],
        reminder_policy=None if row[15] is None else ReminderPolicy(row[15]),
        paid_amount=row[16],
        payment_reference=row[17],
        confirmed_at=when(row[18]),
        cancelled_at=when(row[19]),
        created_at=instant_of_iso(row[20]),
        updated_at=instant_of_iso(row[21]),
    )


class BookingReader:
    """Bookings from rows, inside a turn or a reading."""

    def __init__(self, sealer: CustomerSealer) -> None:
        self._sealer = sealer

    async def find(self, reader: Statements, tenant: TenantId, reservation_id: ReservationId) -> Booking | None:
        rows = await reader.rows("find_booking", tenant, reservation_id)
        return next(iter(await self.read(reader, tenant, rows)), None)

    async def read(self, reader: Statements, tenant: TenantId, rows: list[Row]) -> list[Booking]:
        jobs: dict[int, list[Job]] = {row[0]: [] for row in rows}
        for row in await reader.rows_for("jobs_of_reservations", [(tenant, number) for number in jobs]):
            jobs[row[1]].append(read_job(row))
        return [self._read_one(tenant, row, jobs[row[0]]) for row in rows]

    def _read_one(self, tenant: TenantId, row: Row, jobs: list[Job]) -> Booking:
        farm_from, customer_from = _RESERVATION_COLUMNS, _RESERVATION_COLUMNS + _FARM_COLUMNS
        return Booking(
            reservation=_read_reservation(row),
            farm=_read_farm(row[farm_from:customer_from]),
            customer=self.read_customer(tenant, row[customer_from:]),
            jobs=tuple(jobs),
        )

    def read_customer(self, tenant: TenantId, row: Row) -> Customer:
        customer_id, name, data_key, sealed = row
        return Customer(customer_id, name, self._sealer.open(data_key, tenant, customer_id, sealed))


class StoredReservations:
    """Implements ports/reservations.py."""

    def __init__(self, turns: Turns, readings: Readings, sealer: Sealer) -> None:
        self._turns = turns
        self._readings = readings
        self._sealer = CustomerSealer(sealer)
        self._bookings = BookingReader(self._sealer)

    async def put_farm(self, tenant: TenantId, farm: Farm) -> Farm | None:
        texts = (
            *(farm.name, farm.pickup_place_name, farm.pickup_map_url, farm.pickup_detail_memo),
            *(farm.label_5kg, farm.label_10kg, farm.label_25kg, farm.reminder_policy.value),
        )

        async def work(turn: Turn) -> Farm | None:
            farm_id = farm.farm_id or await count_on(turn, tenant, "farm")
            name = "replace_farm" if farm.farm_id else "insert_farm"
            is_done = await turn.has_changed(name, tenant, farm_id, *texts, iso(turn.now))
            row = await turn.one("find_farm", tenant, farm_id) if is_done else None
            return None if row is None else _read_farm(row)

        return await self._turns.turn("put_farm", work)

    async def list_farms(self, tenant: TenantId, after: FarmId, limit: int) -> list[Farm]:
        rows = await self._readings.read(lambda reader: reader.rows("list_farms", tenant, after, limit))
        return [_read_farm(row) for row in rows]

    async def find_farm(self, tenant: TenantId, farm_id: FarmId) -> Farm | None:
        row = await self._readings.read(lambda reader: reader.one("find_farm", tenant, farm_id))
        return None if row is None else _read_farm(row)

    async def put_customer(self, tenant: TenantId, customer: Customer) -> None:
        customer_id = customer.customer_id

        async def work(turn: Turn) -> None:
            known = await turn.one("find_customer", tenant, customer_id)
            data_key = known[2] if known else self._sealer.new_key(tenant, customer_id)
            sealed = self._sealer.seal(data_key, tenant, customer_id, customer.line_user_id)
            await turn.run("put_customer", tenant, customer_id, data_key, customer.name, sealed, iso(turn.now))

        await self._turns.turn("put_customer", work)

    async def find_customer(self, tenant: TenantId, customer_id: str) -> Customer | None:
        row = await self._readings.read(lambda reader: reader.one("find_customer", tenant, customer_id))
        return None if row is None else self._bookings.read_customer(tenant, row)

    async def add(self, tenant: TenantId, new: NewReservation) -> Booking | None:
        async def work(turn: Turn) -> Booking | None:
            farm = await turn.one("find_farm", tenant, new.farm_id)
            if farm is None or await turn.one("find_customer", tenant, new.customer_id) is None:
                return None
            number = await count_on(turn, tenant, "reservation")
            await turn.run(
                "insert_reservation",
                *(tenant, number, new.farm_id, new.customer_id, iso(new.pickup_start), iso(new.pickup_end)),
                *(new.pickup_code, new.qty_5, new.qty_10, new.qty_25, new.subtotal_5, new.subtotal_10),
                *(new.subtotal_25, new.total, iso(turn.now)),
            )
            return await self._bookings.find(turn, tenant, ReservationId(number))

        return await self._turns.turn("add_reservation", work)

    async def find(self, tenant: TenantId, reservation_id: ReservationId) -> Booking | None:
        return await self._readings.read(lambda reader: self._bookings.find(reader, tenant, reservation_id))

    async def list_bookings(self, tenant: TenantId, before: ReservationId | None, limit: int) -> list[Booking]:
        async def read(reader: Statements) -> list[Booking]:
            rows = await reader.rows("list_bookings", tenant, _LAST if before is None else before, limit)
            return await self._bookings.read(reader, tenant, rows)

        return await self._readings.read(read)
