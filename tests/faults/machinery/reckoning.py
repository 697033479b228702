"""The reckoning: what was asked, how it ended and what the provider took go in; five words on every message come out.

A message is one notification. Each gets exactly one word:

- **ok**: answered 2xx, in the store in one terminal state, and the provider's ledger agrees with that state.
- **lost** (against I1, I2): answered 2xx or kept, but not in the store, or never brought to a terminal state, or
  called SENT though the provider has no entry of it.
- **unexpected** (against I2, I4): in the store or in the provider's ledger without having been asked for, or with
  another tenant, person, channel or content, or taken by the provider after it was suppressed or cancelled.
- **duplicated** (I3): as ok, but the provider took a delivery of it more than once. Forgiven up to the sends that
  were in flight at the crashes; on channels that cannot double (LINE, in-app) never.
- **recovered**: asked for and never answered, yet kept and ended as an ok one: the caller could not know.

What was asked for without a 2xx and left no trace anywhere is no message and gets no word.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct, field

from noroshi.domain.ids import DEFAULT_TENANT, NotificationId, TenantId, show
from noroshi.domain.instants import Instant, iso
from noroshi.domain.states import TERMINAL, Status
from tests.stand_ins.ledger_provider.ledger import TakenMessage, copies

NEVER_DOUBLED = frozenset({"line", "in_app"})

_NOT_SENT = frozenset({Status.SUPPRESSED, Status.CANCELLED})
_SENT = TERMINAL - _NOT_SENT - {Status.DEAD_LETTERED}


class Word(StrEnum):
    OK = "ok"
    LOST = "lost"
    UNEXPECTED = "unexpected"
    DUPLICATED = "duplicated"
    RECOVERED = "recovered"


class Answered(StrEnum):
    """What the caller heard. REFUSED promises that nothing was kept."""

    ACCEPTED = "2xx"
    REFUSED = "4xx"
    NOTHING = "no answer"


class Asked(Struct, frozen=True):
    """One notification as the caller knows it. `content_hash` None: not compared. `at`: when it was answered."""

    notification_id: NotificationId
    user_id: str
    channel: str
    answered: Answered = Answered.ACCEPTED
    content_hash: str | None = None
    tenant: TenantId = DEFAULT_TENANT
    at: Instant | None = None


class Ended(Struct, frozen=True):
    """One notification as the product's store shows it after the drain. `at`: when that was decided."""

    notification_id: NotificationId
    status: Status
    at: Instant | None = None


class Crash(Struct, frozen=True):
    """`in_flight`: sends handed to a provider whose outcome was not yet committed."""

    at: Instant
    in_flight: int
    where: str = ""


class Finding(Struct, frozen=True):
    notification_id: NotificationId
    word: Word
    why: str = ""


class Reckoning(Struct, frozen=True):
    """`doubled` counts copies (each taking of a delivery after its first), `bound` how many of them are forgiven,
    `strictly_doubled` those on channels where none is. A control is a run with a planted fault: it must find it."""

    findings: list[Finding]
    crashes: list[Crash]
    doubled: int
    strictly_doubled: int
    bound: int
    is_control: bool
    lost_by_crash: Counter[int] = field(default_factory=Counter)
    doubled_by_crash: Counter[int] = field(default_factory=Counter)

    @property
    def words(self) -> dict[Word, int]:
        counted = Counter(finding.word for finding in self.findings)
        return {word: counted[word] for word in Word}

    @property
    def has_loss_or_excess(self) -> bool:
        return self.words[Word.LOST] > 0 or self.doubled > self.bound or self.strictly_doubled > 0

    @property
    def is_sound(self) -> bool:
        """Nothing lost, nothing invented, no more copies than the crashes explain."""
        return not self.has_loss_or_excess and self.words[Word.UNEXPECTED] == 0

    @property
    def is_as_expected(self) -> bool:
        """What a test asserts: a run is sound, a control is caught."""
        return self.has_loss_or_excess if self.is_control else self.is_sound


def reckon(
    asked: Iterable[Asked],
    ended: Iterable[Ended],
    taken: Iterable[TakenMessage],
    crashes: Iterable[Crash] = (),
    *,
    is_control: bool = False,
) -> Reckoning:
    by_id = {one.notification_id: one for one in asked}
    states: dict[NotificationId, list[Ended]] = {}
    for end in ended:
        states.setdefault(end.notification_id, []).append(end)
    entries: dict[NotificationId, list[TakenMessage]] = {}
    for entry in taken:
        entries.setdefault(entry.key.notification_id, []).append(entry)
    findings = [
        finding
        for one in sorted({*by_id, *states, *entries})
        if (finding := _judge(one, by_id.get(one), states.get(one, []), entries.get(one, [])))
    ]
    extra = [copy for found in entries.values() for copy in _extra_copies(found)]
    in_order = sorted(crashes, key=lambda crash: crash.at)
    return Reckoning(
        findings=findings,
        crashes=in_order,
        doubled=len(extra),
        strictly_doubled=sum(copy.channel in NEVER_DOUBLED for copy in extra),
        bound=sum(crash.in_flight for crash in in_order),
        is_control=is_control,
        lost_by_crash=_lost_by_crash(findings, by_id, in_order),
        doubled_by_crash=Counter(bisect_right(in_order, copy.at, key=lambda crash: crash.at) - 1 for copy in extra),
    )


