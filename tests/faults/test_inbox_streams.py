"""Streams of inboxes that break, idle, lag and are many: nobody misses or doubles anything, and nothing grows."""

import asyncio
import os
import random
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.onlookers import Looking, Onlooker, numbers_in
from tests.faults.machinery.reckoning import Word
from tests.faults.machinery.report import publish, section
from tests.faults.sweep.driver import sweep
from tests.faults.sweep.seeded import Seeded, seed
from tests.faults.sweep.table import Row
from tests.faults.sweep.trial import Trial
from tests.faults.sweep.workloads import INBOX, Workload

pytestmark = pytest.mark.xdist_group("processes")

PEOPLE = 20
CUTS = 100
UNLIMITED = {"frequency_limit": {"in_app": {"per_hour": 1_000_000, "per_day": 1_000_000}}}
SEVERAL = {"sqlite": (), "postgres": ("--workers", "2")}
"""Whichever process holds a stream, and whichever has settled."""

KB, MB = 1024, 1024 * 1024
IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"
IDLE = 10_000 if IS_FULL else 1_000
_WAITS_AT_MOST = 40.0
_WAITS_FOR_A_CONTROL = 2.0


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Seeded:
    return seed(tmp_path_factory.mktemp("seeded") / "data", PEOPLE, store)


@contextmanager
def served(
    folder: Path, seeded: Seeded, plants: Sequence[str] | None = None, *, words: Sequence[str] = ()
) -> Iterator[Trial]:
    with Trial(folder, seeded, plants=plants, words=words) as trial:
        trial.start()
        for person in seeded.people:
            trial.call("PUT", f"/api/v1/users/{person}/notification-preferences", UNLIMITED, expect=200)
        yield trial


def looking_at(trial: Trial) -> Looking:
    return Looking(trial.noroshi.port, trial.seeded.api_key)


def stored(trial: Trial) -> dict[str, list[int]]:
    """The numbers in every inbox, in order."""
    found: dict[str, list[int]] = {}
    for user_id, number in trial.store.rows("SELECT user_id, number FROM inbox ORDER BY user_id, number"):
        found.setdefault(user_id, []).append(number)
    return found


