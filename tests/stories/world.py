"""The world of a story: the whole product on virtual time, with the words that stories use for it."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg

from noroshi.bootstrap.locking import DataLock
from noroshi.bootstrap.machine import Machine
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import join
from noroshi.domain import api_keys
from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.instants import Instant, at, moment_of
from noroshi.domain.records import ApiKey, KeyScope
from noroshi.entrypoints.api.app import build_app
from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.prometheus import PrometheusMeter
from noroshi.machine.rendering.inline import InlineRenderer
from noroshi.machine.secrets import load_secrets
from noroshi.settings import read_settings
from noroshi.storage.postgres.store import PostgresStore
from noroshi.storage.sqlite.connection import open_connection
from noroshi.storage.sqlite.store import SqliteStore, open_inline_store
from noroshi.storage.store import Store
from tests.callers import ForeignCaller
from tests.cast import Person
from tests.faults.machinery.sim_loop import SimLoop
from tests.faults.machinery.sim_ports import SimClock, SimDice
from tests.faults.machinery.wired_loop import WiredLoop
from tests.stand_ins.line_in_memory import LineInMemory
from tests.stores import MONDAY, hasty
from tests.stories.client import Answer, Client, Json

LONGEST_LEASE = timedelta(minutes=2)
"""Longer than any claim in a story is held for."""

ANSWERS_A_STEP = 8
"""Of a database, which answers each statement of a turn by itself."""

ALL_SCOPES = (KeyScope.SEND, KeyScope.READ, KeyScope.ADMIN)


class StillRenderer(InlineRenderer):
    """Renders in the caller's own turn, so that virtual time stands still meanwhile."""

    async def start(self) -> None:
        """There is no child to start."""

    async def stop(self) -> None:
        """There is no child to stop."""


