"""One lane at work: what is due in it is taken, carried to its channel and settled, by loops that never end early."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog

from noroshi.domain.deliveries import Taken
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Judged
from noroshi.flow.dispatch.breaker import Permit
from noroshi.flow.dispatch.flights import Flight
from noroshi.flow.dispatch.gates import Gate, tick_of
from noroshi.flow.dispatch.kit import Kit
from noroshi.flow.dispatch.sending import ComposeError, Sending
from noroshi.flow.dispatch.waiting import signalled
from noroshi.ports.channel import Channel

AT_ONCE = Instant(0)

_GO = timedelta(0)
_MICROSECOND = timedelta(microseconds=1)
_BREATH = timedelta(milliseconds=100)
_LONGEST_BREATH = timedelta(seconds=10)

_log = structlog.get_logger(__name__)


class LaneRunner:
    """The workers of a lane take turns at claiming (whoever holds the baton) and send side by side. What is
    known of waiting work is one due time: it comes from announcements, from the last take, and from looks."""

    def __init__(self, lane: Lane, channel: Channel, gate: Gate, kit: Kit) -> None:
        self.lane = lane
        self.higher: list[LaneRunner] = []
        self.lower: list[LaneRunner] = []
        self._gate = gate
        self._kit = kit
        self._max_batch = channel.max_batch
        self._lease = channel.attempt_timeout + kit.settings.lease_margin
        self._sending = Sending(lane, channel, gate, kit)
        self._baton = asyncio.Lock()
        self._signal = asyncio.Event()
        self._due_at: Instant | None = None
        self._is_taking = False
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
        has_work = self._is_taking or (self._due_at is not None and self._due_at <= now)
        return has_work and not self._kit.stops.stop(self.lane)

    async def work(self) -> None:
        """One worker. While a flight is being settled it already claims and sends the next, no further."""
        settling: asyncio.Task[None] | None = None
        troubles = 0
        while (flight := await self._claim(troubles)) is not None:
            try:
                judged, alerts = await self._sending.carry(flight)
                troubles = 0
            except ComposeError as error:
                troubles = self._note(error.__cause__ or error, troubles)
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
        while not self._kit.closing.is_set():
            if troubles:
                await signalled(self._kit.closing, self._kit.clock, _breath(troubles))
            try:
                return await self._next_flight()
            except Exception as error:  # noqa: BLE001 - a worker outlives every error
                troubles = self._note(error, troubles)
        return None

    async def _next_flight(self) -> Flight | None:
        async with self._baton:
            while not self._kit.closing.is_set():
                self._signal.clear()
                wait = self._wait()
                if wait != _GO:
                    await signalled(self._signal, self._kit.clock, wait)
                elif (permit := self._gate.admit()) is not None and (flight := await self._take(permit)) is not None:
                    return flight
        return None

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

    async def _take(self, permit: Permit) -> Flight | None:
        kit = self._kit
        limit = 1 if permit.is_trial else self._gate.pace.most(self._max_batch)
        # Cleared before the question: what is announced while it is asked counts as new.
        self._due_at, self._yields_until, self._is_taking = None, None, True
        asked_at = kit.clock.monotonic()
        try:
            terms = self._gate.terms(permit)
            taken = await kit.queue.take(self.lane, limit, self._lease, kit.stops.categories, terms)
        except BaseException:
            self._gate.give_back(permit)
            self.expect(AT_ONCE)
            raise
        finally:
            self._is_taking = False
        self._remember(taken)
        if not taken.claims:
            self._gate.give_back(permit)
            self._hold_back(taken)
            return None
        flight = Flight(taken.claims, self._lease, asked_at, permit, plus(tick_of(kit.clock), taken.wait))
        kit.flights.begin(flight)
        return flight

    def _hold_back(self, taken: Taken) -> None:
        """The account let nothing go, for other processes have used it up or broken it: its gate knows it now."""
        if taken.breaker is not None:
            self._sending.learn_breaker(taken.breaker)
        elif taken.wait:
            self._gate.hold(taken.wait)

    def _remember(self, taken: Taken) -> None:
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