def _judge(
    one: NotificationId, asked: Asked | None, states: Sequence[Ended], entries: Sequence[TakenMessage]
) -> Finding | None:
    if asked is not None and asked.answered is not Answered.ACCEPTED and not states and not entries:
        return None
    why = _why_unexpected(asked, states, entries)
    if why or asked is None:
        return Finding(one, Word.UNEXPECTED, why)
    if why := _why_lost(states, entries):
        return Finding(one, Word.LOST, why)
    if extra := _extra_copies(entries):
        return Finding(one, Word.DUPLICATED, f"{len(extra)} more than one")
    return Finding(one, Word.OK if asked.answered is Answered.ACCEPTED else Word.RECOVERED)


def _why_unexpected(asked: Asked | None, states: Sequence[Ended], entries: Sequence[TakenMessage]) -> str:
    if asked is None:
        return "nobody asked for it"
    if asked.answered is Answered.REFUSED:
        return "it was refused"
    if len(states) > 1:
        return "it is in the store more than once"
    for entry in entries:
        if mismatch := _mismatch(asked, entry):
            return f"the provider took it with another {mismatch}"
    if not states and asked.answered is Answered.NOTHING:
        return "the provider took it, the store does not know it"
    for end in states:
        if end.status in _NOT_SENT and any(end.at is None or entry.at > end.at for entry in entries):
            return f"the provider took it after it was {end.status.name}"
    return ""


def _mismatch(asked: Asked, entry: TakenMessage) -> str:
    if entry.key.tenant != asked.tenant:
        return "tenant"
    if entry.user_id != asked.user_id:
        return "person"
    if entry.channel != asked.channel:
        return "channel"
    if asked.content_hash is not None and entry.content_hash != asked.content_hash:
        return "content"
    return ""


def _why_lost(states: Sequence[Ended], entries: Sequence[TakenMessage]) -> str:
    if not states:
        return "it is not in the store"
    (end,) = states
    if end.status not in TERMINAL:
        return f"it stayed {end.status.name}"
    if end.status in _SENT and not entries:
        return f"it is {end.status.name}, but the provider never took it"
    return ""


def _extra_copies(entries: Iterable[TakenMessage]) -> list[TakenMessage]:
    """Every taking of a delivery after its first."""
    return [copy for takings in copies(entries).values() for copy in sorted(takings, key=lambda entry: entry.at)[1:]]


def _lost_by_crash(
    findings: Iterable[Finding], asked: dict[NotificationId, Asked], crashes: Sequence[Crash]
) -> Counter[int]:
    """A lost message is laid to the first crash after its answer; -1: to none."""
    blamed: Counter[int] = Counter()
    for finding in findings:
        if finding.word is Word.LOST:
            answered_at = asked[finding.notification_id].at
            first = len(crashes) if answered_at is None else bisect_left(crashes, answered_at, key=lambda c: c.at)
            blamed[first if first < len(crashes) else -1] += 1
    return blamed


def render(reckonings: dict[str, Reckoning]) -> str:
    """The five words as a Markdown table, one row a run."""
    lines = [
        f"| run | crashes | {' | '.join(Word)} | copies | bound | verdict |",
        "|---|" + "---:|" * (len(Word) + 3) + "---|",
    ]
    for name, run in reckonings.items():
        figures = [len(run.crashes), *run.words.values(), run.doubled, run.bound]
        lines.append(f"| {name} | {' | '.join(f'{figure:,}' for figure in figures)} | {_verdict(run)} |")
    return "\n".join(lines)


def _verdict(run: Reckoning) -> str:
    if run.is_control:
        return "control: fault found" if run.is_as_expected else "**control: fault NOT found**"
    return "sound" if run.is_sound else "**NOT sound**"


def render_crashes(run: Reckoning) -> str:
    """One row a crash: when, where, sends in flight, and what is laid to it."""
    lines = ["| crash | at | where | in flight | lost | doubled |", "|---:|---|---|---:|---:|---:|"]
    for number, crash in enumerate(run.crashes):
        lost, doubled = run.lost_by_crash[number], run.doubled_by_crash[number]
        lines.append(f"| {number + 1} | {iso(crash.at)} | {crash.where} | {crash.in_flight} | {lost} | {doubled} |")
    return "\n".join(lines)


def render_problems(run: Reckoning, most: int = 20) -> str:
    """The first findings that need a look, for the message of a failing assertion."""
    bad = [finding for finding in run.findings if finding.word not in (Word.OK, Word.RECOVERED)]
    lines = [f"{finding.word}: {show(finding.notification_id)}: {finding.why}" for finding in bad[:most]]
    return "\n".join([*lines, f"... and {len(bad) - most} more"] if len(bad) > most else lines)
