"""F11-F13: a provider fails for ten minutes, drops its answers, or tells us to wait: nothing is lost, nobody else is
hurt, and it is left alone for as long as it asked."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from msgspec import Struct

from noroshi.domain.instants import Instant, moment_of, plus
from noroshi.domain.states import Status
from noroshi.flow.dispatch.judge import LONGEST_REST
from tests.faults.machinery.kept_store import KeptStore, Stores
from tests.faults.machinery.reckoning import Reckoning, Word, render_problems
from tests.faults.machinery.report import publish, section
from tests.faults.sweep.seeded import Seeded, seed
from tests.faults.sweep.trial import Trial, notifications_of, now
from tests.faults.sweep.virtual import VirtualNoroshi, VirtualProvider
from tests.faults.sweep.workloads import CODES
from tests.stand_ins.ledger_provider.ledger import SeenRequest, copies, within_waits
from tests.stand_ins.ledger_provider.wire import Conduct

pytestmark = pytest.mark.xdist_group("provider_faults")

SECOND = timedelta(seconds=1)
OUTAGE = timedelta(minutes=10)
DRAINED_WITHIN = timedelta(minutes=20)
BREAKS_WITHIN = timedelta(seconds=10)
OTHERS_GET = 0.95
"""What is left of another channel's throughput at the least (I7)."""

UNTOLD_REST = timedelta(seconds=30)
"""How long we leave an account alone that says 429 and no usable time."""

RESENT_CODES = """
[categories.one_time_code]
parent = "security"
required = true
over_limit = "defer"
on_unknown = "resend"
expires_after_seconds = 600
"""


@pytest.fixture(scope="module")
def told(store: Stores) -> Iterator[list[str]]:
    """Rows of the published table; written when the last test of this file has run."""
    rows: list[str] = []
    yield rows
    table = ["| fault | what was seen | verdict |", "|---|---|---|", *rows]
    publish(section("providers", store.kind), "\n".join(table))


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Seeded:
    return seed(tmp_path_factory.mktemp("seeded") / "data", people=40, stores=store)


# F11: the provider fails


class Outage(Struct, frozen=True):
    """`others`: what the healthy channel had sent after each minute. `calls`: requests to the failing provider."""

    others: list[int]
    calls: int
    broke_after: timedelta | None
    drained_in: timedelta
    reckoning: Reckoning
    statuses: set[object]

    def others_got(self, usual: "Outage") -> float:
        return min(got / wanted for got, wanted in zip(self.others, usual.others, strict=True))


def live_through(folder: Path, store: Stores, error_share: float, *, is_shared: bool = False) -> Outage:
    """A mail and an SMS a second for ten minutes, while the mail provider fails; then it heals."""
    with store.opened(folder) as kept:
        return _live_through(kept, error_share, is_shared=is_shared)


def _live_through(kept: KeptStore, error_share: float, *, is_shared: bool) -> Outage:
    mail = VirtualProvider("mail", "email", *(["sms"] if is_shared else []), failing=["email"])
    providers = [mail] if is_shared else [mail, VirtualProvider("phone", "sms")]
    noroshi = VirtualNoroshi(11, kept, *providers, people=OUTAGE // SECOND)
    others: list[int] = []
    drained_in: list[timedelta] = []
    began = noroshi.clock.now()
    mail.conduct = Conduct(error_share=error_share)

    async def script(noroshi: VirtualNoroshi) -> None:
        for number, user_id in enumerate(noroshi.people, 1):
            await noroshi.post(f"mail {number}", user_id, "email")
            await noroshi.post(f"sms {number}", user_id, "sms")
            await noroshi.clock.sleep(SECOND)
            if number % 60 == 0:
                others.append(sum(entry.channel == "sms" for entry in noroshi.taken()))
        mail.conduct = Conduct()
        drained_in.append(await noroshi.drain(DRAINED_WITHIN))

    noroshi.live(script)
    opened_at = noroshi.meter.opened_at.get("mail")
    return Outage(
        others,
        sum(request.at < plus(began, OUTAGE) for request in mail.requests),
        None if opened_at is None else timedelta(microseconds=opened_at - began),
        drained_in[0],
        noroshi.reckon(),
        {status for (status,) in kept.rows("SELECT DISTINCT status FROM notifications")},
    )


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, store: Stores) -> Outage:
    return live_through(tmp_path_factory.mktemp("usual"), store, 0.0)


@pytest.mark.parametrize("error_share", [0.5, 1.0])
def test_a_provider_that_fails_for_ten_minutes_costs_no_message_and_no_other_channel(
    tmp_path: Path, store: Stores, error_share: float, usual: Outage, told: list[str]
) -> None:  # F11, I1, I7, I8, N6.4
    found = live_through(tmp_path, store, error_share)
    assert found.reckoning.is_sound, render_problems(found.reckoning)
    assert found.reckoning.doubled == 0
    assert found.statuses <= {Status.SENT, Status.DEAD_LETTERED}
    assert found.others_got(usual) >= OTHERS_GET
    assert found.broke_after is not None
    assert error_share < 1 or found.broke_after <= BREAKS_WITHIN
    assert found.calls < usual.calls
    told.append(
        f"| F11: {error_share:.0%} of mails answered 503 for 10 min | {_words(found)}; breaker open after "
        f"{found.broke_after.total_seconds():.0f} s, {found.calls} calls instead of {usual.calls}; SMS "
        f"{found.others_got(usual):.0%} of usual; drained {found.drained_in // SECOND} s after healing | sound |"
    )


