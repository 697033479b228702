"""One product on its own data folder with its own provider: driven, crashed, started again, drained and reckoned."""

import http.client
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Struct

from noroshi.domain.ids import BatchId, NotificationId, notification_id, read, show
from noroshi.domain.instants import Instant
from noroshi.machine.crash_points import DIED
from noroshi.machine.sealing import AesSealer
from noroshi.machine.secrets import load_secrets
from tests.callers import ForeignCaller
from tests.faults.machinery.kept_store import KeptStore
from tests.faults.machinery.load import PATH, Heard, Posted
from tests.faults.machinery.processes import NOROSHI, NotReadyError, ServedNoroshi
from tests.faults.machinery.reckoning import Answered, Asked, Crash, Reckoning, reckon
from tests.faults.sweep.launcher import VARIABLE
from tests.faults.sweep.seeded import TEMPLATE, Seeded, expected_hash
from tests.stand_ins.ledger_provider.ledger import TakenMessage, copies
from tests.stand_ins.ledger_provider.process import LedgerProvider
from tests.stand_ins.line.process import LineStandIn

LAUNCHER = (sys.executable, "-m", "tests.faults.sweep.launcher")

SHORT_LEASES = {"LEDGER_PROVIDER_TIMEOUT": "4", "NOROSHI_LEASE_MARGIN": "1"}
"""Where others may serve the same store, what a dead process held is free when its lease has run out: within five
seconds instead of forty."""

_LOOK_EVERY = 0.02
_ANSWER_WITHIN = 20
_ACCEPTED = 202

P = TypeVar("P", bound=ServedNoroshi)


class DiedError(Exception):
    """Whoever was being driven is dead, or dying."""


class Reply(Struct, frozen=True):
    status: int
    fields: dict[str, Any]


