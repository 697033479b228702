"""Settings in, a whole Noroshi out: the only place that knows settings, flow, storage and machine together."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Protocol

from msgspec import Struct

from noroshi.bootstrap.inboxes import Inboxes, open_inboxes
from noroshi.bootstrap.locking import DataLock
from noroshi.bootstrap.machine import Machine, machine_of
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.postgres import open_postgres
from noroshi.bootstrap.shop import find_line, open_shop
from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import BatchId, TenantId
from noroshi.domain.priorities import Priority
from noroshi.domain.records import CaughtMessage
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.send.parts import Parts
from noroshi.flow.send.registry import Roll, call_roll
from noroshi.flow.way import Way, WayParts
from noroshi.keeper.process import Keeper, KeptStore, Order, forked_keeper
from noroshi.machine import logs
from noroshi.machine.ballast import Ballast
from noroshi.machine.clock import SystemClock
from noroshi.machine.dice import SystemDice
from noroshi.machine.outgoing.opening import LateOutgoing
from noroshi.machine.secrets import Secrets
from noroshi.machine.stripe_signatures import StripeSignatures
from noroshi.ports.line import Line
from noroshi.ports.outgoing import Outgoing
from noroshi.ports.store import StorePorts
from noroshi.reservations.shop import Shop
from noroshi.settings import Settings, SettingsError
from noroshi.storage.sqlite.store import open_store

_COLLECT_AFTER = (10_000, 20, 50)
"""Nearly nothing of ours lies in circles: the usual 700 costs a twentieth of the time and finds nothing."""


class Role(Struct, frozen=True):
    """What a process does. Every one dispatches and sweeps, for these channels and priorities (None: for all); one
    that `takes_in` also accepts and addresses."""

    takes_in: bool = True
    channels: frozenset[str] | None = None
    priorities: frozenset[Priority] | None = None


SERVER = Role()


def set_up_logs(level: str, form: str) -> None:
    """Before anything else starts: lines without any address, token or key."""
    logs.set_up_logs(level, form)


class Opening(Protocol):
    """What is left of `open_noroshi` once the process is ready for it."""

    def __call__(self, *, is_dev: bool, on_broken: Callable[[], None]) -> Noroshi: ...


@contextmanager
def made_ready(settings: Settings) -> Iterator[Opening]:
    """For a process that serves, called before anything is opened or started: on SQLite the store gets a process of
    its own, which is forked now."""
    # What is loaded by now stays for good: the collector need not look at it again, nor unshare it between the two.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    with nullcontext() if settings.is_on_postgres else forked_keeper() as keeper:
        yield partial(open_noroshi, settings, keeper=keeper)


def open_noroshi(
    settings: Settings,
    *,
    is_dev: bool,
    on_broken: Callable[[], None],
    role: Role = SERVER,
    keeper: Keeper | None = None,
) -> Noroshi:
    """Everything joined, nothing started. Raises DataLockedError if another process serves the file. Without a keeper
    the store on SQLite is in this process."""
    if settings.is_on_postgres:
        machine = machine_of(settings, SystemClock(), None)
        store = open_postgres(settings, machine.sealer, machine.meter)
        noroshi = join(settings, machine, store, None, is_dev=is_dev, role=role)
    else:
        if not role.takes_in:
            raise SettingsError(needs_postgres("noroshi worker"))
        noroshi = _open_on_sqlite(settings, is_dev, on_broken, keeper)
    if not (role.takes_in or noroshi.lanes()):
        raise SettingsError("there is nothing to do: no account serves these channels (NOROSHI_CATCHER=on catches all)")
    return noroshi


def needs_postgres(what: str) -> str:
    """Why something cannot be done on a file, and what to do."""
    return (
        f"{what} needs a store that several processes can share, and SQLite is served by one alone: "
        "set NOROSHI_STORE=postgresql://user:password@host:port/database"
    )


def _open_on_sqlite(
    settings: Settings,
    is_dev: bool,  # noqa: FBT001
    on_broken: Callable[[], None],
    keeper: Keeper | None,
) -> Noroshi:
    def broken() -> None:
        noroshi.is_broken = True
        on_broken()

    with ExitStack() as opened:  # what was opened is closed again if the rest cannot be
        lock = DataLock(settings.data)
        opened.callback(lock.release)
        clock = SystemClock()
        ballast = Ballast(settings.store_path.parent, clock)
        machine = machine_of(settings, clock, ballast)
        store: StorePorts
        if keeper is not None:
            order = _order(settings, machine.secrets)
            store = KeptStore(keeper, order, meter=machine.meter, on_broken=broken, on_full=ballast.let_go)
        else:
            store = sole = open_store(
                str(settings.store_path),
                sealer=machine.sealer,
                clock=machine.clock,
                meter=machine.meter,
                crash_points=machine.crash_points,
                on_broken=broken,
                on_full=ballast.let_go,
            )
            opened.callback(sole.close)
        noroshi = join(settings, machine, store, lock, is_dev=is_dev)
        opened.pop_all()
    return noroshi


def _order(settings: Settings, secrets: Secrets) -> Order:
    return Order(
        path=str(settings.store_path),
        folder=str(settings.data),
        masters=dict(secrets.masters),
        blind_index=secrets.blind_index,
        crash_at=settings.crash_at,
    )


class _NothingAttached:
    """For a roll that is called to be looked at."""

    async def contents(self, tenant: TenantId, batch_id: BatchId) -> list[bytes]:
        raise NotImplementedError


class _NothingCaught:
    """As above."""

    async def keep_caught(self, attempts: Sequence[Attempt]) -> None:
        raise NotImplementedError

    async def list_caught(
        self,
        tenant: TenantId,
        channel: str | None,
        user_id: str | None,
        before: int | None,
        limit: int,
        *,
        after: int = 0,
    ) -> list[CaughtMessage]:
        raise NotImplementedError


def roll_of(settings: Settings, outgoing: Outgoing | None = None) -> Roll:
    """The accounts that these settings give, without a server; to be looked at, unless there is a way out for them."""
    values = {**settings.values, "NOROSHI_CATCHER": "on" if settings.catcher else "off"}
    return call_roll(
        Parts(
            clock=SystemClock(),
            dice=SystemDice(),
            attachments=_NothingAttached(),
            caught=_NothingCaught(),
            outgoing=outgoing or LateOutgoing(settings.http_ca),
            values=values,
        )
    )


def join(
    settings: Settings,
    machine: Machine,
    store: StorePorts,
    lock: DataLock | None,
    *,
    is_dev: bool,
    role: Role = SERVER,
    line: Line | None = None,
) -> Noroshi:
    """The flow over a store and a machine, whatever these are. `line` stands in for the one of the settings."""
    values = {**settings.values, "NOROSHI_CATCHER": "on" if is_dev or settings.catcher else "off"}
    roll = call_roll(
        Parts(
            clock=machine.clock,
            dice=machine.dice,
            attachments=store.attachments,
            caught=store.caught,
            outgoing=machine.outgoing,
            values=values,
        )
    )
    categories = Categories(settings.categories)
    inboxes = open_inboxes(settings, machine, store)
    way = _open_way(settings, machine, store, roll, categories, role, inboxes)
    line = line or find_line(settings, machine.outgoing, store.caught if is_dev or settings.catcher else None)
    shop = _serve_shop(settings, machine, store, line, takes_payments=role.takes_in)
    return Noroshi(
        machine=machine,
        store=store,
        way=way,
        inboxes=inboxes,
        categories=categories,
        roll=roll,
        lock=lock,
        shop=shop,
        is_dev=is_dev,
    )


def _serve_shop(
    settings: Settings, machine: Machine, store: StorePorts, line: Line | None, *, takes_payments: bool
) -> Shop:
    secrets = settings.stripe_webhook_secret if takes_payments else None
    return open_shop(
        settings,
        store,
        line,
        clock=machine.clock,
        dice=machine.dice,
        crash_points=machine.crash_points,
        secrets=machine.secrets,
        signatures=None if secrets is None else StripeSignatures(secrets, machine.clock),
    )


def _open_way(
    settings: Settings,
    machine: Machine,
    store: StorePorts,
    roll: Roll,
    categories: Categories,
    role: Role,
    inboxes: Inboxes,
) -> Way:
    return Way(
        WayParts(
            clock=machine.clock,
            dice=machine.dice,
            meter=machine.meter,
            crash_points=machine.crash_points,
            batches=store.batches,
            queue=store.queue,
            accounts=store.accounts,
            announcements=store.announcements(machine.clock),
            duties=store.duties,
            pauses=store.pauses,
            templates=store.templates,
            history=store.history,
            inbox=store.inbox,
            live=inboxes.live,
            requests=store.requests,
            renderer=machine.renderer,
            channels=roll.accounts,
            served=roll.served,
            categories=categories,
            default_locale=settings.default_locale,
            dispatch=DispatchSettings(
                workers=settings.workers,
                lease_margin=settings.lease_margin,
                channels=role.channels,
                priorities=role.priorities,
            ),
            max_waiting=settings.max_waiting_calls,
            max_unfinished=settings.max_unfinished,
            takes_in=role.takes_in,
            side_by_side=settings.is_on_postgres,
        )
    )
