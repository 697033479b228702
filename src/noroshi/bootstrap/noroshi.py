"""A store, a way and a machine in; the desk that the API talks to out."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import structlog

from noroshi.bootstrap.inboxes import Inboxes
from noroshi.bootstrap.locking import DataLock
from noroshi.bootstrap.machine import Machine
from noroshi.bootstrap.minting import mint_key, minting
from noroshi.bootstrap.tickets import redeem_ticket, write_ticket
from noroshi.domain.categories import Categories
from noroshi.domain.ids import BatchId
from noroshi.domain.inbox import InboxHead, Owner
from noroshi.domain.lanes import Lane
from noroshi.domain.marks import WHY_NOT_SERVED, Mark
from noroshi.domain.misbehaviour import Misbehaviour
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope, Workload
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest
from noroshi.flow.send.catcher.channel import Catcher
from noroshi.flow.send.in_app.inbox.channel import InboxChannel
from noroshi.flow.send.registry import Roll
from noroshi.flow.track.tracker import Tracker
from noroshi.flow.way import Way
from noroshi.machine.ballast import LOOK_AGAIN_AFTER
from noroshi.machine.envelopes import AesEnvelopes
from noroshi.ports.channel import ClosableChannel
from noroshi.ports.store import StorePorts
from noroshi.reservations.shop import Shop
from noroshi.storage.errors import NotServableError

_log = structlog.get_logger(__name__)

_DISK_IS_FULL = "the disk is full: what was accepted is being finished, and nothing more is accepted"


class Noroshi:
    """A whole system, to be started once and stopped once. It is the desk that the API talks to."""

    def __init__(
        self,
        *,
        machine: Machine,
        store: StorePorts,
        way: Way,
        inboxes: Inboxes,
        categories: Categories,
        roll: Roll,
        lock: DataLock | None,
        shop: Shop,
        is_dev: bool,
    ) -> None:
        self._store = store
        self._way = way
        self._meter = machine.meter
        self._roll = roll
        self._lock = lock
        self._ballast = machine.ballast
        self._outgoing = machine.outgoing
        self._tracker = Tracker(roll.accounts, store.suppressions)
        self._minting = minting(machine.clock, machine.dice, machine.secrets)
        self.is_dev = is_dev
        self._is_running = False
        self.is_broken = False
        self.gate = inboxes.gate
        self.passes = inboxes.passes
        self.live = inboxes.live
        self.origins = inboxes.origins
        self.most_streams = inboxes.most_streams
        self.envelopes = AesEnvelopes(machine.secrets.masters)
        self.renderer = machine.renderer
        self.clock = machine.clock
        self.categories = categories
        self.alerts = store.alerts
        self.attachments = store.attachments
        self.batches = store.batches
        self.people = store.people
        self.devices = store.devices
        self.templates = way.templates
        self.history = store.history
        self.dead_letters = store.dead_letters
        self.inbox = store.inbox
        self.pauses = store.pauses
        self.requests = store.requests
        self.caught = store.caught
        self.shop = shop
        self.keys = store.keys
        self.dispatchable_channels = frozenset(roll.served)
        self.reporting_channels = frozenset(
            name for name, account in roll.served.items() if isinstance(roll.accounts[account], InboxChannel)
        )

    async def start(self) -> None:
        try:
            await self._store.start()
            await self._look_at_marks()
        except BaseException:
            self._let_go()
            raise
        await self.renderer.start()
        await self._way.start()
        self._is_running = True

    async def _look_at_marks(self) -> None:
        marks = await self._store.marks.read()
        for mark in marks.keys() & WHY_NOT_SERVED.keys():
            await self._store.stop()
            raise NotServableError(WHY_NOT_SERVED[mark])
        if Mark.RESTORED in marks:
            _log.warning("restored_and_paused")

    async def stop(self) -> None:
        """Finishes what is under way; if the disk has failed there is nothing to wait for, since nothing could be
        recorded: the next start judges what was left (W29)."""
        self._is_running = False
        if not self.is_broken:
            await self._way.stop()
        for account in self._roll.accounts.values():
            if isinstance(account, ClosableChannel):
                await account.close()
        await self._outgoing.close()
        await self.renderer.stop()
        await self._store.stop()
        self._let_go()

    def _let_go(self) -> None:
        """Of the folder, for whoever comes next."""
        if self._ballast is not None:
            self._ballast.let_go()
        if self._lock is not None:
            self._lock.release()

    async def accept(
        self, caller: Caller, request: NotificationRequest, idempotency_key_header: str | None
    ) -> AcceptedAnswer:
        if self._is_disk_full():
            raise ProblemError("store_unavailable", _DISK_IS_FULL, retry_after=LOOK_AGAIN_AFTER)
        return await self._way.accept(caller, request, idempotency_key_header)

    def _is_disk_full(self) -> bool:
        return self._ballast is not None and self._ballast.is_short

    async def cancel(self, caller: Caller, batch_id: BatchId) -> int | None:
        return await self._way.cancel(caller, batch_id)

    async def hear(self, account: str, headers: Mapping[str, str], raw: bytes) -> None:
        await self._tracker.hear(account, headers, raw)

    async def heed_pauses(self) -> None:
        await self._way.heed_pauses()

    def pauses_changed(self) -> None:
        self._way.look_again()

    def announce_replayed(self) -> None:
        self._way.look_again()

    def announce_enqueued(self) -> None:
        self._way.intake.take_enqueued()

    def inbox_changed(self, owner: Owner, head: InboxHead) -> None:
        self._way.inbox_changed(owner, head)

    def end_streams(self) -> None:
        """Everybody who looks at an inbox live has to come again; nobody new is let in."""
        self.live.close_all()

    def misbehave(self, how: Misbehaviour | None) -> bool:
        catchers = [account for account in self._roll.accounts.values() if isinstance(account, Catcher)]
        if not (self.is_dev and catchers):
            return False
        if how is None:
            catchers[0].behave()
        else:
            catchers[0].misbehave(how)
        return True

    async def workload(self) -> Workload:
        queue, accounts = self._store.queue, self._store.accounts
        breakers = await accounts.breakers()
        return Workload(
            unfinished=await queue.unfinished(),
            waiting=await queue.waiting(),
            open_breakers=tuple(account for account, state in breakers.items() if not state.is_closed),
            blocked=await accounts.blocked(),
        )

    def metrics_text(self) -> bytes:
        return self._meter.text()

    async def readiness(self) -> list[str]:
        problems = [] if self._is_running else ["the server is starting or stopping"]
        if self._is_running and (trouble := await self._store.trouble()) is not None:
            problems.append(trouble)
        if self.is_broken:
            problems.append("the disk failed under a commit: nothing more is accepted")
        if self._is_disk_full():
            problems.append(_DISK_IS_FULL)
        return problems

    @property
    def caught_channels(self) -> frozenset[str]:
        """Those whose messages nobody gets."""
        return frozenset(name for name, account in self._roll.served.items() if account.startswith("catcher"))

    def notes(self) -> list[str]:
        caught = sorted(self.caught_channels)
        return [f"the catcher stands in for {', '.join(caught)}: nobody gets these messages"] if caught else []

    def lanes(self) -> list[Lane]:
        """Those this process sends for."""
        return self._way.dispatcher.lanes

    def roll_call(self) -> dict[str, str]:
        """Each provider that is off, and why: what the start prints."""
        return dict(self._roll.off)

    async def mint_key(
        self,
        name: str,
        scopes: Sequence[KeyScope],
        per_minute: int | None = None,
        expires_in: timedelta | None = None,
    ) -> str:
        """A new API key, shown once."""
        return await mint_key(self._store, self._minting, name, scopes, per_minute, expires_in)

    async def write_ticket(self) -> str:
        """For a link that opens the console once, within a quarter of an hour."""
        return await write_ticket(self._store, self._minting)

    async def redeem_ticket(self, ticket: str) -> str | None:
        return await redeem_ticket(self._store, self.gate, self._minting, ticket)

    async def end_key(self, caller: Caller) -> None:
        """What was minted for a visit ends with it."""
        await self._store.keys.revoke(caller.tenant, caller.key_id)
