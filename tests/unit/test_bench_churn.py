"""B12: what is concluded from half an hour of churn, and the load that makes it."""

import struct
from pathlib import Path

import pytest
from bench.generator import Load, Plan
from bench.noop import TallyCount, read_tally
from bench.postgres.churn import Sample, pauses_of, rows_of
from bench.server import BenchError

MB = 1_000_000


def samples(
    *, rates: tuple[int, ...] = (100,) * 6, cpu: float = 0.001, dearer: float = 1.0, table: tuple[int, ...] = (8,) * 6
) -> list[Sample]:
    """Six windows of ten seconds: messages a second, CPU-seconds a message (`dearer` times as much in the last window)
    and MB of the table in each. A probe is taken as twice as slow where the table is of 7 MB."""
    made, messages, used = [Sample(0.0, 0, 0.0, table=table[0] * MB)], 0, 0.0
    for window, rate in enumerate(rates):
        for second in range(1, 11):
            messages += rate
            used += rate * cpu * (dearer if window == len(rates) - 1 else 1.0)
            probe = 2.0 if table[window] == 7 else 1.0
            made.append(
                Sample(window * 10.0 + second, messages, used, table=table[window] * MB, dead=window, probe=probe)
            )
    return made


@pytest.mark.parametrize(
    ("dearer", "ratio", "verdict"),
    [(1.0, "1.000", "aim met"), (1.08, "0.926", "bar met"), (1.12, "0.893", "MISSED"), (0.5, "1.000", "aim met")],
)
def test_the_last_minutes_may_cost_a_tenth_more_than_the_first(dearer: float, ratio: str, verdict: str) -> None:
    # issue 3
    row = rows_of("P1", 1, samples(dearer=dearer))[0]
    assert (row.ratio, row.verdict, row.bar, row.aim) == (ratio, verdict, "≥ 0.9", "0.95")


def test_fewer_messages_a_second_are_a_slow_down_even_if_each_costs_the_same() -> None:
    row = rows_of("P1", 1, samples(rates=(100, 100, 100, 100, 100, 80)))[0]
    assert (row.ratio, row.verdict) == ("0.800", "MISSED")


@pytest.mark.parametrize(
    ("table", "verdict"),
    [((8, 9, 9, 9, 9, 12), "aim met"), ((8, 99, 9, 9, 9, 16), "bar met"), ((8, 10, 12, 14, 16, 17), "MISSED")],
)
def test_the_queue_may_be_twice_as_large_at_the_end_and_no_larger(table: tuple[int, ...], verdict: str) -> None:
    # issue 3
    row = rows_of("P1", 1, samples(table=table))[1]
    assert (row.verdict, row.bar) == (verdict, "≤ 2")


def test_a_machine_that_became_slower_itself_refuses_both_rows() -> None:
    rows = rows_of("P1", 1, samples(table=(8, 8, 8, 8, 8, 7)))
    assert [row.verdict for row in rows] == ["REFUSED: limit moved 100%"] * 2


def test_half_an_hour_is_measured_with_the_pauses_that_postgres_has_by_itself() -> None:
    assert pauses_of(30) == {"checkpoint_timeout": "300s", "autovacuum_naptime": "60s"}
    assert pauses_of(1) == {"checkpoint_timeout": "30s", "autovacuum_naptime": "2s"}


def test_a_standstill_is_no_figure() -> None:
    with pytest.raises(BenchError, match="nothing was sent"):
        rows_of("P1", 1, samples(rates=(100, 100, 100, 100, 100, 0)))


def test_what_the_provider_took_is_counted_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tally"
    taken = TallyCount(path)
    assert taken.count() == 0
    record = struct.pack("<qI", 7, 2) + bytes(32)
    path.write_bytes(record + record[:20])
    assert taken.count() == 2
    path.write_bytes(record * 3)
    assert taken.count() == 6 == len(read_tally(path))


async def test_a_load_keeps_its_rate_and_catches_up_with_it() -> None:
    load = Load(Plan(port=1, key="", clients=2, mark="m", per_second=10.0, seconds=1.0))
    load.began, load.sent = 100.0, 5
    assert load.rest(100.2) == pytest.approx(0.3)
    assert load.rest(100.9) == 0.0


async def test_a_load_without_a_rate_rests_as_its_plan_says() -> None:
    assert Load(Plan(port=1, key="", clients=1, mark="m", pause=0.03)).rest(7.0) == 0.03
