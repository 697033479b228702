"""Reservations wherever the process ends (L9, L10): every message once, none lost; and each wall by itself."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from unittest.mock import patch
from uuid import UUID, uuid5

import pytest
from msgspec import Struct

from noroshi.bootstrap.opening import set_up_logs
from noroshi.domain.ids import DEFAULT_TENANT, TenantId
from noroshi.domain.notification_jobs import Claim, Job, JobKind
from noroshi.domain.shop import JobReport
from noroshi.reservations import sender
from noroshi.reservations.sender import Sender
from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.report import publish, section
from tests.faults.sweep.virtual_shop import (
    REMINDED_AFTER,
    Ask,
    Trial,
    VirtualShop,
    cancel,
    pay,
    pay_while_line_refuses,
    remind_and_cancel,
    send_again,
    wait_for_the_reminder,
)

# What is thrown away with a dead world cannot ask a server any more, and says so when it is collected.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

IS_FULL = os.environ.get("NOROSHI_TEST_FULL") == "1"

Plant = Callable[[], AbstractContextManager[object]]

CONFIRMATION, REMINDER, CANCEL = JobKind.CONFIRMATION, JobKind.REMINDER, JobKind.CANCEL_COMPLETED


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """Thousands of lines of what goes as it should."""
    set_up_logs("error", "console")


class Story(Struct, frozen=True):
    """What is asked, and what the customer must get of it: each once. A kind that `may_miss` is not sent any more when
    the process ended at it: then it was deleted, or a person is told that nobody knows."""

    asks: tuple[Ask, ...]
    kinds: tuple[JobKind, ...]
    may_miss: JobKind | None = None

    def try_out(self, shop: VirtualShop, crash_at: int = 0) -> Trial:
        return shop.try_out(*self.asks, crash_at=crash_at, is_cron_late=self.may_miss is not None)


STORIES = {
    "paid, reminded, cancelled": Story((pay, wait_for_the_reminder, cancel), (CONFIRMATION, REMINDER, CANCEL)),
    "paid, cancelled before the reminder": Story((pay, cancel, wait_for_the_reminder), (CONFIRMATION, CANCEL)),
    "failed, sent again, reminded": Story(
        (pay_while_line_refuses, send_again, wait_for_the_reminder), (CONFIRMATION, REMINDER)
    ),
    "reminder begun, cancelled": Story((pay, remind_and_cancel), (CONFIRMATION, REMINDER, CANCEL), may_miss=REMINDER),
}


def sweep(shop: VirtualShop, story: Story, *, is_whole: bool) -> dict[int, Trial]:
    """What became of the story with the process ending at each of its steps, by their numbers: at every one, or at the
    first of each name."""
    calm = story.try_out(shop)
    assert calm.taken == dict.fromkeys(story.kinds, 1)
    firsts = {step: number for number, step in reversed([*enumerate(calm.steps, 1)])}
    chosen = range(1, len(calm.steps) + 1) if is_whole else sorted(firsts.values())
    trials = {number: story.try_out(shop, number) for number in chosen}
    assert {number: trial.crashed_at for number, trial in trials.items()} == {
        number: calm.steps[number - 1] for number in chosen
    }
    return trials


def is_fine(trial: Trial, story: Story) -> bool:
    if trial.lost or trial.doubled:
        return False
    missed = {story.may_miss} if story.may_miss not in trial.taken else set()
    unsent = {kind for kind, status in trial.ended.items() if status != "SENT"}
    return set(trial.taken) == set(story.kinds) - missed and unsent <= {story.may_miss}


def test_wherever_the_process_ends_every_message_is_sent_once(tmp_path: Path, store: Stores) -> None:
    # L5, L9, L10, W2, W4, W10, W11
    lines = ["| story | step | the process ends at | lost | doubled |", "|---|---:|---|---:|---:|"]
    problems: list[str] = []
    with store.opened(tmp_path) as kept:
        shop = VirtualShop(kept)
        for story in STORIES if is_whole(store) else [*STORIES][:1]:
            trials = sweep(shop, STORIES[story], is_whole=is_whole(store))
            for number, trial in trials.items():
                lines.append(f"| {story} | {number} | `{trial.crashed_at}` | {trial.lost} | {trial.doubled} |")
                if not is_fine(trial, STORIES[story]):
                    problems.append(f"{story} at {trial.crashed_at}: taken {trial.taken}, ended {trial.ended}")
            if (maybe := STORIES[story].may_miss) is not None:
                assert {trial.ended.get(maybe) for trial in trials.values()} == {"SENT", "FAILED", None}
            passed = {trial.crashed_at for trial in trials.values()}
            steps = [name for name in STEPS if CANCEL in STORIES[story].kinds or "cancel" not in name]
            assert {f"{name}.{edge}" for name in steps for edge in ("before", "after")} <= passed
    print("\n".join(lines))
    publish(section("reservations", store.kind), "\n".join(lines))
    assert not problems, "\n".join(problems)


def is_whole(store: Stores) -> bool:
    """A life on a server takes half a second: there the quick run ends at each kind of step once."""
    return IS_FULL or store.kind == "sqlite"


STEPS = (
    "commit.schedule_for_reservation",
    "commit.schedule_cancel_completed",
    "commit.take_lease",
    "commit.claim_job",
    "push.line",
    "commit.record_job",
    "commit.release_lease",
)


# controls: what the walls are there for

_numbers = count()


@contextmanager
def fresh_keys() -> Iterator[None]:
    """A bug: every try of a job has a key of its own."""

    def fresh(tenant: TenantId, job: Job) -> UUID:
        return uuid5(UUID(int=0), f"{tenant} {job.job_id} {next(_numbers)}")

    with patch.object(sender, "retry_key", fresh):
        yield


@contextmanager
def recording_first() -> Iterator[None]:
    """A bug: SENT is committed before LINE is called."""
    push_and_record = Sender._push_and_record

    async def mark_and_push(self: Sender, tenant: TenantId, claim: Claim) -> JobReport:
        await self._jobs.record(tenant, claim.before.job_id, claim.attempt, None)
        return await push_and_record(self, tenant, claim)

    with patch.object(Sender, "_push_and_record", mark_and_push):
        yield


@pytest.mark.parametrize(
    ("plant", "step", "fault"),
    [
        pytest.param(fresh_keys, "push.line.after", "doubled", id="fresh keys double"),
        pytest.param(recording_first, "push.line.before", "lost", id="recording first loses"),
    ],
)
def test_control_a_planted_bug_is_found(tmp_path: Path, store: Stores, plant: Plant, step: str, fault: str) -> None:
    story = STORIES["paid, reminded, cancelled"]
    with store.opened(tmp_path) as kept:
        shop = VirtualShop(kept, plant)
        steps = story.try_out(shop).steps
        assert getattr(story.try_out(shop, steps.index(step) + 1), fault) == 1


# the other wall: the lease, where LINE knows no keys


def race(shop: VirtualShop) -> Trial:
    """A reminder falls due, and eight runs of cron begin at the same moment."""

    async def run_at_once(shop: VirtualShop) -> None:
        await shop.clock.sleep(REMINDED_AFTER)
        await asyncio.gather(*(shop.shop.send_pending_jobs(DEFAULT_TENANT) for _ in range(8)))

    shop.line.knows_keys = False
    return shop.try_out(pay, run_at_once)


def test_the_lease_alone_keeps_runs_at_once_from_sending_twice(tmp_path: Path, store: Stores) -> None:
    # L10
    with store.opened(tmp_path) as kept:
        assert race(VirtualShop(kept)).taken == {CONFIRMATION: 1, REMINDER: 1}


def test_control_without_a_lease_runs_at_once_send_twice(tmp_path: Path, store: Stores) -> None:
    """All senders go by one name, and so each has what another has."""
    with store.opened(tmp_path) as kept:
        shop = VirtualShop(kept)
        shop.machine.dice.bits = lambda _count: 1
        assert race(shop).doubled > 0