def test_two_channels_on_one_account_are_not_isolated_and_the_test_sees_it(
    tmp_path: Path, store: Stores, usual: Outage, told: list[str]
) -> None:
    found = live_through(tmp_path, store, 1.0, is_shared=True)
    assert found.others_got(usual) < OTHERS_GET
    told.append(
        f"| F11, control: both channels on one account | SMS {found.others_got(usual):.0%} of usual "
        "| control: fault found |"
    )


def _words(found: Outage) -> str:
    words = found.reckoning.words
    return f"{words[Word.OK]:,} ok, {words[Word.LOST]} lost, {words[Word.DUPLICATED]} duplicated"


# F12: the provider takes the message and drops the connection


class Dropped(Struct, frozen=True):
    """Ten notes and ten one-time codes were taken and never answered. Copies beyond the first, of each."""

    reckoning: Reckoning
    doubled_notes: int
    doubled_codes: int
    code_ends: list[tuple[object, ...]]
    unknown: float


def drop_answers(folder: Path, seeded: Seeded, configuration: str = "") -> Dropped:
    with Trial(folder, seeded) as trial:
        (trial.noroshi.data / "noroshi.toml").write_text(configuration)
        trial.start()
        trial.provider.behave(Conduct(is_dropping=True))
        trial.post("notes", seeded.people[:10], "email")
        trial.post("codes", seeded.people[10:20], "email", category=CODES, priority="critical")
        _await(lambda: len(copies(trial.provider.taken())) == 20)
        trial.provider.behave(Conduct())
        trial.drain()
        unknown = _metric(trial, "provider_unknown_total")
        ends = trial.store.rows("SELECT DISTINCT code FROM dead_letters")
        assert trial.noroshi.stop() == 0
        return Dropped(trial.reckon(), _doubled(trial, "notes"), _doubled(trial, "codes"), ends, unknown)


def test_an_answer_that_never_came_is_counted_unknown_and_the_category_decides(
    tmp_path: Path, seeded: Seeded, told: list[str]
) -> None:  # F12, I2, I3, W11
    found = drop_answers(tmp_path / "product", seeded)
    words = found.reckoning.words
    assert (words[Word.LOST], words[Word.UNEXPECTED]) == (0, 0), render_problems(found.reckoning)
    assert found.unknown == 20
    assert (found.doubled_notes, found.doubled_codes) == (10, 0)
    assert found.code_ends == [("outcome_unknown",)]
    control = drop_answers(tmp_path / "control", seeded, RESENT_CODES)
    assert control.doubled_codes == 10
    told.append(
        f"| F12: 20 messages taken, their answers dropped | {found.unknown:.0f} counted unknown; 10 notes sent again "
        f"({found.doubled_notes} copies), 10 one-time codes given up ({found.doubled_codes} copies), "
        f"{words[Word.LOST]} lost | sound |"
    )
    told.append(
        f"| F12, control: one-time codes set to `resend` | {control.doubled_codes} copies of codes "
        "| control: fault found |"
    )


def _doubled(trial: Trial, key: str) -> int:
    ours = {one for one, _, _ in notifications_of(trial.posted[key])}
    taken = [entry for entry in trial.provider.taken() if entry.key.notification_id in ours]
    return len(taken) - len(copies(taken))


def _metric(trial: Trial, name: str) -> float:
    text = trial.text("/metrics")
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name + "{"))


# F13: the provider says when to come again


def _in_seconds(_: Instant) -> str:
    return "90"


def _as_a_date(at: Instant) -> str:
    return format_datetime(moment_of(plus(at, timedelta(seconds=90))).replace(microsecond=0), usegmt=True)


def _absurd(_: Instant) -> str:
    return "1000000000"


def _negative(_: Instant) -> str:
    return "-5"


def _missing(_: Instant) -> None:
    return None


WAITS: list[tuple[Callable[[Instant], str | None], timedelta]] = [
    (_in_seconds, timedelta(seconds=90)),
    (_as_a_date, timedelta(seconds=89)),  # a date has whole seconds
    (_absurd, LONGEST_REST),
    (_negative, UNTOLD_REST),
    (_missing, UNTOLD_REST),
]


def _shown(header: Callable[[Instant], str | None]) -> str:
    return header.__name__.strip("_").replace("_", " ")