def resident(trial: Trial) -> int:
    """Bytes of the serving process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{trial.noroshi.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * KB


# Last-Event-ID


class Watched(Struct):
    """What was seen, and what is stored, by person."""

    seen: dict[str, list[int]]
    kept: dict[str, list[int]]

    @property
    def missed(self) -> int:
        return sum(len(set(self.kept[one]) - set(self.seen[one])) for one in self.kept)

    @property
    def doubled(self) -> int:
        return sum(len(numbers) - len(set(numbers)) for numbers in self.seen.values())

    @property
    def is_in_order(self) -> bool:
        return all(numbers == sorted(numbers) for numbers in self.seen.values())


def watch(trial: Trial, times: int, cuts: int, patience: float) -> Watched:
    """Everybody is told so many things while their connections break."""
    people = trial.seeded.people
    dice = random.Random("cuts")
    onlookers = [Onlooker(one, cuts // PEOPLE, random.Random(dice.random()), times // 8) for one in people]

    def tell() -> None:
        with ThreadPoolExecutor(4) as callers:
            list(callers.map(lambda number: trial.post(f"told-{number}", people, "in_app"), range(times)))
        trial.drain()

    async def look() -> None:
        watches = [asyncio.create_task(one.look(looking_at(trial), times)) for one in onlookers]
        await asyncio.to_thread(tell)
        _, late = await asyncio.wait(watches, timeout=patience)
        for watch in late:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)

    asyncio.run(look())
    assert not any(one.cuts_left for one in onlookers) or patience < _WAITS_AT_MOST
    return Watched({one.user_id: one.seen for one in onlookers}, stored(trial))


def test_a_hundred_cuts_while_five_thousand_arrive_lose_and_double_nothing(
    tmp_path: Path, store: Stores, seeded: Seeded
) -> None:  # W6, W23, F20
    words = SEVERAL[store.kind]
    with served(tmp_path / "sound", seeded, words=words) as trial:
        sound = watch(trial, 5_000 // PEOPLE, CUTS, _WAITS_AT_MOST)
    controls: dict[str, Watched] = {}
    for plant in ("forgets_who_comes_again", "numbers_entries_first"):
        with served(tmp_path / plant, seeded, [plant], words=words) as trial:
            controls[plant] = watch(trial, 60, CUTS, _WAITS_FOR_A_CONTROL)
    rows = {f"{CUTS} cuts, 5,000 entries": sound, **{f"control: {name}": one for name, one in controls.items()}}
    lines = [f"| {name} | {one.missed} | {one.doubled} | {one.is_in_order} |" for name, one in rows.items()]
    lines[:0] = ["| run | missed | doubled | in order |", "|---|--:|--:|---|"]
    publish(section("streams", store.kind), "\n".join(lines))
    assert {tuple(numbers) for numbers in sound.kept.values()} == {tuple(range(1, 5_000 // PEOPLE + 1))}
    assert sound.seen == sound.kept
    assert all(control.missed for control in controls.values()), "a control was not found out"


# kill -9


@pytest.mark.parametrize("point", ["commit.settle.before", "commit.settle.after"])
def test_wherever_a_process_dies_an_entry_is_kept_once(
    tmp_path: Path, store: Stores, seeded: Seeded, point: str
) -> None:  # W9-W12, I3
    swept = sweep(point, Row(INBOX), tmp_path / "sound", seeded)
    assert swept.is_sound
    assert {word for word, count in swept.reckoning.words.items() if count} == {Word.OK}


def test_an_entry_kept_before_its_delivery_is_over_would_be_kept_twice(
    tmp_path: Path, store: Stores, seeded: Seeded
) -> None:  # W11: the control
    unchecked = Row(Workload("inbox", INBOX.run))
    swept = sweep("commit.settle.after", unchecked, tmp_path, seeded, plants=["keeps_entries_first"])
    assert swept.reckoning.words[Word.DUPLICATED]


# many


def test_idle_streams_cost_little_and_end_at_once(tmp_path: Path, store: Stores, seeded: Seeded) -> None:  # F15
    with served(tmp_path, seeded) as trial:
        before = resident(trial)
        asyncio.run(_idle(trial, before))


async def _idle(trial: Trial, before: int) -> None:
    people, looking = trial.seeded.people, looking_at(trial)
    streams = []
    for first in range(0, IDLE, 100):
        streams += await asyncio.gather(*(looking.open(people[n % PEOPLE]) for n in range(first, first + 100)))
    assert (resident(trial) - before) / IDLE < 20 * KB
    took = [await asyncio.to_thread(_timed, trial) for _ in range(50)]
    assert statistics.median(took) < 0.1
    await asyncio.to_thread(trial.post, "told", people, "in_app")
    firsts = await asyncio.wait_for(asyncio.gather(*(anext(numbers_in(reader)) for reader, _ in streams)), 30)
    assert set(firsts) == {1}
    began = time.monotonic()
    assert await asyncio.to_thread(trial.noroshi.stop) == 0
    assert time.monotonic() - began < 8
    rests = await asyncio.gather(*(reader.read() for reader, _ in streams))
    assert all(rest.endswith(b"0\r\n\r\n") for rest in rests), "a stream was cut instead of ended"
    for _, writer in streams:
        writer.close()


def _timed(trial: Trial) -> float:
    began = time.monotonic()
    trial.call("GET", f"/api/v1/users/{trial.seeded.people[0]}/inbox/unread-count", expect=200)
    return time.monotonic() - began


def test_readers_who_do_not_read_cost_no_memory_and_miss_nothing(
    tmp_path: Path, store: Stores, seeded: Seeded
) -> None:  # F14
    with served(tmp_path, seeded) as trial:
        version = {"channel": "in_app", "locale": "en", "body": "{{ n }}" + "x" * 12_000}
        trial.call("POST", "/api/v1/templates/long", version, expect=201)
        asyncio.run(_lag(trial))


async def _lag(trial: Trial) -> None:
    """20 people with 5 pages each, of which none reads: held in memory it would be 120 MB."""
    people, looking, times = trial.seeded.people, looking_at(trial), 100
    streams = [await looking.open(person) for person in people for _ in range(5)]
    for reader, _ in streams:
        reader._transport.pause_reading()  # type: ignore[attr-defined]
    before = resident(trial)
    for number in range(times):
        await asyncio.to_thread(trial.post, f"long-{number}", people, "in_app", template_id="long")
    await asyncio.to_thread(trial.drain)
    assert resident(trial) - before < 60 * MB
    for reader, _ in streams:
        reader._transport.resume_reading()  # type: ignore[attr-defined]

    async def all_of(reader: asyncio.StreamReader) -> list[int]:
        seen: list[int] = []
        async for number in numbers_in(reader):
            seen.append(number)
            if number == times:
                break
        return seen

    seen = await asyncio.wait_for(asyncio.gather(*(all_of(reader) for reader, _ in streams)), 60)
    assert {tuple(numbers) for numbers in seen} == {tuple(range(1, times + 1))}
    for _, writer in streams:
        writer.transport.abort()


# sockets


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory, seeded: Seeded) -> Iterator[Trial]:
    """One server for all that is asked over sockets; each test has people of its own."""
    with served(tmp_path_factory.mktemp("sockets"), seeded) as trial:
        yield trial


def opening(trial: Trial, person: str, key: str | None = None, query: str = "", origin: Any = None) -> ClientConnection:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    url = f"ws://127.0.0.1:{trial.noroshi.port}/api/v1/users/{person}/inbox/socket{query}"
    return connect(url, origin=origin, additional_headers=headers)


def token_of(trial: Trial, person: str, seconds: int = 3600) -> str:
    asked = {"expires_in": seconds}
    token: str = trial.call("POST", f"/api/v1/users/{person}/tokens", asked, expect=201).fields["token"]
    return token


def heard_until(socket: ClientConnection, unread: int) -> list[tuple[str, int]]:
    """What comes until so many are unread: entries by their ids, states by their count."""
    heard: list[tuple[str, int]] = []
    while not heard or heard[-1] != ("state", unread):
        message = msgspec.json.decode(socket.recv(timeout=10))
        heard.append((message["event"], message["data"]["entry_id" if message["event"] == "entry" else "unread"]))
    return heard


def test_a_socket_shows_what_comes_and_who_comes_again_misses_nothing(
    standing: Trial, seeded: Seeded
) -> None:  # N1.6, W23
    person = seeded.people[1]
    token = token_of(standing, person)
    with opening(standing, person, token) as socket:
        assert heard_until(socket, 0) == [("state", 0)]
        standing.post("socket-1", [person], "in_app")
        assert heard_until(socket, 1) == [("entry", 1), ("state", 1)]
        standing.call("POST", f"/api/v1/users/{person}/inbox/1/read", expect=200)
        assert heard_until(socket, 0) == [("state", 0)]
    for number in (2, 3):
        standing.post(f"socket-{number}", [person], "in_app")
    standing.drain()
    with opening(standing, person, token, "?after=1") as again:
        entries = [number for event, number in heard_until(again, 2) if event == "entry"]
        if len(entries) < 2:  # the first state may come before what was missed
            entries += [number for event, number in heard_until(again, 2) if event == "entry"]
    assert entries == [2, 3]


def test_a_socket_is_refused_to_who_has_the_token_of_somebody_else(standing: Trial, seeded: Seeded) -> None:  # N17.1
    person, other = seeded.people[2:4]
    token = token_of(standing, other)
    with pytest.raises(InvalidStatus) as refused, opening(standing, person, token):
        pass
    assert refused.value.response.status_code == 404
    with opening(standing, other, token) as own:
        assert heard_until(own, 0) == [("state", 0)]


def test_a_socket_ends_with_its_token(standing: Trial, seeded: Seeded) -> None:  # N17.1
    person = seeded.people[4]
    lasting = opening(standing, person, token_of(standing, person))
    with lasting, opening(standing, person, token_of(standing, person, seconds=1)) as brief:
        assert heard_until(brief, 0) == [("state", 0)]
        with pytest.raises(ConnectionClosed) as ended:
            brief.recv(timeout=10)
        assert ended.value.rcvd is not None and ended.value.rcvd.code == 1001
        assert heard_until(lasting, 0) == [("state", 0)]
        standing.post("after the end", [person], "in_app")
        assert heard_until(lasting, 1) == [("entry", 1), ("state", 1)]


def test_a_socket_is_refused_to_pages_of_other_sites(standing: Trial, seeded: Seeded) -> None:
    person, port = seeded.people[0], standing.noroshi.port
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port}.evil.example"):
        with pytest.raises(InvalidStatus) as refused, opening(standing, person, seeded.api_key, origin=origin):
            pass
        assert refused.value.response.status_code == 403
    for allowed in (None, f"http://127.0.0.1:{port}"):
        with opening(standing, person, seeded.api_key, origin=allowed) as socket:
            assert '"event":"state"' in str(socket.recv(timeout=10))
    with pytest.raises(InvalidStatus) as unknown, opening(standing, person):
        pass
    assert unknown.value.response.status_code == 401
    assert seeded.api_key not in standing.noroshi.log()