class Trial:
    """`posted` holds every idempotency key with what was heard of it; `crashes` what was in flight at each.

    `plants` are the launcher's; None is the product's own command. `words` are said to `serve`. What the product is
    asked to do raises DiedError when it turns out to be dead."""

    store: KeptStore

    def __init__(
        self,
        folder: Path,
        seeded: Seeded,
        *,
        plants: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        most_in_flight: int | None = None,
        words: Sequence[str] = (),
        needs_line: bool = False,
    ) -> None:
        self._words = words
        self.line = LineStandIn(folder / "line") if needs_line else None
        self.seeded = seeded
        self.posted: dict[str, Posted] = {}
        self.crashes: list[Crash] = []
        self._enqueued: dict[str, dict[str, Any]] = {}
        self._flying: list[AbstractSet[NotificationId]] = []
        self.command_environment: dict[str, str] = {}
        self.provider = LedgerProvider(folder / "ledger")
        self._data = folder / "data"
        self._plants = plants
        self._environment = dict(environment or {})
        self._most_in_flight = most_in_flight
        self._people = frozenset(seeded.people)
        self._began = self._counted_from = Instant(0)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.provider)
        self.store = self._stack.enter_context(self.seeded.copied_to(self._data))
        environment = {**self.store.environment, **self.provider.environment, **self._environment}
        if self.line is not None:
            environment |= self._stack.enter_context(self.line).environment
        if self.store.kind != "sqlite":
            environment = SHORT_LEASES | environment
        environment[VARIABLE] = ",".join(self._plants or ())
        self._environment = environment
        self.noroshi = self._process(ServedNoroshi, self._words)
        return self

    def _process(self, kind: type[P], words: Sequence[str] = (), **environment: str) -> P:
        """One that is yet to be started."""
        command = NOROSHI if self._plants is None else LAUNCHER
        process = kind(self._data, {**self._environment, **environment}, command, words=words)
        self._stack.enter_context(process)
        return process

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(self, **environment: str) -> float:
        """A new life; answers how long it took to be ready. Raises DiedError if it crashed on the way."""
        self._began = now()
        try:
            return self.noroshi.start(**environment)
        except NotReadyError as error:
            if error.code == DIED:
                raise DiedError from error
            raise

    def note_crash(self, where: str, at: Instant) -> Crash:
        """In flight: what had reached the provider in this life and has no outcome in the store. More than
        `most_in_flight` cannot be, and is not forgiven: that is a store which was not told in time."""
        self.provider.await_alone()
        self.store.await_alone()
        taken = {entry.key.notification_id for entry in self.taken() if entry.at >= self._began}
        flying = taken & self.store.unsettled()
        in_flight = len(flying) if self._most_in_flight is None else min(len(flying), self._most_in_flight)
        crash = Crash(at, in_flight, where)
        self.crashes.append(crash)
        self._flying.append(flying)
        return crash

    def blamed(self) -> Counter[int]:
        """Copies by the crash that explains them: each in-flight message once for each crash; -1: none does."""
        blamed: Counter[int] = Counter()
        for key, takings in copies(self.taken()).items():
            explaining = [number for number, flying in enumerate(self._flying) if key.notification_id in flying]
            blamed.update(explaining[: len(takings) - 1])
            blamed[-1] += max(len(takings) - 1 - len(explaining), 0)
        return blamed

    def taken(self) -> list[TakenMessage]:
        """What the provider took, what the catcher did where it stands in, and what is in inboxes."""
        secrets = load_secrets(self._data, None)
        kept = self.store.entries(AesSealer(secrets.masters, secrets.blind_index))
        everything = (*self.provider.taken(), *self.store.caught(), *kept)
        return [entry for entry in everything if entry.at >= self._counted_from]

    def begin_anew(self) -> None:
        """What came before is settled and no part of the reckoning."""
        self.posted.clear()
        self._counted_from = now()

    def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, expect: int | None = None, **headers: str
    ) -> Reply:
        """Raises DiedError if there is no answer. An underscore in a header's name stands for a dash."""
        raw = msgspec.json.encode(body) if body is not None else None
        status, text = self._exchange(method, path, raw, headers)
        reply = Reply(status, msgspec.json.decode(text, type=dict[str, Any]) if text else {})
        if expect is not None and reply.status != expect:
            raise AssertionError(f"{method} {path} was answered {reply.status}: {reply.fields}")
        return reply

    def text(self, path: str) -> str:
        return self._exchange("GET", path, None)[1].decode()

    def _exchange(
        self, method: str, path: str, body: bytes | None, more: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.noroshi.port, timeout=_ANSWER_WITHIN)
        headers = {"Authorization": f"Bearer {self.seeded.api_key}", "Content-Type": "application/json"}
        headers |= {name.replace("_", "-"): value for name, value in (more or {}).items()}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise DiedError(f"{method} {path}") from error
        finally:
            connection.close()

    def post(self, key: str, people: Sequence[str], *channels: str, **more: Any) -> str:
        """The batch that the key stands for, whether it was kept now or before a crash."""
        body = {
            "user_ids": list(people),
            "template_id": TEMPLATE,
            "channels": list(channels or ("email",)),
            "data": {"n": key},
            "idempotency_key": key,
            **more,
        }
        posted = self.posted.setdefault(key, Posted(body))
        try:
            reply = self.call("POST", PATH, body)
        except DiedError:
            posted.heard.append(Heard(now(), None))
            raise
        batch_id: str | None = reply.fields.get("batch_id")
        posted.heard.append(Heard(now(), reply.status, batch_id, reply.fields.get("code")))
        if batch_id is None:
            raise AssertionError(f"{key} was answered {reply.status}: {reply.fields}")
        return batch_id

    def enqueue(self, key: str, people: Sequence[str], *channels: str, template_id: str = TEMPLATE) -> str:
        """A caller's own transaction, whoever lives or not; the request's id."""
        body = {"user_ids": list(people), "template_id": template_id, "channels": list(channels), "data": {"n": key}}
        with ForeignCaller(self.store.place) as caller:
            request_id = caller.enqueue(**body, idempotency_key=key)
            caller.commit()
        self._enqueued[key] = body
        return request_id

    def note_enqueued(self) -> None:
        """What the enqueued requests have become is asked of the product from now on."""
        taken = self.store.rows("SELECT idempotency_key, batch_id FROM requests WHERE state = 1")
        for key, batch_id in taken:
            self.posted[key] = Posted(self._enqueued[key], [Heard(now(), _ACCEPTED, show(batch_id))])

    def command(self, *words: str) -> str:
        """What a command beside the server prints."""
        done = self.noroshi.command(*words, **self.command_environment)
        if done.returncode == DIED:
            raise DiedError(" ".join(words))
        if done.returncode:
            raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout.strip()

    def await_store(self, table: str, where: str, count: int, within: float = 20) -> None:
        """Until so many rows are there; DiedError if they never are, which the crash explains or a test will not."""
        deadline = time.monotonic() + within
        while self.store.count(table, where) != count:
            if time.monotonic() > deadline or not self.noroshi.is_alive:
                raise DiedError(f"{table} where {where} never came to {count}")
            time.sleep(_LOOK_EVERY)

    def drain(self, within: float = 40) -> None:
        deadline = time.monotonic() + within
        while not self.store.is_drained():
            if not self.noroshi.is_alive:
                raise DiedError("while it drained")
            if time.monotonic() > deadline:
                raise AssertionError(f"not drained within {within} s:\n{self.noroshi.log()[-4000:]}")
            time.sleep(_LOOK_EVERY)

    def reckon(self, *, is_control: bool = False) -> Reckoning:
        return reckon(self._asked(), self.store.ended(), self.taken(), self.crashes, is_control=is_control)

    def _asked(self) -> Iterator[Asked]:
        for key, posted in self.posted.items():
            if posted.answered is not Answered.ACCEPTED:
                raise AssertionError(f"{key} was never answered: {posted.heard}")
            for one, user_id, channel in notifications_of(posted):
                if user_id in self._people:
                    content = expected_hash(channel, key, user_id)
                    yield Asked(one, user_id, channel, content_hash=content, at=posted.answered_at)


def notifications_of(posted: Posted) -> Iterator[tuple[NotificationId, str, str]]:
    """(id, person, channel) of everything a kept request stands for."""
    raw = read(posted.batch_id or "")
    assert raw is not None, "it was not kept"
    for position, user_id in enumerate(posted.body["user_ids"]):
        for number, channel in enumerate(posted.body["channels"]):
            yield notification_id(BatchId(raw), position, number), user_id, channel


def now() -> Instant:
    return Instant(time.time_ns() // 1000)
