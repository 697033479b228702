"""One crash point goes in; a product dies there, is started again, and what became of every message comes out."""

import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from noroshi.machine.crash_points import DIED
from tests.faults.machinery.reckoning import Reckoning
from tests.faults.sweep.seeded import Seeded
from tests.faults.sweep.table import Row
from tests.faults.sweep.trial import DiedError, Trial, notifications_of, now
from tests.faults.sweep.workloads import CODES
from tests.stand_ins.ledger_provider.ledger import copies

_DIES_WITHIN = 15


class Swept(Struct, frozen=True):
    """`started_in`: seconds until the life after the crash was ready. `retried`: what was answered to the first
    repetition of each request that the crash left unanswered. `unexplained`: copies of what was not in flight;
    `doubled_codes`: copies of what may have none."""

    point: str
    workload: str
    reckoning: Reckoning
    started_in: float
    seconds: float
    retried: list[int | None]
    unexplained: int
    doubled_codes: int

    @property
    def in_flight(self) -> int:
        return self.reckoning.bound

    @property
    def is_sound(self) -> bool:
        return self.reckoning.is_sound and not self.unexplained and not self.doubled_codes


def sweep(
    point: str,
    row: Row,
    folder: Path,
    seeded: Seeded,
    plants: Sequence[str] | None = None,
) -> Swept:
    """Raises AssertionError if it does not die there, or if afterwards something is not as it was asked for."""
    began, workload = time.monotonic(), row.workload
    chosen = workload.plants if plants is None else plants
    with Trial(
        folder, seeded, plants=chosen, environment=workload.environment, needs_line=workload.needs_line
    ) as trial:
        workload.prepare(trial)
        die_at(trial, point, row)
        started_in = trial.start() if not trial.noroshi.is_alive else 0.0
        workload.run(trial)
        trial.drain()
        workload.check(trial)
        assert trial.noroshi.stop() == 0
        return Swept(
            point,
            workload.name,
            trial.reckon(is_control=plants is not None),
            started_in,
            time.monotonic() - began,
            _retried(trial),
            trial.blamed()[-1],
            _doubled_codes(trial),
        )


def die_at(trial: Trial, point: str, row: Row) -> None:
    armed = {"NOROSHI_CRASH_AT": f"{point}:{row.nth}", "NOROSHI_UNSAFE": "on"}
    is_command = row.workload.is_command
    try:
        if is_command:
            trial.start()
            trial.command_environment = armed
        else:
            trial.start(**armed)
        row.workload.run(trial)
    except DiedError:
        pass
    trial.command_environment = {}
    if is_command:
        assert trial.noroshi.is_alive, "a command took the server with it"
        return
    if trial.noroshi.is_running:
        assert trial.noroshi.wait(_DIES_WITHIN) == DIED, f"it did not die of {point}"
    trial.note_crash(point, now())


def _retried(trial: Trial) -> list[int | None]:
    return [
        next((heard.status for heard in posted.heard if heard.status is not None), None)
        for posted in trial.posted.values()
        if posted.heard[0].status is None
    ]


def _doubled_codes(trial: Trial) -> int:
    codes = {
        one
        for posted in trial.posted.values()
        if posted.body.get("category") == CODES
        for one, _, _ in notifications_of(posted)
    }
    taken = [entry for entry in trial.taken() if entry.key.notification_id in codes]
    return len(taken) - len(copies(taken))
