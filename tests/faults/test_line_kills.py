"""LINE (I3): the process ends between a push and its record, in whatever way; nothing is lost and nothing is doubled,
because of the retry key alone."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, NotificationId
from noroshi.domain.states import Status
from noroshi.machine.crash_points import DIED
from noroshi.storage.people import LINE_ENDPOINT
from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.reckoning import Asked, Crash, Reckoning, reckon, render, render_problems
from tests.faults.machinery.report import publish, section
from tests.faults.sweep.seeded import Seeded, expected_body, seed
from tests.faults.sweep.trial import DiedError, Trial, notifications_of, now
from tests.faults.sweep.workloads import CODES
from tests.stand_ins.ledger_provider.ledger import TakenMessage
from tests.stand_ins.line.conduct import GOOD, Conduct
from tests.stand_ins.line.process import LineStandIn, user_id

pytestmark = pytest.mark.xdist_group("processes")

PEOPLE = 40
QUICK_LEASES = {"NOROSHI_LINE_TIMEOUT": "2", "NOROSHI_LEASE_MARGIN": "1"}
_LOOK_EVERY = 0.02
_DIES_WITHIN = 15

End = Callable[[Trial, LineStandIn], None]


class Ended(Struct, frozen=True):
    """`again`: pushes that LINE knew again (409)."""

    reckoning: Reckoning
    in_flight: int
    again: int
    statuses: set[object]


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Seeded:
    return seed(tmp_path_factory.mktemp("seeded") / "data", people=PEOPLE, stores=store)


@pytest.fixture(scope="module")
def told(store: Stores) -> Iterator[dict[str, Reckoning]]:
    """What is published when the last test of this file has run."""
    runs: dict[str, Reckoning] = {}
    yield runs
    publish(section("line", store.kind), render(runs))


def between_push_and_record(trial: Trial, _line: LineStandIn) -> None:
    """LINE has answered, and nobody has written it down."""
    trial.start(NOROSHI_CRASH_AT="send.line.after", NOROSHI_UNSAFE="on")
    with pytest.raises(DiedError):
        ask(trial, "first")
        trial.drain()
    assert trial.noroshi.wait(_DIES_WITHIN) == DIED


def before_the_answer(trial: Trial, line: LineStandIn) -> None:
    """LINE has taken them, and has not answered yet: kill -9."""
    taken = len(line.pushed())
    line.behave(Conduct(is_hanging=True, is_taking=True))
    trial.start()
    ask(trial, "second")
    while len(line.pushed()) < taken + PEOPLE // 2:
        time.sleep(_LOOK_EVERY)
    trial.noroshi.kill()
    line.await_alone()
    line.behave(GOOD)


def ask(trial: Trial, when: str) -> None:
    people = trial.seeded.people
    trial.post(f"{when} notes", people[: PEOPLE // 2], "line")
    trial.post(f"{when} codes", people[PEOPLE // 2 :], "line", category=CODES, priority="critical")


def live(folder: Path, seeded: Seeded, *ends: End, plants: list[str] | None = None) -> Ended:
    """Lives that end badly, and one that makes it good."""
    with (
        LineStandIn(folder / "line" / "ledger") as line,
        Trial(folder / "product", seeded, plants=plants, environment=line.environment | QUICK_LEASES) as trial,
    ):
        crashes: list[Crash] = []
        for end in ends:
            end(trial, line)
            flying = len(line.pushed()) - sum(crash.in_flight for crash in crashes)
            crashes.append(Crash(now(), flying, end.__name__))
        in_flight = len(line.pushed())
        trial.start()
        for when in ("first", "second"):
            ask(trial, when)
        trial.drain()
        assert trial.noroshi.stop() == 0
        return Ended(
            reckon(asked_of(trial), trial.store.ended(), taken_by(trial, line), crashes, is_control=plants is not None),
            in_flight,
            sum(push.status == 409 for push in line.asked()),
            {status for (status,) in trial.store.rows("SELECT DISTINCT status FROM notifications")},
        )


def asked_of(trial: Trial) -> list[Asked]:
    return [
        Asked(one, person, channel)
        for posted in trial.posted.values()
        for one, person, channel in notifications_of(posted)
    ]


def taken_by(trial: Trial, line: LineStandIn) -> list[TakenMessage]:
    """LINE's ledger in the form of any provider's: whose and which message it is, the push itself says."""
    meant: dict[tuple[str, str], tuple[NotificationId, str]] = {}
    numbers = {person: number for number, person in enumerate(trial.seeded.people)}
    for key, posted in trial.posted.items():
        for one, person, _ in notifications_of(posted):
            meant[user_id(numbers[person]), expected_body(key, person)] = one, person
    found: list[TakenMessage] = []
    for pushed in line.pushed():
        one, person = meant[pushed.to, pushed.texts[0]]
        key = DeliveryKey(DEFAULT_TENANT, one, EndpointId(LINE_ENDPOINT))
        found.append(TakenMessage(pushed.at, key, person, "line", "", 1))
    return found


def test_what_was_pushed_and_not_recorded_is_neither_lost_nor_doubled(
    tmp_path: Path, seeded: Seeded, told: dict[str, Reckoning]
) -> None:  # I1, I3, W11, L10
    found = live(tmp_path, seeded, between_push_and_record, before_the_answer)
    assert found.in_flight > PEOPLE // 2, "too little was in flight to prove anything"
    assert found.again >= found.in_flight, "LINE was not asked again, so the key proves nothing"
    assert found.reckoning.is_sound, render_problems(found.reckoning)
    assert found.reckoning.doubled == 0
    assert found.statuses == {Status.SENT}
    told["died between push and record, then before the answer"] = found.reckoning


def test_with_a_fresh_key_on_every_try_they_are_doubled_and_the_test_sees_it(
    tmp_path: Path, seeded: Seeded, told: dict[str, Reckoning]
) -> None:
    found = live(tmp_path, seeded, between_push_and_record, plants=["draws_fresh_keys"])
    assert found.reckoning.is_as_expected
    assert found.reckoning.strictly_doubled >= found.in_flight > 0  # what LINE was still taking came in later
    told["control: a fresh key on every try"] = found.reckoning
