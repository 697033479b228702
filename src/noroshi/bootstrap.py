"""Settings in, a whole Noroshi out: the only place that knows settings, flow, storage and machine together."""

import fcntl
import gc
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Protocol, TextIO

import structlog
from msgspec import Struct

from noroshi.domain import api_keys
from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import DEFAULT_TENANT, BatchId, TenantId
from noroshi.domain.instants import plus
from noroshi.domain.lanes import Lane
from noroshi.domain.marks import WHY_NOT_SERVED, Mark
from noroshi.domain.misbehaviour import Misbehaviour
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import ApiKey, CaughtMessage, KeyScope
from noroshi.domain.requests import AcceptedAnswer, Caller, NotificationRequest
from noroshi.flow.accept.gate import Gate
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.send.catcher.channel import Catcher
from noroshi.flow.send.parts import Parts
from noroshi.flow.send.registry import RegistryError, Roll, call_roll
from noroshi.flow.way import Way, WayParts
from noroshi.keeper.process import Keeper, KeptStore, Order, forked_keeper
from noroshi.machine import logs
from noroshi.machine.ballast import LOOK_AGAIN_AFTER, Ballast
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import EnvCrashPoints, NoCrashPoints
from noroshi.machine.dice import SystemDice
from noroshi.machine.meter import NullMeter, PrometheusMeter
from noroshi.machine.rendering.renderer import ChildRenderer
from noroshi.machine.sealing import AesSealer
from noroshi.machine.secrets import Secrets, SecretsError, load_secrets
from noroshi.ports.channel import ClosableChannel
from noroshi.ports.clock import Clock
from noroshi.ports.crash_points import CrashPoints
from noroshi.ports.dice import Dice
from noroshi.ports.meter import Meter
from noroshi.ports.renderer import Renderer
from noroshi.ports.sealer import Sealer
from noroshi.ports.store import StorePorts
from noroshi.settings import Settings, SettingsError
from noroshi.storage.errors import NewerSchemaError, NotServableError, UnreachableError, UnsafeStoreError
from noroshi.storage.sqlite.connection import migrate, open_connection
from noroshi.storage.sqlite.store import open_inline_store, open_store
from noroshi.storage.store import Store

_log = structlog.get_logger(__name__)

Minting = Callable[[str, Sequence[KeyScope], int | None, timedelta | None], tuple[str, ApiKey]]
"""(name, scopes, calls a minute, life) in; the key to show once, and what the store keeps of it, out."""


_DISK_IS_FULL = "the disk is full: what was accepted is being finished, and nothing more is accepted"


_COLLECT_AFTER = (10_000, 20, 50)
"""Nearly nothing of ours lies in circles: the usual 700 costs a twentieth of the time and finds nothing."""


class DataLockedError(RuntimeError):
    """Another process serves this data folder; the text says which."""


START_ERRORS: tuple[type[Exception], ...] = (
    DataLockedError,
    NewerSchemaError,
    NotServableError,
    RegistryError,
    SecretsError,
    UnreachableError,
    UnsafeStoreError,
)
"""What a person can mend before the next start: each says how in one line."""


class DataLock:
    """One serving process per file: a lock on the data folder, released by the kernel when the process ends."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file: TextIO = (directory / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise DataLockedError(f"{directory} is served by process {holder}; stop it or use another --data") from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()


class Role(Struct, frozen=True):
    """What a process does. Every one dispatches and sweeps, for these channels and priorities (None: for all); one
    that `takes_in` also accepts and addresses."""

    takes_in: bool = True
    channels: frozenset[str] | None = None
    priorities: frozenset[Priority] | None = None


SERVER = Role()


class LiveRenderer(Renderer, Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Machine(Struct, frozen=True):
    """What a Noroshi runs on: the system's own parts in service, others (and no ballast) in virtual time."""

    clock: Clock
    dice: Dice
    meter: PrometheusMeter
    crash_points: CrashPoints
    renderer: LiveRenderer
    secrets: Secrets
    ballast: Ballast | None = None

    @property
    def sealer(self) -> AesSealer:
        return AesSealer(self.secrets.masters, self.secrets.blind_index)


