"""L2: the process ends at every crash point there is, one after the other, and nothing is lost or wrongly doubled."""

import os
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.reckoning import Word, render, render_problems
from tests.faults.machinery.report import publish, section
from tests.faults.sweep.driver import Swept, sweep
from tests.faults.sweep.seeded import Seeded, seed
from tests.faults.sweep.table import POINTS, Row
from tests.faults.sweep.workloads import SEND

pytestmark = pytest.mark.xdist_group("l2_crash_points")

ROUNDS = 10 if os.environ.get("NOROSHI_TEST_FULL") == "1" else 1
SERVERS = {"sqlite": 2, "postgres": 3}
"""At once; where leases have to run out, a third of the time is waiting."""

PEOPLE = 600


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Seeded:
    return seed(tmp_path_factory.mktemp("seeded") / "data", PEOPLE, store)


def test_nothing_is_lost_or_wrongly_doubled_wherever_the_process_ends(
    tmp_path: Path, store: Stores, seeded: Seeded
) -> None:
    # L2, W1-W4, W9-W13, W16, W27
    problems: list[str] = []
    swept: list[Swept] = []

    points = POINTS[store.kind]

    def attempt(place: tuple[int, str]) -> None:
        number, point = place
        try:
            found = sweep(point, points[point], tmp_path / f"{point}-{number}", seeded)
        except Exception as error:
            problems.append(f"{point}: {type(error).__name__}: {error}")
        else:
            swept.append(found)
            problems.extend(_problems(points[point], found))

    with ThreadPoolExecutor(SERVERS[store.kind]) as servers:
        list(servers.map(attempt, [(number, point) for number in range(ROUNDS) for point in points]))
    assert not problems, "\n".join(problems)
    controls = {
        "SENT committed before the send": _control("send.ledger.before", "settles_first", tmp_path, seeded),
        "202 before the commit": _control("commit.accept.before", "answers_first", tmp_path, seeded),
    }
    _publish(section("L2", store.kind), sorted(swept, key=lambda one: one.point), controls)
    assert all(control.reckoning.is_as_expected for control in controls.values())


def _control(point: str, plant: str, folder: Path, seeded: Seeded) -> Swept:
    return sweep(point, Row(SEND), folder / plant, seeded, plants=[plant])


def _problems(row: Row, swept: Swept) -> Iterator[str]:
    edge = swept.point.rpartition(".")[2]
    if not swept.is_sound:
        copies = f"{swept.unexplained} copies unexplained, {swept.doubled_codes} of one-time codes"
        yield f"{swept.point}: {copies}\n{render_problems(swept.reckoning)}"
    if edge in row.flying and not swept.in_flight:
        yield f"{swept.point}: nothing was in flight, so it proves nothing"
    expected = {"commit.accept.before": [202], "commit.accept.after": [409]}.get(swept.point)
    if expected not in (None, swept.retried):
        yield f"{swept.point}: the unanswered request was answered {swept.retried} when it was repeated (W1, W2)"


def _publish(name: str, swept: list[Swept], controls: dict[str, Swept]) -> None:
    started_in = statistics.median(one.started_in for one in swept if one.started_in)
    begun = f"{len(swept) // ROUNDS} points, {len(swept)} crashes"
    lines = [
        f"{begun}; ready again after {started_in:.2f} s (median; the loading of modules is not counted).",
        "",
        "| point | workload | in flight | ok | lost | unexpected | duplicated |",
        "|---|---|" + "---:|" * 5,
    ]
    for one in swept:
        words = one.reckoning.words
        counts = [words[word] for word in (Word.OK, Word.LOST, Word.UNEXPECTED, Word.DUPLICATED)]
        lines.append(f"| {one.point} | {one.workload} | {one.in_flight} | {' | '.join(map(str, counts))} |")
    table = render({name: control.reckoning for name, control in controls.items()})
    publish(name, "\n".join([*lines, "", "Controls:", "", table]))
