"""A play: how long it may take in; a day of a rice shop on the terminal, message by message, out."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import Struct
from rich.console import Console
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from noroshi.bootstrap.playing import Play, played_shop
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant, at, moment_of
from noroshi.domain.line import LineAnswer
from noroshi.domain.notification_jobs import DisplayState, JobId
from noroshi.domain.reservations import Customer, Farm, FarmId, NewReservation, Payment, ReservationId
from noroshi.domain.shop import KindView
from noroshi.entrypoints.api.shop_sentences import japanese

JST = ZoneInfo("Asia/Tokyo")
MINUTE = timedelta(minutes=1)
DAY_IN_MINUTES = 24 * 60
MORNING = datetime(2026, 12, 2, 0, 0, tzinfo=JST)

_WIDTH = 60
_NAMES = {"U" + "a" * 32: "花子", "U" + "b" * 32: "太郎", "U" + "c" * 32: "次郎"}
_FULL = LineAnswer(429, '{"message":"You have reached your monthly limit."}')
_COLOURS = {
    DisplayState.SENT: "green",
    DisplayState.FAILED: "red",
    DisplayState.PENDING: "yellow",
    DisplayState.DASH: "dim",
    DisplayState.NONE: "bold red",
}


class PrintedLine:
    """Implements ports/line.py: every message appears as on the phone. `is_full`: the month's messages are used up."""

    def __init__(self, console: Console) -> None:
        self.now = Instant(0)
        self.is_full = False
        self._console = console
        self._known: set[UUID] = set()

    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        if self.is_full:
            return _FULL
        if retry_key in self._known:
            return LineAnswer(409, '{"message":"The retry key is already accepted"}')
        self._known.add(retry_key)
        title = f"LINE {_NAMES[to]} {_clock_time(self.now)}"
        self._console.print(Panel(Text(text), title=title, title_align="left", border_style="green", width=_WIDTH))
        return LineAnswer(200, "{}")


class Scene(Struct, frozen=True):
    """What happens at a minute of the day."""

    hour: int
    minute: int
    title: str
    act: Callable[["Day"], Awaitable[None]]

    @property
    def moment(self) -> timedelta:
        return timedelta(hours=self.hour, minutes=self.minute)


class Day:
    """The shop's day while it is played."""

    def __init__(self, play: Play, line: PrintedLine, console: Console) -> None:
        self.play = play
        self.line = line
        self.console = console
        self.numbers: dict[str, ReservationId] = {}

    async def open(self) -> None:
        shop = self.play.shop.reservations
        farm = Farm(
            name="やまだ農園",
            pickup_place_name="やまだ農園 直売所",
            pickup_map_url="https://maps.example.jp/yamada",
            pickup_detail_memo="駐車場は建物の裏手にございます。",
        )
        kept = await shop.put_farm(DEFAULT_TENANT, farm)
        self.farm_id = FarmId(0) if kept is None else kept.farm_id
        for line_user_id, name in _NAMES.items():
            await shop.put_customer(DEFAULT_TENANT, Customer(name, name, line_user_id))

    async def reserve(self, who: str, day: int, hour: int) -> None:
        start = MORNING.replace(day=day, hour=hour)
        new = NewReservation(
            farm_id=self.farm_id,
            customer_id=who,
            pickup_start=at(start),
            pickup_end=at(start + timedelta(hours=1)),
            pickup_code=self.play.shop.new_pickup_code(),
            total=9_500,
            qty_5=1,
            qty_10=1,
            subtotal_5=2_800,
            subtotal_10=6_700,
        )
        booking = await self.play.shop.reservations.add(DEFAULT_TENANT, new)
        if booking is not None:
            self.numbers[who] = booking.reservation.reservation_id

    async def pay(self, who: str, times: int = 1) -> None:
        payment = Payment(self.numbers[who], 9_500, "jpy", f"pi_{who}")
        for _ in range(times):
            await self.play.shop.schedule_for_reservation(DEFAULT_TENANT, payment)

    async def cancel(self, who: str) -> None:
        await self.play.shop.schedule_cancel_completed(DEFAULT_TENANT, self.numbers[who])

    async def send_again(self, who: str) -> None:
        view = await self.play.shop.view_booking(DEFAULT_TENANT, self.numbers[who])
        jobs = [] if view is None else [kind.job for kind in view.kinds if kind.job and kind.no_resend is None]
        for job in jobs:
            await self.play.shop.send_single_job(DEFAULT_TENANT, JobId(job.job_id))

    def say(self, text: str) -> None:
        said = Text(f"{_clock_time(self.play.clock.now())}  {text}", style="bold")
        self.console.print(said, soft_wrap=True)


async def _night(day: Day) -> None:
    await day.reserve("花子", 4, 8)
    await day.pay("花子")


async def _morning(day: Day) -> None:
    await day.reserve("太郎", 6, 10)
    await day.pay("太郎", times=2)


async def _noon(day: Day) -> None:
    day.line.is_full = True
    await day.reserve("次郎", 3, 18)
    await day.pay("次郎")


async def _afternoon(day: Day) -> None:
    day.line.is_full = False
    await day.send_again("次郎")


async def _evening(day: Day) -> None:
    await day.cancel("太郎")


SCENES = (
    Scene(7, 0, "花子さんが4日8時の受け渡しを予約し、お支払い。リマインダーはちょうど48時間前の8:00。", _night),
    Scene(9, 30, "太郎さんがお支払い。Stripeは同じ出来事を2回知らせるが、通知は1通。", _morning),
    Scene(12, 0, "LINEの月間上限に到達。次郎さんの確定通知は FAILED として残る。", _noon),
    Scene(15, 0, "プランを変更し、担当者が次郎さんの通知を再送。", _afternoon),
    Scene(18, 30, "太郎さんがキャンセル。リマインダーは削除され、完了通知が届く。", _evening),
)


async def play_day(seconds: float, console: Console | None = None) -> None:
    """Cron comes every minute of the day; each takes its share of the seconds."""
    console = console or Console()
    line = PrintedLine(console)
    async with played_shop(at(MORNING), line) as play:
        day = Day(play, line, console)
        await day.open()
        scenes = {scene.moment: scene for scene in SCENES}
        for minute in range(DAY_IN_MINUTES):
            line.now = play.clock.now()
            if (scene := scenes.get(minute * MINUTE)) is not None:
                day.say(scene.title)
                await scene.act(day)
            await play.shop.send_pending_jobs(DEFAULT_TENANT)
            play.clock.move(MINUTE)
            if seconds:
                await play.rest(seconds / DAY_IN_MINUTES)
        await _show_end(day)


async def _show_end(day: Day) -> None:
    day.console.print(Text("\n一日の終わり", style="bold"))
    table = Table("予約", "お客様", "種別", "状態", Column("理由", overflow="fold"), box=None)
    for view in reversed(await day.play.shop.view_bookings(DEFAULT_TENANT, None, 100)):
        number, name = str(view.booking.reservation.reservation_id), view.booking.customer.name or ""
        for kind in view.kinds:
            state = Text(kind.state, style=_COLOURS[kind.state])
            table.add_row(number, name, kind.kind, state, _reason(kind))
            number = name = ""
    day.console.print(table)


def _reason(kind: KindView) -> str:
    return "" if kind.why is None else japanese(kind.why)


def _clock_time(now: Instant) -> str:
    return f"{moment_of(now).astimezone(JST):%H:%M}"