class Noroshi:
    """A whole system, to be started once and stopped once. It is the desk that the API talks to."""

    def __init__(
        self,
        *,
        machine: Machine,
        store: StorePorts,
        way: Way,
        categories: Categories,
        roll: Roll,
        lock: DataLock | None,
        is_dev: bool,
    ) -> None:
        self._store = store
        self._way = way
        self._meter = machine.meter
        self._roll = roll
        self._lock = lock
        self._ballast = machine.ballast
        self._minting = _minting(machine.clock, machine.dice, machine.secrets)
        self._is_dev = is_dev
        self._is_running = False
        self.is_broken = False
        self.gate = Gate(store.keys, machine.secrets.pepper, machine.clock)
        self.renderer = machine.renderer
        self.clock = machine.clock
        self.categories = categories
        self.batches = store.batches
        self.people = store.people
        self.devices = store.devices
        self.templates = way.templates
        self.history = store.history
        self.dead_letters = store.dead_letters
        self.pauses = store.pauses
        self.requests = store.requests
        self.caught = store.caught
        self.keys = store.keys
        self.dispatchable_channels = frozenset(roll.served)
        self.reporting_channels: frozenset[str] = frozenset()

    async def start(self) -> None:
        await self._store.start()
        await self._look_at_marks()
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
        await self.renderer.stop()
        await self._store.stop()
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

    def pauses_changed(self) -> None:
        self._way.look_again()

    def announce_replayed(self) -> None:
        self._way.look_again()

    def announce_enqueued(self) -> None:
        self._way.intake.take_enqueued()

    def misbehave(self, how: Misbehaviour | None) -> bool:
        catchers = [account for account in self._roll.accounts.values() if isinstance(account, Catcher)]
        if not (self._is_dev and catchers):
            return False
        if how is None:
            catchers[0].behave()
        else:
            catchers[0].misbehave(how)
        return True

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

    def notes(self) -> list[str]:
        caught = sorted(name for name, account in self._roll.served.items() if account.startswith("catcher"))
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
        machine = _machine(settings, SystemClock(), None)
        store = _postgres(settings, machine.sealer, machine.meter)
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
    lock = DataLock(settings.data)
    clock = SystemClock()
    ballast = Ballast(settings.store_path.parent, clock)
    machine = _machine(settings, clock, ballast)

    def broken() -> None:
        noroshi.is_broken = True
        on_broken()

    store: StorePorts
    if keeper is not None:
        order = _order(settings, machine.secrets)
        store = KeptStore(keeper, order, meter=machine.meter, on_broken=broken, on_full=ballast.let_go)
    else:
        store = open_store(
            str(settings.store_path),
            sealer=machine.sealer,
            clock=machine.clock,
            meter=machine.meter,
            crash_points=machine.crash_points,
            on_broken=broken,
            on_full=ballast.let_go,
        )
    noroshi = join(settings, machine, store, lock, is_dev=is_dev)
    return noroshi


def _order(settings: Settings, secrets: Secrets) -> Order:
    return Order(
        path=str(settings.store_path),
        folder=str(settings.data),
        masters=dict(secrets.masters),
        blind_index=secrets.blind_index,
        crash_at=settings.crash_at,
    )


def _machine(settings: Settings, clock: Clock, ballast: Ballast | None) -> Machine:
    return Machine(
        clock=clock,
        dice=SystemDice(),
        meter=PrometheusMeter(),
        crash_points=_crash_points(settings),
        renderer=ChildRenderer(),
        secrets=load_secrets(settings.data, settings.secret_key),
        ballast=ballast,
    )


def _postgres(settings: Settings, sealer: Sealer, meter: Meter) -> Store:
    """Loaded on first use: whoever stays on SQLite pays nothing for it."""
    try:
        module = import_module("noroshi.storage.postgres.store")
    except ImportError as error:
        raise UnreachableError(f"PostgreSQL needs the package {error.name}: pip install asyncpg") from error
    store: Store = module.PostgresStore(
        settings.store,
        sealer=sealer,
        meter=meter,
        crash_points=_crash_points(settings),
        is_unsafe=settings.unsafe,
    )
    return store


