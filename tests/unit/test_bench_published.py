"""What is published of the benchmarks: each row with the run it is from, and a chart of the judged ones."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench.__main__ import FULL_ONLY, SCENARIOS, is_skipped, measure, scenarios_of
from bench.chart import chart
from bench.counts import WrongCountError
from bench.figures import Goal, Row, judge
from bench.published import CHART, KEPT, PAGE, ROOT, Published, merge, publish, read
from bench.run import Run
from bench.server import BenchError
from bench.table import page
from tests.services.installation import ServiceMissingError

GOAL = Goal(0.4, 0.8)
ORDER = ["B1", "B2", "B14", "B1-postgres"]


def row(what: str, ratio: float | None = None, *, goal: Goal = GOAL, verdict: str | None = None) -> Row:
    made = Row(what=what, population="P1", figure="7 things/s")
    if ratio is not None:
        made.ratio = f"{ratio:.2f}"
        judge(made, ratio, goal)
    made.verdict = verdict or made.verdict
    return made


def taken(scenario: str, *rows: Row, day: str = "2026-01-02", run: str = "the quick run") -> Published:
    return Published(scenario, day, run, list(rows))


def elements(svg: str, name: str) -> Iterator[ET.Element]:
    return ET.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{name}")  # noqa: S314 - written by us


def widths(svg: str, kind: str) -> list[float]:
    return [float(one.attrib["width"]) for one in elements(svg, "rect") if one.get("class") == kind]


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in elements(svg, "text")]


def test_a_scenario_that_was_run_replaces_its_own_rows_and_no_others() -> None:
    before = [taken("B1", row("old")), taken("B1-postgres", row("other"))]
    fresh = taken("B1", row("new"), day="2026-02-03")
    assert merge(before, fresh, ORDER) == [fresh, before[1]]


def test_a_new_scenario_takes_its_place_in_the_order() -> None:
    before = [taken("B1"), taken("B1-postgres")]
    assert [one.scenario for one in merge(before, taken("B2"), ORDER)] == ["B1", "B2", "B1-postgres"]


def test_a_scenario_that_is_no_more_falls_out() -> None:
    assert merge([taken("B99")], taken("B1"), ORDER) == [taken("B1")]


def test_every_row_of_the_page_leads_to_the_run_it_is_from() -> None:
    text = page(
        [
            taken("B1", row("accept"), row("accept more"), day="2026-03-04", run="the full run"),
            taken("B2", row("address")),
            taken("B1-postgres", row("accept there"), day="2026-03-04", run="the full run"),
        ]
    )
    runs = dict(re.findall(r"^(\d+)\. (.+)$", text, re.MULTILINE))
    numbers = dict(re.findall(r"^\| (a[a-z ]+) \|.*\| (\d+) \|$", text, re.MULTILINE))
    assert {what: runs[number] for what, number in numbers.items()} == {
        "accept": "2026-03-04: the full run.",
        "accept more": "2026-03-04: the full run.",
        "address": "2026-01-02: the quick run.",
        "accept there": "2026-03-04: the full run.",
    }
    assert len(runs) == 2
    assert text.index("## SQLite") < text.index("address") < text.index("## PostgreSQL") < text.index("accept there")


def test_a_reason_of_several_lines_stays_in_its_cell() -> None:
    text = page([taken("B1", row("accept", verdict="FAILED: one | two\nthree"))])
    assert "| FAILED: one \\| two three |" in text


def test_to_publish_the_same_again_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    first, second = taken("B1", row("accept", 0.5)), taken("B2", row("address"))
    publish(first, ORDER, tmp_path)
    publish(second, ORDER, tmp_path)
    before = {path: (tmp_path / path).read_bytes() for path in (KEPT, PAGE, CHART)}
    publish(first, ORDER, tmp_path)
    assert {path: (tmp_path / path).read_bytes() for path in (KEPT, PAGE, CHART)} == before
    assert read(tmp_path) == [first, second]


def test_page_and_chart_are_drawn_from_what_is_kept() -> None:
    # make docs
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(read())
    assert (ROOT / CHART).read_text(encoding="utf-8") == chart(read())


def test_what_is_kept_is_of_scenarios_that_exist() -> None:
    assert {one.scenario for one in read()} <= SCENARIOS.keys()


def test_the_chart_has_a_bar_for_every_judged_ratio_and_for_nothing_else() -> None:
    svg = chart(
        [
            taken("B1", row("accept", 0.5), row("beside it")),
            taken("B2", row("address", 0.1), day="2026-03-04"),
            taken("B14", row("rendering", 9.0, verdict="MISSED")),
            taken("B1-postgres", row("accept there", 0.9)),
        ]
    )
    assert [len(widths(svg, kind)) for kind in ("bar-met", "missed", "aim-met")] == [1, 2, 1]
    shown = texts(svg)
    assert "beside it" not in shown
    places = [shown.index(text) for text in ("SQLite", "address", "PostgreSQL", "accept there", "rendering")]
    assert places == sorted(places)
    assert {"0.50, bar met", "0.10, missed", "0.90, aim met", "bar 0.4", "aim 0.8"} <= set(shown)
    assert any("2026-01-02 to 2026-03-04" in text for text in shown)


def test_a_bar_is_as_long_as_its_ratio_is_of_its_own_aim() -> None:
    svg = chart([taken("B1", row("half", 0.4), row("half", 10, goal=Goal(5, 20)), row("quarter", 5, goal=Goal(5, 20)))])
    half, same_half, quarter = widths(svg, "bar-met")
    assert half == same_half
    assert quarter == pytest.approx(half / 2, abs=0.1)


def test_a_bar_far_beyond_its_aim_is_cut_off_and_says_so() -> None:
    far, near = (chart([taken("B1", row("fast", ratio))]) for ratio in (80.0, 0.9))
    assert widths(far, "aim-met") == widths(far, "track")
    assert "»" in texts(far)
    assert "80.00, aim met" in texts(far)
    assert "»" not in texts(near)


def test_a_refused_ratio_is_no_success_on_the_chart() -> None:
    svg = chart([taken("B1", row("accept", 0.9, verdict="REFUSED: limit moved 52%"))])
    assert widths(svg, "refused") and not widths(svg, "aim-met")
    assert "0.90, refused" in texts(svg)


def test_an_aim_without_a_bar_has_one_mark() -> None:
    svg = chart([taken("B7", row("mail", 0.2, goal=Goal(None, 0.3)))])
    assert "aim 0.3" in texts(svg)
    assert not [text for text in texts(svg) if text.startswith("bar ")]


def test_every_colour_of_a_verdict_is_in_the_chart_in_light_and_dark() -> None:
    svg = chart([])
    assert "prefers-color-scheme: dark" in svg
    for kind in ("aim-met", "bar-met", "missed", "refused"):
        assert f".{kind} {{ fill" in svg


def test_half_an_hour_of_churn_belongs_to_the_full_run_alone() -> None:
    assert SCENARIOS.keys() >= FULL_ONLY
    assert not FULL_ONLY & set(scenarios_of(is_full=False))
    assert scenarios_of(is_full=True) == list(SCENARIOS)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (WrongCountError("one is missing"), "WRONG COUNT: one is missing"),
        (BenchError("it does not start"), "FAILED: it does not start"),
        (ServiceMissingError("no postgres"), "SKIPPED: no postgres"),
    ],
)
def test_a_scenario_that_breaks_off_is_a_row_that_says_why(tmp_path: Path, error: Exception, verdict: str) -> None:
    def breaks(_run: Run) -> list[Row]:
        raise error

    rows = measure(breaks, "B1", Run(tmp_path, is_full=False), may_repeat=True)
    assert [one.verdict for one in rows] == [verdict]
    assert is_skipped(rows) == isinstance(error, ServiceMissingError)


@pytest.mark.parametrize(("ratio", "times"), [(0.5, 2), (None, 1)])
def test_only_a_judged_row_that_was_refused_is_measured_again(tmp_path: Path, ratio: float | None, times: int) -> None:
    seen: list[Run] = []

    def refused(run: Run) -> list[Row]:
        seen.append(run)
        return [row("accept", ratio, verdict="REFUSED: limit moved 52%")]

    measure(refused, "B1", Run(tmp_path, is_full=False), may_repeat=True)
    assert len(seen) == times
