"""F21: a message that kills whoever touches it is given up after a few lives, and everyone else gets theirs."""

import asyncio
import contextlib
import http.client
import random
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from noroshi.domain.categories import Categories
from noroshi.domain.deliveries import Settlement, Verdict
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.instants import Instant, plus
from noroshi.domain.records import DeadLetterFilter
from noroshi.flow.dispatch.judge import MOST_CLAIMS
from noroshi.flow.dispatch.settling import Settler
from noroshi.flow.dispatch.sweeper import Sweeper
from noroshi.machine.clock import SystemClock
from noroshi.machine.crash_points import DIED
from noroshi.machine.meter import NullMeter
from noroshi.storage.duties import SoleDuties
from noroshi.storage.postgres import sql as postgres
from noroshi.storage.sqlite import sql as sqlite
from tests.faults.machinery.caller import TEMPLATE, Caller
from tests.faults.machinery.kept_store import KeptStore, Stores
from tests.faults.machinery.processes import NotReadyError, ServedNoroshi
from tests.faults.machinery.report import publish, section
from tests.faults.machinery.witness import LANE, Witness, WitnessedStore
from tests.stand_ins.deadly_channel import FACTORY, NOTES_VARIABLE, POISON, TIMEOUT_VARIABLE

OTHERS = 20
IN_COMPANY = 2
ALONE = 5
"""DESIGN 5.3: claimed alone from the third claim on, given up after five of these."""

MOST_LIVES = 30
POISONED = 3
BOMB = "{% if user.name %}{{ 'a'|indent(number) }}{% endif %}hello"

LEASE = timedelta(minutes=1)

pytestmark = pytest.mark.xdist_group("poison")


@pytest.fixture(scope="module")
def told(store: Stores) -> Iterator[list[str]]:
    """Rows of the published table."""
    rows: list[str] = []
    yield rows
    publish(section("poison", store.kind), "\n".join(["| what | what came of it |", "|---|---|", *rows]))


# lives in this process, each ending where a message kills it


