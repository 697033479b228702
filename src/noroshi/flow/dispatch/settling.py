"""Settling: judged deliveries go in, one commit with their alerts, and then the counts, come out."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

import structlog

from noroshi.domain.deliveries import Settled, Verdict
from noroshi.domain.inbox import Filled, InboxEntry, News
from noroshi.domain.lanes import Lane
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Alarms, Judged
from noroshi.flow.dispatch.rates import Rates
from noroshi.flow.dispatch.sharing import Sharing
from noroshi.flow.dispatch.waiting import signalled
from noroshi.ports.clock import Clock
from noroshi.ports.meter import Meter
from noroshi.ports.queue import Queue

STATUSES: dict[Verdict, str] = {
    Verdict.SENT: "sent",
    Verdict.DELIVERED: "delivered",
    Verdict.RETRY: "retrying",
    Verdict.DEAD: "dead_lettered",
    Verdict.SUPPRESSED: "suppressed",
    Verdict.CANCELLED: "cancelled",
}
"""The `status` label of notification_sent_total; a release or resend is no result and is not counted there."""

_ARRIVED = frozenset({Verdict.SENT, Verdict.DELIVERED})
_FIRST_WAIT = timedelta(milliseconds=100)
_LONGEST_WAIT = timedelta(seconds=5)
_LAST_TRIES = 5
_SECOND = 1_000_000

TellInboxes = Callable[[Sequence[News]], None]

_log = structlog.get_logger(__name__)


class Settler:
    """Shared by the lanes and the sweeper, so that both feed the same alarms. `tell_inboxes` hears what a commit has
    put into inboxes."""

    def __init__(
        self,
        clock: Clock,
        meter: Meter,
        queue: Queue,
        closing: asyncio.Event,
        tell_inboxes: TellInboxes = lambda _news: None,
    ) -> None:
        self._tell_inboxes = tell_inboxes
        self._clock = clock
        self._meter = meter
        self._queue = queue
        self._closing = closing
        self._alarms = Alarms()
        self._sharing = Sharing(self._write)
        self.rates = Rates(clock, meter)

    async def settle(self, judged: Sequence[Judged], alerts: Sequence[Alert] = ()) -> None:
        """One commit, then the counts. Raises what the store raises."""
        await self._write(judged, [*alerts, *self._alarms.notice(judged)])

    async def settle_surely(self, judged: Sequence[Judged], alerts: Sequence[Alert] = ()) -> None:
        """As `settle`, but in a commit that others may share, and a store that fails is asked again: an outcome
        forgotten is a message sent twice. During a shutdown it is asked five times more; then the leases end by
        themselves."""
        raised = [*alerts, *self._alarms.notice(judged)]
        wait, tries_left = _FIRST_WAIT, _LAST_TRIES
        while tries_left:
            try:
                await self._sharing.write(judged, raised)
            except Exception as error:  # noqa: BLE001 - asked again below
                self._meter.count("notification_settle_errors_total")
                _log.error("settle_failed", error=type(error).__name__, deliveries=len(judged))
            else:
                return
            if self._closing.is_set():
                tries_left -= 1
                await self._clock.sleep(wait)
            else:
                await signalled(self._closing, self._clock, wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def raise_for_dead(self, dead: Mapping[tuple[Lane, str], int]) -> None:
        """Dead letters that were written when a batch was addressed, by (lane, code), raise alerts as any others."""
        now = self._clock.now()
        for (lane, code), count in dead.items():
            self._meter.count("notification_dead_lettered_total", count, channel=lane.channel, error_code=code)
        await self.raise_alerts(
            self._alarms.notice_dead((lane, code, now) for (lane, code), n in dead.items() for _ in range(n))
        )

    async def raise_alerts(self, alerts: Sequence[Alert]) -> None:
        if alerts:
            await self._queue.settle((), alerts)
            self._tell_alerts(alerts)

    async def _write(self, judged: Sequence[Judged], alerts: Sequence[Alert]) -> None:
        settled = await self._queue.settle([j.settlement for j in judged], alerts)
        self._tell(judged, settled, alerts)

    def _tell(self, judged: Sequence[Judged], settled: Settled, alerts: Sequence[Alert]) -> None:
        if settled.filled:
            self._tell_inboxes(list(_news(judged, settled.filled)))
        self._count(judged, settled)
        self._tell_alerts(alerts)

    def _tell_alerts(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            self._meter.count("notification_alerts_total", kind=alert.kind, severity=alert.severity)
            _log.warning("alert", kind=alert.kind, severity=alert.severity, subject=alert.subject)

    def _count(self, judged: Sequence[Judged], settled: Settled) -> None:
        if settled.late:
            late = frozenset(settled.late)
            self._meter.count("notification_late_results_total", len(late))
            judged = [j for j in judged if j.settlement.key not in late]
        for lane, of_lane in groupby(judged, attrgetter("lane")):
            totals = [0] * (max(Verdict) + 1)
            for one in of_lane:
                settlement = one.settlement
                totals[settlement.verdict] += 1
                if settlement.verdict not in _ARRIVED:
                    self._count_failure(one)
                elif one.wanted_at is not None:
                    seconds = max(settlement.at - one.wanted_at, 0) / _SECOND
                    self._meter.observe("notification_delivery_latency", seconds, channel=lane.channel)
            self._count_statuses(lane, totals)

    def _count_statuses(self, lane: Lane, totals: list[int]) -> None:
        self.rates.settled(lane.channel, sum(totals))
        for verdict, status in STATUSES.items():
            if count := totals[verdict]:
                self._meter.count(
                    "notification_sent_total", count, channel=lane.channel, priority=lane.priority.value, status=status
                )

    def _count_failure(self, judged: Judged) -> None:
        settlement, lane, tries, _ = judged
        match settlement.verdict:
            case Verdict.RETRY:
                self._meter.count("notification_retry_total", channel=lane.channel, attempt=str(tries + 1))
            case Verdict.DEAD:
                self._meter.count("notification_dead_lettered_total", channel=lane.channel, error_code=settlement.code)
            case Verdict.RELEASE:
                self._meter.count("notification_released_total", channel=lane.channel)
            case Verdict.RESEND:
                self._meter.count("notification_resent_total", channel=lane.channel)


def _news(judged: Sequence[Judged], filled: Sequence[Filled]) -> Iterator[News]:
    """What was kept, as whoever looks at the inboxes will see it: without asking the store."""
    settlements = {one.settlement.key.notification_id: one.settlement for one in judged}
    for one in filled:
        first = one.head.last_number - len(one.notification_ids) + 1
        entries: list[InboxEntry] = []
        for place, raw in enumerate(one.notification_ids):
            settlement = settlements[raw]
            if (draft := settlement.draft) is not None:
                entries.append(InboxEntry(first + place, raw, draft.category, draft.content, settlement.at))
        yield News(one.owner, one.head, tuple(entries))
