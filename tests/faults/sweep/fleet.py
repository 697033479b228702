"""One product of several processes on one database: each life sends under a name of its own, so that the provider's
ledger tells who sent what, and every copy can be laid to the life whose end explains it."""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from noroshi.domain.ids import NotificationId
from noroshi.domain.instants import Instant
from tests.faults.machinery.processes import ServedNoroshi, WorkingNoroshi
from tests.faults.machinery.reckoning import Crash, Reckoning
from tests.faults.sweep.seeded import Seeded
from tests.faults.sweep.trial import Trial, now

SENDER = "LEDGER_PROVIDER_SENDER"

QUICK_LEASES = {"LEDGER_PROVIDER_TIMEOUT": "3", "NOROSHI_LEASE_MARGIN": "1"}
LEASE_SECONDS = 4.0


class Member:
    """One process through all its lives; `sender` is the present one's name in the ledger."""

    def __init__(self, name: str, process: ServedNoroshi) -> None:
        self.name = name
        self.process = process
        self._lives = 0

    @property
    def sender(self) -> str:
        return f"{self.name}, life {self._lives}"

    def start(self, **environment: str) -> None:
        self._lives += 1
        self.process.start(**{SENDER: self.sender, **environment})


class Met(Struct, frozen=True):
    """What a fault met: `unsettled` is what was claimed then. In flight was of this what the `sender` (None: anybody)
    had handed to the provider, `until` some moment if it lived on."""

    at: Instant
    where: str
    unsettled: frozenset[NotificationId]
    sender: str | None = None
    until: Instant | None = None


class Fleet(Trial):
    """`members` are one `serve` and the workers."""

    def __init__(self, folder: Path, seeded: Seeded, *, workers: int = 2, **more: Any) -> None:
        environment = {**QUICK_LEASES, "NOROSHI_LOG_LEVEL": "warning", **(more.pop("environment", None) or {})}
        super().__init__(folder, seeded, environment=environment, **more)
        self.members: list[Member] = []
        self._worker_count = workers
        self._met: list[Met] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self.members = [Member("serve", self.noroshi)]
        for number in range(self._worker_count):
            self.add_worker(f"worker {number + 1}")
        return self

    @property
    def serving(self) -> Member:
        return self.members[0]

    @property
    def workers(self) -> Sequence[Member]:
        return self.members[1:]

    def add_worker(self, name: str, **environment: str) -> Member:
        member = Member(name, self._process(WorkingNoroshi, **environment))
        self.members.append(member)
        return member

    async def start_all(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(member.start) for member in self.members))

    def stop_all(self) -> list[int]:
        """The exit codes."""
        return [member.process.stop() for member in self.members if member.process.is_running]

    def meet(self, where: str, at: Instant, sender: str | None = None, until: Instant | None = None) -> Met:
        """Keeps what is claimed at this moment."""
        met = Met(at, where, frozenset(self.store.unsettled()), sender, until)
        self._met.append(met)
        return met

    def flying(self, met: Met) -> frozenset[NotificationId]:
        return met.unsettled & {
            entry.key.notification_id
            for entry in self.taken()
            if met.sender in (None, entry.sender) and (met.until is None or entry.at <= met.until)
        }

    def resumptions(self) -> list[timedelta]:
        """For every fault met so far that left something in flight which was sent again: how long it took until another
        life sent the first of it (I8). Whoever was about to do so may have been killed, too: each fault before that
        begins the time anew."""
        taken, moments = self.taken(), sorted(met.at for met in self._met)
        spans: list[timedelta] = []
        for met in self._met:
            flying = self.flying(met)
            again = [
                entry.at
                for entry in taken
                if entry.key.notification_id in flying and entry.sender != met.sender and entry.at > met.at
            ]
            if again:
                last = moments[bisect_left(moments, min(again)) - 1]
                spans.append(timedelta(microseconds=min(again) - last))
        return spans

    def reckon(self, *, is_control: bool = False) -> Reckoning:
        """As a trial's, with every fault that was met as a crash."""
        for met in sorted(self._met, key=lambda one: one.at):
            flying = self.flying(met)
            most = len(flying) if self._most_in_flight is None else self._most_in_flight
            self.crashes.append(Crash(met.at, min(len(flying), most), met.where))
            self._flying.append(flying)
        self._met.clear()
        return super().reckon(is_control=is_control)


async def killed_again_and_again(
    fleet: Fleet, member: Member, lifetimes: Sequence[float], plants_end: dict[str, str]
) -> None:
    """One member's lives, each of so many seconds from ready to its kill -9; the last life stays. Every other life
    lasts until the provider has something of its in hand: that at least half of the kills meet sends is not left to
    how quick the machine is."""
    for number, lifetime in enumerate(lifetimes):
        await asyncio.to_thread(member.start)
        await asyncio.sleep(lifetime)
        if number % 2 == 0:
            await asyncio.to_thread(fleet.provider.await_flight, member.sender)
        at = now()
        await asyncio.to_thread(member.process.kill)
        await asyncio.to_thread(fleet.meet, f"kill -9 of {member.name}", at, member.sender)
    await asyncio.to_thread(member.start, **plants_end)
