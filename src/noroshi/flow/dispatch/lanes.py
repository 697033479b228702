"""One lane at work: what is due in it is taken, carried to its channel and settled, by loops that never end early."""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog

from noroshi.domain.deliveries import Taken
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Judged
from noroshi.flow.dispatch.breaker import Permit
from noroshi.flow.dispatch.composing import ComposeError, Composition
from noroshi.flow.dispatch.flights import Flight
from noroshi.flow.dispatch.gates import Gate, tick_of
from noroshi.flow.dispatch.kit import Kit
from noroshi.flow.dispatch.sending import Sending
from noroshi.flow.dispatch.sharing import MOST_TOGETHER
from noroshi.flow.dispatch.waiting import signalled
from noroshi.ports.channel import Channel

AT_ONCE = Instant(0)

_GO = timedelta(0)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_BREATH = timedelta(milliseconds=100)
_LONGEST_BREATH = timedelta(seconds=10)
_TAKES_AT_ONCE = 2
_COMPANY = timedelta(milliseconds=3)
_COMPANY_SHARE = 20
"""Of what a send takes, so much may be waited for others to take for: a twentieth."""

_log = structlog.get_logger(__name__)


class LaneRunner:
    """The workers of a lane take turns at claiming (whoever holds a baton) and send side by side. What is known of
    waiting work is one due time: it comes from announcements, from the last take, and from looks. While there is
    more than the last take could hold, two claim at once (unless the account has a pace, which is what they would
    wait for), and what they claim and others settle shares a commit. Who claims takes for all that have nothing to do:
    what the channel does not take in one call is parted into flights, for the others to carry."""

    def __init__(self, lane: Lane, channel: Channel, gate: Gate, kit: Kit) -> None:
        self.lane = lane
        self.higher: list[LaneRunner] = []
        self.lower: list[LaneRunner] = []
        self._gate = gate
        self._kit = kit
        self._max_batch = channel.max_batch
        self._lease = channel.attempt_timeout + kit.settings.lease_margin
        self._sending = Sending(lane, channel, gate, kit)
        is_sharing = channel.max_batch <= MOST_TOGETHER // 4
        is_quick = channel.per_second is None and not is_sharing
        self._has_company = is_sharing and kit.settings.workers_of(lane) > 1
        self._batons = asyncio.Semaphore(_TAKES_AT_ONCE if is_quick else 1)
        self._signal = asyncio.Event()
        self._due_at: Instant | None = None
        self._taking = 0
        self._idle = 0
        self._promised = 0
        self._parted: deque[Flight] = deque()
        self._has_more = False
        self._send_seconds = 0.0
        self._yields_until: Instant | None = None

    def expect(self, due_at: Instant) -> None:
        """Something in the lane is due then; a hint, which may be wrong."""
        if self._due_at is None or due_at < self._due_at:
            self._due_at = due_at
            self._signal.set()

    def wake(self) -> None:
        """Something changed that the lane may be waiting for."""
        self._signal.set()

    def is_busy(self, now: Instant) -> bool:
        """Whether work waits here that may be sent."""
        has_work = self._taking > 0 or bool(self._parted) or (self._due_at is not None and self._due_at <= now)
        return has_work and not self._kit.stops.stop(self.lane)

    async def work(self) -> None:
        """One worker. While a flight is being settled it already claims and sends the next, no further."""
        settling: asyncio.Task[None] | None = None
        troubles = 0
        while (flight := await self._claim(troubles)) is not None:
            began = self._kit.clock.monotonic()
            try:
                judged, alerts = await self._sending.carry(flight)
                troubles = 0
                self._send_seconds = self._kit.clock.monotonic() - began
            except ComposeError as error:
                troubles = self._note(error.__cause__ or error, troubles) if error.is_first else troubles + 1
                judged, alerts = self._sending.judge_mishap(flight), []
            except Exception as error:  # noqa: BLE001 - a worker outlives every error
                # Whether it was sent nobody knows: the lease runs out and the sweeper judges.
                troubles = self._note(error, troubles)
                self._kit.flights.end(flight)
                continue
            earlier, settling = settling, asyncio.create_task(self._settle(flight, judged, alerts))
            if earlier is not None:
                await earlier
        if settling is not None:
            await settling

    async def _claim(self, troubles: int) -> Flight | None:
        """The next flight; after troubles not before a pause for breath, which grows. None at the end."""
        while self._parted or not self._kit.closing.is_set():
            if troubles:
                await signalled(self._kit.closing, self._kit.clock, _breath(troubles))
            try:
                return await self._next_flight()
            except Exception as error:  # noqa: BLE001 - a worker outlives every error
                troubles = self._note(error, troubles)
        return None

    async def _next_flight(self) -> Flight | None:
        self._idle += 1
        try:
            async with self._batons:
                await self._wait_for_company()
                while not (self._parted or self._kit.closing.is_set()):
                    self._signal.clear()
                    wait = self._wait()
                    if wait != _GO:
                        await signalled(self._signal, self._kit.clock, wait)
                    elif (permit := self._gate.admit()) is not None:
                        await self._take(permit)
                return self._parted.popleft() if self._parted else None
        finally:
            self._idle -= 1

    async def _wait_for_company(self) -> None:
        """While more is due than the workers carry, others come back in a moment: one take then serves them all."""
        span = min(timedelta(seconds=self._send_seconds) / _COMPANY_SHARE, _COMPANY)
        if self._has_company and self._has_more and not self._parted and span >= _MILLISECOND:
            await signalled(self._kit.closing, self._kit.clock, span)

    def _wait(self) -> timedelta | None:
        """How long nothing may be taken: not at all, for a span, or (None) until a signal."""
        if self._due_at is None or self._kit.stops.stop(self.lane):
            return None
        now = self._kit.clock.now()
        if self._due_at > now:
            return (self._due_at - now) * _MICROSECOND
        of_account = self._gate.wait()
        return self._courtesy(now) if of_account == _GO else of_account

    def _courtesy(self, now: Instant) -> timedelta:
        """Low goes after the higher lanes of its account, but never waits long at a time (N5.3)."""
        if self.lane.priority is not Priority.LOW or not any(h.is_busy(now) for h in self.higher):
            return _GO
        tick = tick_of(self._kit.clock)
        if self._yields_until is None:
            self._yields_until = plus(tick, self._kit.settings.low_waits)
        return max(self._yields_until - tick, 0) * _MICROSECOND

    async def _take(self, permit: Permit) -> None:
        kit = self._kit
        flights = self._wanted_flights()
        limit = 1 if permit.is_trial else self._gate.pace.most(flights * self._max_batch)
        # Cleared before the question: what is announced while it is asked counts as new.
        self._due_at, self._yields_until = AT_ONCE if self._has_more and not permit.is_trial else None, None
        self._taking += 1
        self._promised += flights
        asked_at = kit.clock.monotonic()
        try:
            terms = self._gate.terms(permit)
            taken = await kit.queue.take(self.lane, limit, self._lease, kit.stops.categories, terms)
        except BaseException:
            self._gate.give_back(permit)
            self.expect(AT_ONCE)
            raise
        finally:
            self._taking -= 1
            self._promised -= flights
        self._remember(taken)
        if taken.claims:
            self._part(taken, asked_at, permit)
        else:
            self._gate.give_back(permit)
            self._hold_back(taken)

    def _wanted_flights(self) -> int:
        """As many as workers wait for one, but for those that another is just taking for."""
        most = max(MOST_TOGETHER // self._max_batch, 1)
        return min(max(self._idle - len(self._parted) - self._promised, 1), most)

    def _part(self, taken: Taken, asked_at: float, permit: Permit) -> None:
        kit, go_at = self._kit, plus(tick_of(self._kit.clock), taken.wait)
        composition = Composition(taken.claims, kit.compose, kit.clock, kit.settings.compose_timeout)
        for first in range(0, len(taken.claims), self._max_batch):
            claims = taken.claims[first : first + self._max_batch]
            compose = partial(composition.results, first, len(claims))
            flight = Flight(claims, compose, self._lease, asked_at, permit, go_at)
            kit.flights.begin(flight)
            self._parted.append(flight)
        self._signal.set()

    def _hold_back(self, taken: Taken) -> None:
        """The account let nothing go, for other processes have used it up or broken it: its gate knows it now."""
        if taken.breaker is not None:
            self._sending.learn_breaker(taken.breaker)
        elif taken.wait:
            self._gate.hold(taken.wait)

    def _remember(self, taken: Taken) -> None:
        self._has_more = taken.has_more and bool(taken.claims)
        if taken.has_more:
            # Due and yet not to be had: look again, but not in a busy loop.
            is_hoped = taken.claims or taken.wait or taken.breaker is not None
            self.expect(AT_ONCE if is_hoped else plus(self._kit.clock.now(), _BREATH))
            return
        if taken.next_due_at is not None:
            self.expect(taken.next_due_at)
        for lane in self.lower:
            lane.wake()

    async def _settle(self, flight: Flight, judged: Sequence[Judged], alerts: Sequence[Alert]) -> None:
        try:
            if judged:
                await self._kit.settler.settle_surely(judged, alerts)
        except Exception as error:  # noqa: BLE001 - a worker outlives every error
            self._note(error, 0)
        finally:
            self._kit.flights.end(flight)
        due = [j.settlement.due_at for j in judged if j.settlement.due_at is not None]
        if due:
            self.expect(min(due))

    def _note(self, error: BaseException, troubles: int) -> int:
        self._kit.meter.count("dispatch_errors_total", lane=self.lane.name)
        _log.error("lane_troubled", lane=self.lane.name, error=type(error).__name__)
        return troubles + 1


def _breath(troubles: int) -> timedelta:
    return min(_BREATH * (1 << min(troubles - 1, 10)), _LONGEST_BREATH)
