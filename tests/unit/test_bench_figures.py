"""What the benchmarks conclude from what they measured."""

import pytest
from bench.b07_mail import source_row
from bench.counts import WrongCountError, same
from bench.figures import Goal, Judged, Measured, Pair, Row, joined, ratio_row
from bench.postgres.scenarios import quick_workers_row


def side(rate: float, cpu: float = 100.0, p99_ms: float | None = None) -> Measured:
    return Measured(rate=rate, cpu={"server": cpu}, p50_ms=p99_ms, p99_ms=p99_ms)


def pairs(*rates: tuple[float, float], cpu: float = 100.0) -> list[Pair]:
    """Ours and the limit of each; `cpu` is what ours cost a unit where the limit costs 100."""
    return [Pair(side(ours, cpu), side(limit)) for ours, limit in rates]


@pytest.mark.parametrize(
    ("goal", "value", "verdict"),
    [
        (Goal(1.2, 2), 1.2, "bar met"),
        (Goal(1.2, 2), 1.19, "MISSED"),
        (Goal(1.2, 2), 2.0, "aim met"),
        (Goal(1.2, 1.1, sign="≤"), 1.2, "bar met"),
        (Goal(1.2, 1.1, sign="≤"), 1.21, "MISSED"),
        (Goal(50, 20, sign="<"), 50, "MISSED"),
        (Goal(50, 20, sign="<"), 49.9, "bar met"),
        (Goal(None, 0.3), 0.29, "aim not met"),
        (Goal(None, 0.3), 0.3, "aim met"),
    ],
)
def test_what_a_goal_tests_is_what_it_shows(goal: Goal, value: float, verdict: str) -> None:
    assert goal.verdict(value) == verdict
    assert goal.bar_text().startswith(goal.sign) == (goal.bar is not None)


def test_turns_are_one_measurement_whose_worst_is_not_hidden() -> None:
    parts = [side(100, cpu=10, p99_ms=3), side(300, cpu=30, p99_ms=9), side(200, cpu=20, p99_ms=4)]
    whole = joined(parts)
    assert (whole.rate, whole.cpu, whole.p50_ms, whole.p99_ms) == (200, {"server": 20}, 4, 9)


def test_a_row_is_judged_by_the_median_of_its_pairs() -> None:
    row = ratio_row("a ÷ b", "P1", "things", pairs((50, 100), (60, 100), (10, 100)), Goal(0.4, 0.7))
    assert (row.ratio, row.bar, row.aim, row.verdict) == ("0.50", "≥ 0.4", "0.7", "bar met")
    assert row.judged == Judged(0.5, 0.4, 0.7)


def test_a_row_without_a_goal_is_not_judged() -> None:
    row = ratio_row("a ÷ b", "P1", "things", pairs((50, 100)), None)
    assert (row.verdict, row.bar, row.judged) == ("not judged", "", None)


def test_a_limit_that_moved_refuses_its_row() -> None:
    row = ratio_row("a ÷ b", "P1", "things", pairs((50, 100), (50, 136)), Goal(0.1, 0.2))
    assert row.verdict == "REFUSED: limit moved 36%"


def test_a_late_p99_misses_the_bar_that_the_rate_met() -> None:
    measured = [Pair(side(50, p99_ms=100.0), side(100, p99_ms=1.0))]
    row = ratio_row("a ÷ b", "P1", "things", measured, Goal(0.4, 0.7), worst_p99_ms=100)
    assert (row.bar, row.verdict) == ("≥ 0.4, p99 < 100 ms", "MISSED (p99)")


@pytest.mark.parametrize(("cpu", "verdict"), [(120.0, "aim met"), (121.0, "MISSED (CPU 1.21×)")])
def test_two_workers_may_cost_as_much_as_their_bar_and_no_more(cpu: float, verdict: str) -> None:
    row = quick_workers_row("P1", pairs((100, 100), cpu=cpu))
    assert row.verdict == verdict
    assert row.bar == "≥ 1, CPU ≤ 1.2×"


def test_dear_workers_do_not_hide_that_the_row_was_refused() -> None:
    row = quick_workers_row("P1", pairs((100, 100), (140, 140), cpu=200.0))
    assert row.verdict == "REFUSED: limit moved 40%"


def test_dear_workers_do_not_hide_that_they_are_slow_too() -> None:
    assert quick_workers_row("P1", pairs((90, 100), cpu=200.0)).verdict == "MISSED"


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ([(30.0, 100.0)], "aim met"),
        ([(29.0, 100.0)], "aim not met"),
        ([], "not judged: no apt"),
    ],
)
def test_mail_is_measured_against_the_source_of_postfix_where_there_is_one(
    rates: list[tuple[float, float]], verdict: str
) -> None:
    # issue 4
    assert source_row("P1", pairs(*rates), "no apt").verdict == verdict


def test_a_row_says_the_first_bar_that_it_missed() -> None:
    row = Row(what="a", population="", figure="", verdict="bar met")
    row.miss("p99")
    row.miss("CPU")
    assert row.verdict == "MISSED (p99)"


@pytest.mark.parametrize("found", [(2,), (3, 4)])
def test_one_wrong_count_among_several_is_seen(found: tuple[int, ...]) -> None:
    with pytest.raises(WrongCountError, match="entries"):
        same("entries", *found, wanted=3)
    same("entries", 3, 3, wanted=3)
