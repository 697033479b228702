"""The life of a breaker."""

from datetime import timedelta

from dispatch_cast import NOW, seconds

from noroshi.domain.instants import Instant, plus
from noroshi.flow.dispatch.breaker import Breaker, Permit

GO = timedelta(0)


def opened() -> Breaker:
    breaker = Breaker()
    permit = admitted(breaker, NOW)
    for _ in range(5):
        breaker.record(permit, NOW, is_failure=True)
    return breaker


def admitted(breaker: Breaker, now: Instant) -> Permit:
    permit = breaker.admit(now)
    assert permit is not None
    return permit


def test_five_failures_in_a_row_open_it_for_a_minute() -> None:  # N6.4
    breaker = Breaker()
    permit = admitted(breaker, NOW)
    moves = [breaker.record(permit, NOW, is_failure=True) for _ in range(5)]
    assert moves == [False] * 4 + [True]
    assert not breaker.is_closed and not breaker.holds(permit)
    assert breaker.wait(NOW) == seconds(60)
    assert breaker.admit(plus(NOW, seconds(59.9))) is None


def test_an_answer_in_between_begins_the_row_anew() -> None:
    breaker = Breaker()
    permit = admitted(breaker, NOW)
    for is_failure in [True] * 4 + [False] + [True] * 4:
        breaker.record(permit, NOW, is_failure=is_failure)
    assert breaker.is_closed and breaker.wait(NOW) == GO


def test_after_a_minute_one_trial_is_let_through() -> None:
    breaker, later = opened(), plus(NOW, seconds(60))
    assert breaker.wait(later) == GO
    assert admitted(breaker, later).is_trial
    assert breaker.admit(later) is None and breaker.wait(later) is None


def test_a_trial_that_succeeds_closes_it() -> None:
    breaker, later = opened(), plus(NOW, seconds(60))
    assert breaker.record(admitted(breaker, later), later, is_failure=False)
    assert breaker.is_closed and not admitted(breaker, later).is_trial


def test_a_trial_that_fails_opens_it_again() -> None:
    breaker, later = opened(), plus(NOW, seconds(60))
    assert breaker.record(admitted(breaker, later), later, is_failure=True)
    assert breaker.wait(later) == seconds(60)
    assert admitted(breaker, plus(later, seconds(60))).is_trial


def test_a_trial_that_did_not_come_about_is_given_to_another() -> None:
    breaker, later = opened(), plus(NOW, seconds(60))
    trial = admitted(breaker, later)
    assert breaker.give_back(trial)
    assert admitted(breaker, later).is_trial


def test_giving_back_after_a_result_changes_nothing() -> None:
    breaker, later = opened(), plus(NOW, seconds(60))
    trial = admitted(breaker, later)
    breaker.record(trial, later, is_failure=True)
    assert not breaker.give_back(trial)
    assert breaker.admit(later) is None


def test_results_of_sends_from_before_it_opened_prove_nothing() -> None:
    breaker = Breaker()
    old = admitted(breaker, NOW)
    for _ in range(5):
        breaker.record(old, NOW, is_failure=True)
    later = plus(NOW, seconds(60))
    trial = admitted(breaker, later)
    assert not breaker.record(old, later, is_failure=False)
    assert breaker.wait(later) is None
    assert breaker.record(trial, later, is_failure=False)
    for _ in range(9):
        assert not breaker.record(old, later, is_failure=True)
    assert breaker.is_closed