class World:
    """Time passes only when a story says so. `settings` are those of the command line, by key; `store` among them is
    the URL of a database, without which the store is a file in the folder. What is told in-app is caught like the rest,
    unless a story is about the inbox and says `inbox="on"`."""

    def __init__(self, folder: Path, start: datetime = MONDAY, **settings: str) -> None:
        self.folder = folder
        self._order = random.Random("order")
        self._dice = SimDice(random.Random("dice"))
        self._settings = read_settings({}, {"data": str(folder), "inbox": "off", **settings})
        self.is_on_postgres = self._settings.is_on_postgres
        self.loop = self._loop_from(0.0)
        self.clock = SimClock(self.loop, at(start))
        self.line = LineInMemory(self.clock)
        self.open()

    # the life of the product

    def open(self) -> None:
        """Joins and starts the product on the folder, as a process that is started would."""
        self.meter = PrometheusMeter()
        machine = Machine(
            clock=self.clock,
            dice=self._dice,
            meter=self.meter,
            crash_points=NoCrashPoints(),
            renderer=StillRenderer(),
            secrets=load_secrets(self.folder, None),
        )
        self.secrets = machine.secrets
        self.store = self._open_store(machine)
        self.noroshi: Noroshi = self.run(self._start(machine))
        self.app = build_app(self.noroshi)
        self._admin = Client(self.app, self.mint())

    def _loop_from(self, moment: float) -> SimLoop:
        return WiredLoop(moment) if self.is_on_postgres else SimLoop(self._order, moment)

    def _open_store(self, machine: Machine) -> Store:
        if self.is_on_postgres:
            return PostgresStore(
                hasty(self._settings.store),
                sealer=machine.sealer,
                meter=self.meter,
                crash_points=machine.crash_points,
                is_unsafe=True,
                clock=self.clock,
            )
        return open_inline_store(
            open_connection(str(self._settings.store_path), synchronous="OFF"),
            sealer=machine.sealer,
            clock=self.clock,
            meter=self.meter,
            crash_points=machine.crash_points,
        )

    async def _start(self, machine: Machine) -> Noroshi:
        self._lock = None if self.is_on_postgres else DataLock(self.folder)
        noroshi = join(self._settings, machine, self.store, self._lock, is_dev=True, line=self.line)
        await noroshi.start()
        return noroshi

    def stop(self) -> None:
        """A clean shutdown."""
        self.run(self.noroshi.stop())
        self.loop.run_until_idle(self.loop.time())
        self.loop.close()

    def restart(self, down: timedelta = timedelta(0)) -> None:
        """A clean shutdown, and after a while a new process on the same folder."""
        self.stop()
        self.start(down)

    def crash(self) -> None:
        """The process ends where it stands, and a new one starts. What the dead one had claimed is free again: on
        SQLite at once, for nobody else serves the file; where there may be others, when the leases have run out."""
        self.loop.close()
        if isinstance(self.store, SqliteStore):
            self.store.close()
        if self._lock is not None:
            self._lock.release()
        self.start()
        if self.is_on_postgres:
            self.advance(LONGEST_LEASE)

    def start(self, down: timedelta = timedelta(0)) -> None:
        """A new process, a while after the last one ended."""
        self.loop = self._loop_from(self.loop.time() + down.total_seconds())
        self.clock.loop = self.loop
        self.open()

    # time

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def until_idle(self) -> None:
        """Whatever can happen at this moment has happened."""
        self.loop.run_until_idle(self.loop.time())

    def take_steps(self, count: int) -> None:
        """The product does a little of what it could do at this moment."""
        if isinstance(self.loop, WiredLoop):
            self.loop.run_until_answered(count * ANSWERS_A_STEP)
            return

        async def wait() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.run(wait())

    def advance(self, span: timedelta) -> None:
        """Time passes, and everything that falls due in it happens at its time."""
        self.loop.run_until_idle(self.loop.time() + span.total_seconds())

    def advance_seconds(self, seconds: float) -> None:
        self.advance(timedelta(seconds=seconds))

    def advance_to(self, moment: datetime) -> None:
        self.advance(moment - self.now)

    @property
    def now(self) -> datetime:
        return moment_of(self.clock.now())

    def after(self, span: timedelta) -> str:
        """A time on the wire."""
        return (self.now + span).isoformat()

    # keys and calls

    def mint(self, *scopes: KeyScope, tenant: TenantId = DEFAULT_TENANT, per_minute: int | None = None) -> str:
        """A new API key (without scopes: with all)."""
        clear = api_keys.mint(self._dice.bits(api_keys.KEY_BITS))
        key = ApiKey(
            key_id=api_keys.key_id(clear),
            tenant=tenant,
            name="operator",
            scopes=scopes or ALL_SCOPES,
            digest=api_keys.digest(self.secrets.pepper, clear),
            created_at=self.clock.now(),
            per_minute=per_minute,
        )
        self.run(self.store.keys.add(key))
        return clear

    def client(self, *scopes: KeyScope, tenant: TenantId = DEFAULT_TENANT, per_minute: int | None = None) -> Client:
        return Client(self.app, self.mint(*scopes, tenant=tenant, per_minute=per_minute))

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        client: Client | None = None,
    ) -> Answer:
        answer: Answer = self.run((client or self._admin).call(method, path, body, headers))
        return answer

    def begin(self, method: str, path: str, body: Any = None) -> None:
        """A call whose answer nobody waits for."""
        self._begun = self.loop.create_task(self._admin.call(method, path, body))

    def together(self, calls: Sequence[tuple[str, str, Any]], client: Client | None = None) -> list[Answer]:
        """Calls that race each other."""

        async def race() -> list[Answer]:
            caller = client or self._admin
            return list(await asyncio.gather(*(caller.call(*call) for call in calls)))

        answers: list[Answer] = self.run(race())
        return answers

    def get(self, path: str) -> Answer:
        return self._ok(self.call("GET", path))

    def post(self, path: str, body: Any = None) -> Answer:
        return self._ok(self.call("POST", path, body))

    def put(self, path: str, body: Any) -> Answer:
        return self._ok(self.call("PUT", path, body))

    def delete(self, path: str) -> Answer:
        return self._ok(self.call("DELETE", path))

    def _ok(self, answer: Answer) -> Answer:
        assert answer.status < 300, answer.text
        return answer

    # the words of stories

    def meet(self, *people: Person) -> None:
        """People sign up, with all their devices."""
        for person in people:
            self.put(f"/api/v1/users/{person.user_id}", person.body)
            for platform, tokens in (("ios", person.devices), ("web", person.browsers)):
                for token in tokens:
                    self.post(f"/api/v1/users/{person.user_id}/devices", {"platform": platform, "device_token": token})

    def write(self, template_id: str = "welcome", *channels: str, **fields: Any) -> None:
        """An editor adds a version of a template for each channel (left out: e-mail)."""
        version = {"locale": "en", "body": "Hello {{ user.name }}", **fields}
        for channel in channels or ("email",):
            self.post(f"/api/v1/templates/{template_id}", {"channel": channel, **version})

    def wish(self, person: Person, **preferences: Any) -> Answer:
        return self.put(f"/api/v1/users/{person.user_id}/notification-preferences", preferences)

    def request(self, *people: Person | str, **fields: Any) -> Json:
        user_ids = [person if isinstance(person, str) else person.user_id for person in people]
        return {"user_ids": user_ids, "template_id": "welcome", **fields}

    def ask(self, *people: Person | str, **fields: Any) -> Answer:
        """A caller asks for a notification; whatever comes back."""
        return self.call("POST", "/api/v1/notifications", self.request(*people, **fields))

    def tell(self, *people: Person | str, **fields: Any) -> str:
        """A caller's request is accepted, and what can be sent at once is sent; answers the batch's id."""
        answer = self._ok(self.ask(*people, **fields))
        self.until_idle()
        batch_id: str = answer["batch_id"]
        return batch_id

    def enqueue(
        self, *people: Person | str, is_committed: bool = True, is_announced: bool = True, **fields: Any
    ) -> str:
        """A caller enqueues a request in a transaction of its own, and what waits is taken in; the request's id."""
        place = self._settings.store if self._settings.is_on_postgres else str(self._settings.store_path)
        with ForeignCaller(place) as caller:
            request_id = caller.enqueue(**self.request(*people, **fields))
            if is_committed:
                caller.commit()
        if is_announced:
            self.noroshi.announce_enqueued()
        self.until_idle()
        return request_id

    def misbehave(self, fault: str, **more: Any) -> None:
        """The catcher fails from now on."""
        self.put("/api/v1/caught/misbehaviour", {"fault": fault, **more})

    def behave(self) -> None:
        self.delete("/api/v1/caught/misbehaviour")

    # what can be seen

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """What the tables hold, also of a product that is stopped."""
        if not self.is_on_postgres:
            return apsw.Connection(str(self._settings.store_path)).execute(question).fetchall()
        with psycopg.connect(self._settings.store, options="-c search_path=noroshi") as connection:
            return connection.execute(question).fetchall()

    def change(self, statement: str) -> None:
        """Somebody's hand in the tables of a product that is stopped."""
        if not self.is_on_postgres:
            apsw.Connection(str(self._settings.store_path)).execute(statement)
            return
        with psycopg.connect(self._settings.store, options="-c search_path=noroshi") as connection:
            connection.execute(statement)

    def caught(self, person: Person | None = None, channel: str | None = None) -> list[Json]:
        """What was caught, oldest first."""
        query = [f"user_id={person.user_id}"] if person is not None else []
        query += [f"channel={channel}"] if channel is not None else []
        return self.listed(f"/api/v1/caught?{'&'.join(query)}")[::-1]

    def listed(self, path: str, limit: int = 100) -> list[Json]:
        """Every item of a list, page after page."""
        joint = "&" if "?" in path and not path.endswith("?") else "" if path.endswith("?") else "?"
        items: list[Json] = []
        cursor = ""
        while True:
            page = self.get(f"{path}{joint}limit={limit}{cursor}")
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            cursor = f"&cursor={page['next_cursor']}"

    def notifications(self, batch_id: str) -> list[Json]:
        return self.listed(f"/api/v1/notifications/{batch_id}")

    def notification(self, batch_id: str) -> Json:
        (found,) = self.notifications(batch_id)
        return found

    def status(self, batch_id: str) -> str:
        """The status of the only notification of a batch."""
        status: str = self.notification(batch_id)["status"]
        return status

    def reasons(self, batch_id: str) -> dict[tuple[str, str], str | None]:
        """By person and channel: why (or None)."""
        return {(n["user_id"], n["channel"]): n["reason"] for n in self.notifications(batch_id)}

    def letters(self, query: str = "") -> list[Json]:
        return self.listed(f"/api/v1/dead-letters?{query}")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over every sample that has these labels."""
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        total = 0.0
        for line in self.call("GET", "/metrics").text.decode().splitlines():
            if line.startswith((f"{name}{{", f"{name} ")):
                head, _, value = line.rpartition(" ")
                if wanted <= set(head.partition("{")[2].rstrip("}").split(",")):
                    total += float(value)
        return total


def kinds(notification: Json) -> list[str]:
    """A trail in the words of the ledger."""
    return [entry["kind"] for entry in notification["trail"]]


def bodies(messages: Iterable[Json]) -> list[str]:
    return [message["body"] for message in messages]


def instant(text: str) -> Instant:
    return at(datetime.fromisoformat(text))