class _NothingCaught:
    """For a roll that is called to be looked at."""

    async def keep_caught(self, attempts: Sequence[Attempt]) -> None:
        raise NotImplementedError

    async def list_caught(
        self, tenant: TenantId, channel: str | None, user_id: str | None, before: int | None, limit: int
    ) -> list[CaughtMessage]:
        raise NotImplementedError


def roll_of(settings: Settings) -> Roll:
    """The accounts that these settings give, without a server."""
    values = {**settings.values, "NOROSHI_CATCHER": "on" if settings.catcher else "off"}
    return call_roll(Parts(clock=SystemClock(), dice=SystemDice(), caught=_NothingCaught(), values=values))


def join(
    settings: Settings,
    machine: Machine,
    store: StorePorts,
    lock: DataLock | None,
    *,
    is_dev: bool,
    role: Role = SERVER,
) -> Noroshi:
    """The flow over a store and a machine, whatever these are."""
    values = {**settings.values, "NOROSHI_CATCHER": "on" if is_dev or settings.catcher else "off"}
    roll = call_roll(Parts(clock=machine.clock, dice=machine.dice, caught=store.caught, values=values))
    categories = Categories(settings.categories)
    way = Way(
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
        )
    )
    return Noroshi(machine=machine, store=store, way=way, categories=categories, roll=roll, lock=lock, is_dev=is_dev)


class Back:
    """The store without a server: for commands that write a little beside serving processes."""

    def __init__(self, store: Store, schema: int, minting: Minting) -> None:
        self.store = store
        self.schema = schema
        self._minting = minting

    async def mint_key(
        self,
        name: str,
        scopes: Sequence[KeyScope],
        per_minute: int | None = None,
        expires_in: timedelta | None = None,
    ) -> str:
        return await mint_key(self.store, self._minting, name, scopes, per_minute, expires_in)


@asynccontextmanager
async def opened_back(settings: Settings) -> AsyncIterator[Back]:
    """The store at its current schema, for as long as the block lasts."""
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    clock, dice = SystemClock(), SystemDice()
    secrets = load_secrets(settings.data, settings.secret_key)
    sealer = AesSealer(secrets.masters, secrets.blind_index)
    store: Store
    if settings.is_on_postgres:
        database = _postgres(settings, sealer, NullMeter())
        schema = await database.start()
        store = database
    else:
        connection = open_connection(str(settings.store_path))
        schema = migrate(connection)
        store = open_inline_store(
            connection, sealer=sealer, clock=clock, meter=NullMeter(), crash_points=_crash_points(settings)
        )
    try:
        yield Back(store, schema, _minting(clock, dice, secrets))
    finally:
        await store.stop()


async def mint_key(
    store: StorePorts,
    minting: Minting,
    name: str,
    scopes: Sequence[KeyScope],
    per_minute: int | None,
    expires_in: timedelta | None,
) -> str:
    clear, key = minting(name, scopes, per_minute, expires_in)
    await store.keys.add(key)
    return clear


def _crash_points(settings: Settings) -> CrashPoints:
    return EnvCrashPoints(settings.crash_at) if settings.crash_at else NoCrashPoints()


def _minting(clock: Clock, dice: Dice, secrets: Secrets) -> Minting:
    def mint(
        name: str, scopes: Sequence[KeyScope], per_minute: int | None, expires_in: timedelta | None
    ) -> tuple[str, ApiKey]:
        clear = api_keys.mint(dice.bits(api_keys.KEY_BITS))
        now = clock.now()
        key = ApiKey(
            key_id=api_keys.key_id(clear),
            tenant=DEFAULT_TENANT,
            name=name,
            scopes=tuple(scopes),
            digest=api_keys.digest(secrets.pepper, clear),
            created_at=now,
            expires_at=None if expires_in is None else plus(now, expires_in),
            per_minute=per_minute,
        )
        return clear, key

    return mint
