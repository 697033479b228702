"""The dispatcher: announcements go in; every lane of every account is worked until it is told to stop."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import structlog

from noroshi.domain.accounts import UNMOVED
from noroshi.domain.categories import Categories
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.flow.dispatch.composing import Compose
from noroshi.flow.dispatch.flights import Flights
from noroshi.flow.dispatch.gates import Gate
from noroshi.flow.dispatch.kit import Kit
from noroshi.flow.dispatch.lanes import AT_ONCE, LaneRunner
from noroshi.flow.dispatch.sending import repeats_of
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.dispatch.settling import Settler, TellInboxes
from noroshi.flow.dispatch.stops import stops_of
from noroshi.flow.dispatch.waiting import repeat
from noroshi.ports.accounts import Accounts
from noroshi.ports.channel import Channel
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.meter import Meter
from noroshi.ports.pauses import Pauses
from noroshi.ports.queue import Queue

RESUME_PAGE = 500

_log = structlog.get_logger(__name__)


def lanes_of(channels: Mapping[str, Channel]) -> list[Lane]:
    """Every lane these accounts serve."""
    return [
        Lane(name, account, priority)
        for account, channel in channels.items()
        for name in sorted(channel.channels)
        for priority in Priority
    ]


class Dispatcher:
    """Started and stopped once. `settler`, `served` and `repeats` (how long each account's provider knows a delivery
    again) are there for the sweeper to share."""

    def __init__(
        self,
        *,
        clock: Clock,
        dice: Dice,
        meter: Meter,
        queue: Queue,
        accounts: Accounts,
        pauses: Pauses,
        compose: Compose,
        channels: Mapping[str, Channel],
        categories: Categories,
        settings: DispatchSettings,
        crash_points: CrashPoints,
        tell_change: Callable[[], None] = lambda: None,
        tell_inboxes: TellInboxes = lambda _news: None,
    ) -> None:
        closing = asyncio.Event()
        self.settler = Settler(clock, meter, queue, closing, tell_inboxes)
        self._kit = Kit(
            clock=clock,
            dice=dice,
            meter=meter,
            queue=queue,
            accounts=accounts,
            compose=compose,
            categories=categories,
            settings=settings,
            crash_points=crash_points,
            settler=self.settler,
            flights=Flights(clock, queue),
            closing=closing,
            tell_change=tell_change,
        )
        self._pauses = pauses
        self._gates = {name: Gate(name, clock, channel.per_second) for name, channel in channels.items()}
        self._known = frozenset(lanes_of(channels))
        self.repeats = {name: repeats_of(channel) for name, channel in channels.items()}
        self._runners = {
            lane: LaneRunner(lane, channels[lane.account], self._gates[lane.account], self._kit)
            for lane in lanes_of(channels)
            if settings.serves(lane)
        }
        self._join_lanes()
        self._refreshing = asyncio.Lock()
        self._unserved: set[Lane] = set()
        self._workers: list[asyncio.Task[None]] = []
        self._rounds: list[asyncio.Task[None]] = []
        self._landed = asyncio.Event()

    @property
    def served(self) -> frozenset[tuple[str, str]]:
        """The (channel, account) pairs this process knows, and whose leases it may therefore judge."""
        return frozenset((lane.channel, lane.account) for lane in self._known)

    @property
    def lanes(self) -> list[Lane]:
        """Those this process sends for."""
        return list(self._runners)

    @property
    def sending(self) -> int:
        """Messages that are with a provider at this moment."""
        return self._kit.flights.sending

    @property
    def claimed(self) -> int:
        """Deliveries claimed and not yet settled."""
        return self._kit.flights.claimed

    def paused_categories(self) -> frozenset[str]:
        return self._kit.stops.categories

    async def start(self) -> None:
        kit = self._kit
        await self.refresh_pauses()
        await self._look()
        self._workers = [
            asyncio.create_task(runner.work(), name=f"{lane.name}#{number}")
            for lane, runner in self._runners.items()
            for number in range(kit.settings.workers_of(lane))
        ]
        rounds = (
            (self._look, kit.settings.look_every, kit.closing),
            (self.refresh_pauses, kit.settings.pauses_every, kit.closing),
            (kit.flights.renew, kit.settings.look_every, self._landed),
        )
        self._rounds = [
            asyncio.create_task(repeat(turn, kit.clock, span, until, self._note)) for turn, span, until in rounds
        ]

    async def stop(self) -> None:
        """Claims nothing more, finishes what is being sent (up to its time-out), releases what is not yet
        sent, and returns when all is settled (W26). A second call waits as well."""
        self._kit.closing.set()
        self._wake()
        if self._workers:
            await asyncio.wait(self._workers)
        self._landed.set()
        if self._rounds:
            await asyncio.wait(self._rounds)

    def announce(self, lanes: Iterable[Lane]) -> None:
        """Deliveries were put into these lanes. Only a hint: a lost one is made good by the next look."""
        for lane in lanes:
            runner = self._runners.get(lane)
            if runner is not None:
                runner.expect(AT_ONCE)

    async def refresh_pauses(self) -> None:
        """Reads the pauses and the accounts' rests anew; called on a change, and every two seconds in any case.
        One at a time, so that an older reading never replaces a newer one."""
        kit = self._kit
        async with self._refreshing:
            await self._refresh_accounts()
            stops = stops_of(await self._pauses.in_force(), kit.categories)
            if stops == kit.stops:
                return
            kit.stops = stops
            _log.info("pauses_changed", stops=stops._asdict())
            while await kit.queue.resume(stops.categories, RESUME_PAGE) == RESUME_PAGE:
                pass
        await self._look()
        self._wake()

    async def _refresh_accounts(self) -> None:
        accounts = self._kit.accounts
        for account, until in (await accounts.blocked()).items():
            if account in self._gates:
                self._gates[account].rest(until)
        states = await accounts.breakers()
        for account, gate in self._gates.items():
            state = states.get(account, UNMOVED)
            if state.epoch < gate.epoch:  # our own last move was never written
                state = await accounts.move_breaker(account, gate.epoch, gate.opens_for)
            if gate.learn(state):
                self._kit.meter.gauge("provider_breaker_open", float(gate.is_broken), provider=account)

    async def _look(self) -> None:
        """Finds what was announced to nobody and what falls due."""
        for lane, due_at in (await self._kit.queue.waiting()).items():
            runner = self._runners.get(lane)
            if runner is not None:
                runner.expect(due_at)
            elif lane not in self._known and lane not in self._unserved:
                self._unserved.add(lane)
                _log.warning("lane_unserved", lane=lane.name)
        self._kit.meter.gauge("dispatch_sending", self._kit.flights.sending)
        self._kit.meter.gauge("dispatch_claimed", self._kit.flights.claimed)

    def _join_lanes(self) -> None:
        """Lanes of one account share its gate, and the low ones among them go after the higher."""
        for runner in self._runners.values():
            account = runner.lane.account
            self._gates[account].listeners.append(runner.wake)
            if runner.lane.priority is Priority.LOW:
                runner.higher = [
                    other
                    for lane, other in self._runners.items()
                    if lane.account == account and lane.priority is not Priority.LOW
                ]
                for other in runner.higher:
                    other.lower.append(runner)

    def _wake(self) -> None:
        for runner in self._runners.values():
            runner.wake()

    def _note(self, error: Exception) -> None:
        self._kit.meter.count("dispatch_errors_total", lane="")
        _log.error("dispatch_troubled", error=type(error).__name__)