class LaterClock(SystemClock):
    """Every life begins when the leases of the last one have run out."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> Instant:
        return plus(super().now(), self._ahead)

    def outlive_leases(self) -> None:
        self._ahead += LEASE


async def born(kept: KeptStore, chance: object, clock: LaterClock) -> WitnessedStore:
    life = WitnessedStore(kept, Witness(), random.Random(str(chance)), clock=clock)
    await life.store.start()
    return life


async def live(kept: KeptStore, clock: LaterClock) -> tuple[int, bool]:
    """One life: what the last one left is rescued, then lanes are worked. How many it sent, and whether it died."""
    clock.outlive_leases()
    life = await born(kept, 0, clock)
    queue = life.store.queue
    sweeper = Sweeper(
        clock=clock,
        meter=NullMeter(),
        queue=queue,
        settler=Settler(clock, NullMeter(), queue, asyncio.Event()),
        categories=Categories(()),
        served=frozenset({(LANE.channel, LANE.account)}),
        announce=lambda _lanes: None,
        paused_categories=frozenset,
        duties=SoleDuties(),
    )
    await sweeper.rescue_all()
    sent = 0
    try:
        while claims := (await queue.take(LANE, 100, LEASE, frozenset())).claims:
            if any(claim.data["filler"] == POISON for claim in claims):
                return sent, True
            sent += len(claims)
            await queue.settle([Settlement(c.key, c.fence, Verdict.SENT, clock.now(), clock.now()) for c in claims])
        return sent, False
    finally:
        await life.store.stop()


async def lives_until_quiet(kept: KeptStore) -> tuple[list[int], list[str]]:
    """What each life sent before it died, the last one before it had nothing more to do; and the dead letters."""
    clock = LaterClock()
    life = await born(kept, "poison", clock)
    await life.people()
    for number in range(OTHERS):
        await life.accept(POISON if number in range(POISONED) else "", recipients=1)
    await life.store.stop()
    sent_by_life: list[int] = []
    for _ in range(MOST_LIVES):
        sent, has_died = await live(kept, clock)
        sent_by_life.append(sent)
        if not has_died:
            break
    after = await born(kept, 0, clock)
    letters = await after.store.dead_letters.list_dead_letters(DEFAULT_TENANT, DeadLetterFilter(), None, 100)
    await after.store.stop()
    return sent_by_life, [letter.code for letter in letters]


async def test_each_poisonous_message_costs_no_more_than_its_claims(tmp_path: Path, store: Stores) -> None:
    # W27: several of them, in one lane
    with store.opened(tmp_path) as kept:
        (*deaths, _), codes = await lives_until_quiet(kept)
    assert codes == ["poison"] * POISONED
    assert MOST_CLAIMS == IN_COMPANY + ALONE
    assert len(deaths) == IN_COMPANY + ALONE * POISONED


async def test_control_claims_that_are_not_counted_kill_for_ever(
    tmp_path: Path, store: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in (sqlite.SQL, postgres.SQL):
        monkeypatch.setitem(one, "claim_delivery", one["claim_delivery"].replace("claims + 1", "claims"))
    with store.opened(tmp_path) as kept:
        sent_by_life, codes = await lives_until_quiet(kept)
    assert (len(sent_by_life), codes) == (MOST_LIVES, [])


async def test_of_two_suspects_one_at_a_time_is_claimed(tmp_path: Path, store: Stores) -> None:
    # W27: whoever is in flight when the process dies is counted, so no innocent suspect may be
    clock = LaterClock()
    with store.opened(tmp_path) as kept:
        life = await born(kept, "two", clock)
        await claim_suspects(life, clock)
        await life.store.stop()


async def claim_suspects(life: WitnessedStore, clock: LaterClock) -> None:
    queue = life.store.queue
    await life.people()
    for _ in range(2):
        await life.accept("old", recipients=1)
    for _ in range(IN_COMPANY):
        claims = (await queue.take(LANE, 100, LEASE, frozenset())).claims
        assert len(claims) == 2
        await queue.settle(
            [Settlement(c.key, c.fence, Verdict.RESEND, clock.now(), due_at=clock.now()) for c in claims]
        )
    await life.accept("new", recipients=1)
    taken = [await queue.take(LANE, 100, LEASE, frozenset()) for _ in range(3)]
    assert [[claim.data["filler"] for claim in one.claims] for one in taken] == [["old"], ["new"], []]
    assert taken[2].has_more
    [first] = taken[0].claims
    await queue.settle([Settlement(first.key, first.fence, Verdict.SENT, clock.now(), clock.now())])
    assert len((await queue.take(LANE, 100, LEASE, frozenset())).claims) == 1


# a real server


def test_a_message_that_kills_the_server_is_given_up_and_the_others_arrive(
    tmp_path: Path, store: Stores, told: list[str]
) -> None:
    # F21, W27, I1, I3
    notes, data = tmp_path / "notes", tmp_path / "data"
    environment = {"NOROSHI_CHANNELS": FACTORY, NOTES_VARIABLE: str(notes)}
    with store.opened(data) as kept:
        quick = {} if kept.kind == "sqlite" else {"NOROSHI_LEASE_MARGIN": "1", TIMEOUT_VARIABLE: "1"}
        with ServedNoroshi(data, kept.environment | environment | quick) as noroshi:
            be_killed(noroshi, notes, told)


def be_killed(noroshi: ServedNoroshi, notes: Path, told: list[str]) -> None:
    key = noroshi.create_key()
    noroshi.start()
    caller = Caller(noroshi.url, key)
    caller.seed(OTHERS)
    assert caller.call("PUT", f"/api/v1/users/{POISON}", {}).status == 200
    users = [f"user-{number}" for number in range(OTHERS)]
    accepted = caller.notify(1, POISON, *users)
    deaths = lives_of(noroshi, caller)
    batch_id = accepted.fields["batch_id"]
    assert settle(caller, batch_id) == {POISON: "DEAD_LETTERED"} | dict.fromkeys(users, "SENT")
    [letter] = caller.call("GET", "/api/v1/dead-letters").fields["items"]
    assert noroshi.stop() == 0
    lines = notes.read_text().splitlines()
    companies = [int(line.split()[1]) for line in lines if line.startswith("died")]
    told.append(
        f"| one message of {OTHERS + 1} kills the server at every send | it died {deaths} times, then the message was "
        f"dead-lettered `{letter['code']}`; {OTHERS} others sent once |"
    )
    assert (letter["user_id"], letter["code"]) == (POISON, "poison")
    assert deaths == IN_COMPANY + ALONE
    assert companies[IN_COMPANY:] == [1] * ALONE
    assert sorted(line for line in lines if line.startswith("took")) == sorted(f"took {user}" for user in users)


def lives_of(noroshi: ServedNoroshi, caller: Caller) -> int:
    """Starts it again whenever it has died; how often it did until something was given up."""
    for deaths in range(MOST_LIVES):
        while noroshi.is_alive:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if caller.call("GET", "/api/v1/dead-letters").fields.get("items"):
                    return deaths
            time.sleep(0.05)
        if noroshi.is_running:
            assert noroshi.wait() == DIED
        with contextlib.suppress(NotReadyError):  # it may die before it is ready
            noroshi.start()
    raise AssertionError("it died for ever")


def settle(caller: Caller, batch_id: str, seconds: float = 20) -> dict[str, str]:
    """The statuses once all are final."""
    deadline = time.monotonic() + seconds
    while True:
        statuses = caller.statuses(batch_id)
        if set(statuses.values()) <= {"SENT", "DELIVERED", "DEAD_LETTERED"}:
            return statuses
        assert time.monotonic() < deadline, statuses
        time.sleep(0.05)


def test_a_template_that_explodes_for_one_person_costs_nobody_else_anything(
    tmp_path: Path, store: Stores, told: list[str]
) -> None:
    # F21: the rendering child dies, not the server
    data = tmp_path / "data"
    with store.opened(data) as kept, ServedNoroshi(data, kept.environment | {"NOROSHI_CATCHER": "on"}) as noroshi:
        key = noroshi.create_key()
        noroshi.start()
        caller = Caller(noroshi.url, key)
        caller.seed(OTHERS)
        caller.call("PUT", "/api/v1/users/user-0", {"name": "with a name"})
        stored = caller.call(
            "POST", f"/api/v1/templates/{TEMPLATE}", {"channel": "in_app", "locale": "ja", "body": BOMB}
        )
        assert stored.status == 201, stored
        users = [f"user-{number}" for number in range(OTHERS)]
        batch_id = caller.notify(500_000_000, *users).fields["batch_id"]
        statuses = settle(caller, batch_id)
        [letter] = caller.call("GET", "/api/v1/dead-letters").fields["items"]
        assert noroshi.stop() == 0
    told.append(
        f"| a template runs out of memory for one of {OTHERS} | that one dead-lettered `{letter['code']}` at once, "
        f"{OTHERS - 1} sent, the server lived on |"
    )
    assert statuses == {"user-0": "DEAD_LETTERED"} | dict.fromkeys(users[1:], "DELIVERED")
    assert letter["code"] == "render_error"
