"""The way of a notification: the one place that knows the stages and their order."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import structlog
from msgspec import Struct

from noroshi.domain.categories import Categories
from noroshi.domain.ids import BatchId
from noroshi.domain.inbox import InboxHead, News, Owner
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import Alert
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest
from noroshi.domain.states import Status
from noroshi.flow.accept.desk import AcceptDesk
from noroshi.flow.accept.enqueued import EnqueuedWatch, preparing
from noroshi.flow.accept.intake import Intake
from noroshi.flow.accept.known_templates import KnownTemplates
from noroshi.flow.address.decide import Addresser
from noroshi.flow.compose.compose import Composer
from noroshi.flow.dispatch.alarms import WARNING
from noroshi.flow.dispatch.dispatcher import Dispatcher
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.dispatch.sweeper import Sweeper
from noroshi.ports.accounts import Accounts
from noroshi.ports.announcements import Announcements
from noroshi.ports.batches import Batches
from noroshi.ports.channel import Channel
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.duties import Duties
from noroshi.ports.history import History
from noroshi.ports.inbox import Inbox
from noroshi.ports.live import LiveInboxes
from noroshi.ports.meter import Meter
from noroshi.ports.pauses import Pauses
from noroshi.ports.queue import Queue
from noroshi.ports.renderer import Renderer
from noroshi.ports.requests import Requests
from noroshi.ports.templates import Templates

HISTORY_KEPT = timedelta(days=90)
REQUEST_KEYS_KEPT = timedelta(days=1)
REQUEST_DEAD = "request_dead"
TIDYING = "tidy"

_TIDY_EVERY = timedelta(seconds=60)
_TIDYING_LASTS = timedelta(seconds=90)
_TIDY_PAGE = 200

_log = structlog.get_logger(__name__)


class WayParts(Struct, frozen=True):
    """What the way is made of. `served` names the account that serves each channel. Where nothing `takes_in`, this
    process only dispatches and sweeps what others have accepted and addressed. `side_by_side`: the store can be at
    several turns at once."""

    clock: Clock
    dice: Dice
    meter: Meter
    crash_points: CrashPoints
    batches: Batches
    queue: Queue
    accounts: Accounts
    announcements: Announcements
    duties: Duties
    pauses: Pauses
    templates: Templates
    history: History
    inbox: Inbox
    live: LiveInboxes
    requests: Requests
    renderer: Renderer
    channels: Mapping[str, Channel]
    served: Mapping[str, str]
    categories: Categories
    default_locale: str
    dispatch: DispatchSettings
    max_waiting: int
    max_unfinished: int
    takes_in: bool = True
    side_by_side: bool = False


class Way:
    """Started and stopped once: accept, address, compose, dispatch, send, track."""

    def __init__(self, parts: WayParts) -> None:
        self._parts = parts
        clock, meter = parts.clock, parts.meter
        self.templates = KnownTemplates(parts.templates, clock)
        self.dispatcher = Dispatcher(
            clock=clock,
            dice=parts.dice,
            meter=meter,
            queue=parts.queue,
            accounts=parts.accounts,
            pauses=parts.pauses,
            compose=Composer(parts.renderer, meter).compose,
            channels=parts.channels,
            categories=parts.categories,
            settings=parts.dispatch,
            crash_points=parts.crash_points,
            tell_change=parts.announcements.tell_change,
            tell_inboxes=self._tell_inboxes,
        )
        self.sweeper = Sweeper(
            clock=clock,
            meter=meter,
            queue=parts.queue,
            settler=self.dispatcher.settler,
            categories=parts.categories,
            served=self.dispatcher.served,
            announce=parts.announcements.announce,
            paused_categories=self.dispatcher.paused_categories,
            duties=parts.duties,
            repeats=self.dispatcher.repeats,
        )
        self.intake = Intake(
            parts.batches,
            Addresser(parts.categories, parts.served, parts.default_locale).decide,
            parts.announcements.announce,
            self._report_dead,
            preparing(frozenset(parts.served)),
            self._report_refused,
            clock,
            meter,
            max_waiting=parts.max_waiting,
            max_unfinished=parts.max_unfinished,
            side_by_side=parts.side_by_side,
        )
        self.enqueued = EnqueuedWatch(parts.requests, self.intake.take_enqueued, clock, meter)
        self.desk = AcceptDesk(self.intake, parts.batches, self.templates, clock, parts.dice, frozenset(parts.served))
        self._closing = asyncio.Event()
        self._tidying: asyncio.Task[None] | None = None
        self._asides: set[asyncio.Task[None]] = set()
        parts.announcements.listen(self._hear, self._look_aside, parts.live.look_into)

    async def start(self) -> None:
        """Finishes first what a crash left: leases without an outcome, withdrawals, undecided batches."""
        await self.sweeper.rescue_all()
        await self.desk.finish_cancelling()
        self.intake.unfinished = await self._parts.queue.unfinished()
        await self.dispatcher.start()
        await self.sweeper.start()
        if self._parts.takes_in:
            await self.intake.start()
            await self.enqueued.start()
        await self._parts.live.start()
        await self._parts.announcements.start()
        self._tidying = asyncio.create_task(self._tidy_for_ever(), name="tidying")

    async def stop(self) -> None:
        """Keeps what has arrived, finishes what is being sent, releases the rest (W26)."""
        self._closing.set()
        await self.enqueued.stop()
        await self.intake.stop()
        await self.dispatcher.stop()
        await self.sweeper.stop()
        await self._parts.announcements.stop()
        await self._parts.live.stop()
        await asyncio.gather(*self._asides)
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.wait((self._tidying,))

    async def accept(self, caller: Caller, request: NotificationRequest, key_header: str | None) -> AcceptedAnswer:
        try:
            return await self.desk.accept(caller, request, key_header)
        except ProblemError as problem:
            self._parts.meter.count("accept_refused_total", code=problem.kind.code)
            raise

    async def cancel(self, caller: Caller, batch_id: BatchId) -> int | None:
        """How many notifications of the batch are withdrawn; None: the caller has no such batch."""
        if not await self.desk.cancel(caller, batch_id):
            return None
        counts = await self._parts.batches.counts(caller.tenant, batch_id)
        if counts is None:
            return None
        withdrawn = sum(n for (_, status), n in counts.by_channel.items() if status is Status.CANCELLED)
        return withdrawn + counts.undecided_recipients * len(counts.channels)

    def look_again(self) -> None:
        """Pauses changed or dead letters were replayed: dispatch, in every process, looks at once instead of at its
        next round."""
        self._parts.announcements.tell_change()

    async def heed_pauses(self) -> None:
        """As `look_again`; in this process it has been done when this returns."""
        self.look_again()
        await self._see_through(self.dispatcher.refresh_pauses())

    def inbox_changed(self, owner: Owner, head: InboxHead) -> None:
        """Whoever looks at this inbox, in any process, is told so."""
        self._tell_inboxes([News(owner, head)])

    def _tell_inboxes(self, news: Sequence[News]) -> None:
        self._parts.live.hand_over(news)
        self._parts.announcements.announce_inboxes([one.owner for one in news])

    def _hear(self, lanes: Iterable[Lane]) -> None:
        self.dispatcher.announce(lanes)

    def _look_aside(self) -> None:
        if not self._closing.is_set():
            self._parts.live.look_everywhere()
            self._aside(self._look_again())

    def _report_dead(self, dead: dict[tuple[Lane, str], int]) -> None:
        self._aside(self.dispatcher.settler.raise_for_dead(dead))

    def _report_refused(self, codes: dict[str, int]) -> None:
        for code, count in codes.items():
            self._parts.meter.count("notification_requests_dead_total", count, code=code)
        self._aside(self.dispatcher.settler.raise_alerts([Alert(REQUEST_DEAD, WARNING, code) for code in codes]))

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins what nobody waits for; a failure costs a line in the log."""
        task = asyncio.create_task(self._see_through(work))
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _see_through(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the next round makes it good
            _log.error("aside_failed", error=type(error).__name__)

    async def _look_again(self) -> None:
        await self.dispatcher.refresh_pauses()
        self.dispatcher.announce(await self._parts.queue.waiting())

    async def _tidy_for_ever(self) -> None:
        while True:
            try:
                await self.tidy()
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                _log.error("tidying_failed", error=type(error).__name__)
            await self._parts.clock.sleep(_TIDY_EVERY)

    async def tidy(self) -> None:
        """The coming days are made ready; what nobody may rely on any more is removed, a page at a time; withdrawals
        left over are finished. One process does it for all."""
        parts = self._parts
        self.intake.unfinished = await parts.queue.unfinished()
        if not await parts.duties.take(TIDYING, _TIDYING_LASTS):
            return
        await parts.history.make_ready()
        await self.desk.finish_cancelling()
        while await parts.batches.forget_keys(_TIDY_PAGE) == _TIDY_PAGE:
            pass
        now = parts.clock.now()
        before: Instant = plus(now, -HISTORY_KEPT)
        while await parts.requests.forget(plus(now, -REQUEST_KEYS_KEPT), before, _TIDY_PAGE) >= _TIDY_PAGE:
            pass
        while await parts.history.forget_before(before, _TIDY_PAGE) >= _TIDY_PAGE:
            pass
        while await parts.inbox.forget_before(before, _TIDY_PAGE) >= _TIDY_PAGE:
            pass
