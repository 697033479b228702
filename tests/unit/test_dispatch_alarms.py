"""Alarms over dead letters."""

from datetime import timedelta

import pytest
from dispatch_cast import NOW, PUSH, a_key, seconds

from noroshi.domain.deliveries import Settlement, Verdict
from noroshi.domain.instants import plus
from noroshi.domain.priorities import Priority
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Alarms, Judged

RECURRING = Alert("dead_letter_recurring", "warning", "push:BUSY")


def dead(
    after: timedelta = timedelta(0),
    priority: Priority = Priority.NORMAL,
    code: str = "BUSY",
    verdict: Verdict = Verdict.DEAD,
) -> Judged:
    settlement = Settlement(a_key(), 1, verdict, plus(NOW, after), code=code)
    return Judged(settlement, PUSH._replace(priority=priority), 0, NOW)


@pytest.mark.parametrize("priority", [Priority.CRITICAL, Priority.HIGH])
def test_an_urgent_dead_letter_raises_an_alert_once_a_settling(priority: Priority) -> None:  # N6.3
    assert Alarms().notice([dead(priority=priority)] * 3) == [Alert("dead_letter_urgent", "warning", "push:BUSY")]


@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.LOW])
def test_an_ordinary_dead_letter_raises_none(priority: Priority) -> None:
    assert Alarms().notice([dead(priority=priority)]) == []


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.DEAD])
def test_only_dead_letters_raise_alerts(verdict: Verdict) -> None:
    assert Alarms().notice([dead(priority=Priority.CRITICAL, verdict=verdict)] * 20) == []


def test_ten_of_one_channel_and_code_within_five_minutes_raise_one_alert() -> None:  # N6.3
    alarms = Alarms()
    assert alarms.notice([dead(seconds(30 * n)) for n in range(9)]) == []
    assert alarms.notice([dead(seconds(299))]) == [RECURRING]
    assert alarms.notice([dead(seconds(300))] * 50) == []


def test_ten_spread_over_a_longer_time_raise_none() -> None:
    assert Alarms().notice([dead(seconds(40 * n)) for n in range(30)]) == []


def test_codes_are_counted_apart() -> None:
    assert Alarms().notice([dead(code=f"C{n % 4}") for n in range(36)]) == []


def test_a_problem_that_stays_is_told_again_after_five_minutes() -> None:
    alarms = Alarms()
    told = [alarms.notice([dead(seconds(n))]) for n in range(900)]
    assert sum(map(len, told)) == 3


def test_codes_without_end_do_not_fill_the_memory() -> None:
    alarms = Alarms()
    alarms.notice([dead(code=f"C{n}") for n in range(5_000)])
    assert len(alarms._recurrences) == 1_000