@pytest.mark.parametrize("is_crashed", [False, True], ids=["one life", "a crash in between"])
@pytest.mark.parametrize(("header", "wait"), WAITS, ids=[_shown(header) for header, _ in WAITS])
def test_a_provider_that_says_429_is_left_alone_until_its_time(
    tmp_path: Path,
    store: Stores,
    header: Callable[[Instant], str | None],
    wait: timedelta,
    is_crashed: bool,
    told: list[str],
) -> None:  # F13, I9
    with store.opened(tmp_path) as kept:
        seen = _be_told_to_wait(kept, header, wait, is_crashed=is_crashed)
    if is_crashed:
        told.append(
            f"| F13: 429, Retry-After {_shown(header)}, a crash in between | 0 requests for "
            f"{wait.total_seconds():,.0f} s, the next after {seen.total_seconds():,.1f} s | sound |"
        )


def _be_told_to_wait(
    kept: KeptStore, header: Callable[[Instant], str | None], wait: timedelta, *, is_crashed: bool
) -> timedelta:
    """How long the provider was left alone."""
    mail = VirtualProvider("mail", "email")
    noroshi = VirtualNoroshi(13, kept, mail, people=40)
    mail.conduct = Conduct(is_limiting=True, retry_after=header(noroshi.clock.now()), requests=1)

    async def be_limited(noroshi: VirtualNoroshi) -> None:
        await noroshi.post("first", noroshi.people[0], "email")
        await noroshi.clock.sleep(SECOND)
        for number in range(1, 20):
            await noroshi.post(f"early {number}", noroshi.people[number], "email")
        await noroshi.clock.sleep(wait / 2)
        if is_crashed:
            noroshi.crash("in the wait")

    async def go_on(noroshi: VirtualNoroshi) -> None:
        for number in range(20, 40):
            await noroshi.post(f"late {number}", noroshi.people[number], "email")
        await noroshi.drain(wait)

    noroshi.live(be_limited)
    noroshi.live(go_on)
    assert len(noroshi.crashes) == is_crashed
    first, second, *_ = mail.requests
    assert first.answered_at is not None
    assert plus(first.answered_at, wait) <= second.at <= plus(first.answered_at, wait + 3 * SECOND)
    assert noroshi.reckon().is_sound
    return timedelta(microseconds=second.at - first.answered_at)


class Rest(Struct, frozen=True):
    """What a real provider saw. `within`: requests that came while it had told us to wait."""

    within: list[SeenRequest]
    blocked_for: timedelta
    was_restarted_in_time: bool


REAL_WAIT = timedelta(seconds=12)


def be_limited(folder: Path, seeded: Seeded, conduct: Conduct, plants: list[str] | None = None) -> Rest:
    """429, kill -9 while it is in force, more to send before and after the restart."""
    with Trial(folder, seeded, plants=plants) as trial:
        trial.start()
        trial.provider.behave(conduct)
        trial.post("first", seeded.people[:10], "email")
        _await(lambda: len(trial.provider.requests()) == 1)
        trial.post("second", seeded.people[10:20], "sms")
        if plants is None:
            trial.await_store("accounts", "true", 1)
        trial.noroshi.kill()
        trial.start()
        trial.post("third", seeded.people[20:30], "email")
        (limited,) = (request for request in trial.provider.requests() if request.wait_until is not None)
        assert limited.wait_until is not None
        assert limited.answered_at is not None
        was_in_time = now() < limited.wait_until
        blocks = trial.store.rows("SELECT blocked_until FROM accounts")
        if limited.wait_until < plus(now(), LONGEST_REST):
            trial.drain()
            assert trial.reckon().is_sound
        blocked_for = timedelta(microseconds=blocks[0][0] - limited.answered_at) if blocks else timedelta(0)
        within = within_waits(trial.provider.requests(), LONGEST_REST, grace=timedelta(0))
        return Rest(within, blocked_for, was_in_time)


def test_a_wait_outlives_kill_9(tmp_path: Path, seeded: Seeded, told: list[str]) -> None:  # F13, I9
    limiting = {
        "seconds": Conduct(is_limiting=True, retry_after=str(REAL_WAIT // SECOND), requests=1),
        "date": Conduct(is_limiting=True, http_date_in=REAL_WAIT, requests=1),
        "absurd": Conduct(is_limiting=True, retry_after="1000000000", requests=1),
    }
    with ThreadPoolExecutor(2) as servers:
        control = servers.submit(be_limited, tmp_path / "control", seeded, limiting["seconds"], ["forgets_rests"])
        rests = {
            name: servers.submit(be_limited, tmp_path / name, seeded, conduct) for name, conduct in limiting.items()
        }
    for rest in (found.result() for found in rests.values()):
        assert rest.was_restarted_in_time, "the machine is too slow for this wait: it proves nothing"
        assert rest.within == []
    assert LONGEST_REST - SECOND < rests["absurd"].result().blocked_for < LONGEST_REST + SECOND
    assert control.result().within, "rests that are forgotten went unnoticed"
    told.append("| F13: 429 in seconds, as a date and absurd; kill -9 and restart in the wait | 0 requests | sound |")
    told.append(
        f"| F13, control: rests kept in memory only | {len(control.result().within)} requests in the wait "
        "| control: fault found |"
    )


def _await(is_so: Callable[[], bool], within: float = 20) -> None:
    deadline = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)
