"""Alarms over dead letters (N6.3): what was judged goes in, the alerts it raises come out."""

from collections import deque
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from noroshi.domain.deliveries import Settlement, Verdict
from noroshi.domain.instants import Instant, plus
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import URGENT
from noroshi.domain.records import Alert

URGENT_DEAD_LETTER = "dead_letter_urgent"
RECURRING_DEAD_LETTER = "dead_letter_recurring"
ACCOUNT_MISCONFIGURED = "account_misconfigured"
WARNING = "warning"

_TIMES = 10
_WINDOW = timedelta(minutes=5)
_MOST_SUBJECTS = 1_000


class Judged(NamedTuple):
    """A settlement with what alarms and metrics must know of its delivery."""

    settlement: Settlement
    lane: Lane
    tries: int
    wanted_at: Instant | None


class _Recurrence:
    """When one channel and code last ended a delivery, and until when its alert is not raised again."""

    __slots__ = ("quiet_until", "times")

    def __init__(self) -> None:
        self.times: deque[Instant] = deque(maxlen=_TIMES)
        self.quiet_until = Instant(0)

    def is_raised_by(self, at: Instant) -> bool:
        self.times.append(at)
        if at < self.quiet_until or len(self.times) < _TIMES or plus(self.times[0], _WINDOW) < at:
            return False
        self.quiet_until = plus(at, _WINDOW)
        return True


def _is_dead(judged: Judged) -> bool:
    return judged.settlement.verdict is Verdict.DEAD


class Alarms:
    """Urgent dead letters raise an alert each time they are settled, once a subject; ten of one channel and
    code within five minutes raise another, once in that time."""

    def __init__(self) -> None:
        self._recurrences: dict[str, _Recurrence] = {}

    def notice(self, judged: Iterable[Judged]) -> list[Alert]:
        return self.notice_dead((j.lane, j.settlement.code, j.settlement.at) for j in judged if _is_dead(j))

    def notice_dead(self, dead: Iterable[tuple[Lane, str, Instant]]) -> list[Alert]:
        """The same for dead letters that nobody had to judge, each as (lane, code, time)."""
        alerts: dict[Alert, None] = {}
        for lane, code, at in dead:
            subject = f"{lane.channel}:{code}"
            if lane.priority in URGENT:
                alerts[Alert(URGENT_DEAD_LETTER, WARNING, subject)] = None
            if self._recurrence(subject).is_raised_by(at):
                alerts[Alert(RECURRING_DEAD_LETTER, WARNING, subject)] = None
        return list(alerts)

    def _recurrence(self, subject: str) -> _Recurrence:
        found = self._recurrences.pop(subject, None) or _Recurrence()
        self._recurrences[subject] = found
        if len(self._recurrences) > _MOST_SUBJECTS:
            # The one that was quiet longest: providers may invent codes without end.
            del self._recurrences[next(iter(self._recurrences))]
        return found
