"""The pace of an account."""

from bisect import bisect_left

from dispatch_cast import NOW, seconds
from hypothesis import given
from hypothesis import strategies as some

from noroshi.domain.instants import Instant
from noroshi.domain.pacing import spacing_of
from noroshi.flow.dispatch.pace import Pace

SECOND = 1_000_000


@given(
    per_second=some.integers(1, 3_000),
    wishes=some.lists(some.tuples(some.integers(0, 300_000), some.integers(1, 400)), min_size=1, max_size=60),
)
def test_no_window_of_a_second_sees_more_than_the_rate(
    per_second: int, wishes: list[tuple[int, int]]
) -> None:  # N8.4, I9
    pace = Pace(per_second)
    now = int(NOW)
    gone: list[int] = []
    for idle, wanted in wishes:
        now += idle
        count = pace.most(wanted)
        gone += [pace.reserve(count, Instant(now))] * count
    assert gone == sorted(gone)
    for first, moment in enumerate(gone):
        assert bisect_left(gone, moment + SECOND) - first <= per_second


@given(per_second=some.integers(1, 3_000))
def test_nearly_the_whole_rate_can_be_used(per_second: int) -> None:
    pace, now, sent = Pace(per_second), Instant(NOW), 0
    while now < NOW + 10 * SECOND:
        count = pace.most(100)
        now = pace.reserve(count, now)
        sent += count
    assert sent >= 10 * per_second * 0.85


def test_what_is_booked_goes_at_once_while_the_burst_lasts() -> None:
    pace = Pace(1_000)
    assert pace.most(500) == 100
    assert pace.reserve(100, NOW) == NOW
    assert pace.wait(NOW) > seconds(0)
    assert pace.reserve(1, NOW) > NOW


def test_one_a_second_is_one_a_second() -> None:
    pace = Pace(1)
    assert [pace.reserve(1, NOW) - NOW for _ in range(3)] == [0, SECOND, 2 * SECOND]


def test_idle_time_is_not_saved_up() -> None:
    pace = Pace(10)
    pace.reserve(1, NOW)
    later = Instant(NOW + 3_600 * SECOND)
    assert [pace.reserve(1, later) - later for _ in range(2)] == [0, spacing_of(10).interval]


def test_an_account_without_a_limit_never_waits() -> None:
    pace = Pace(None)
    assert pace.most(5_000) == 5_000
    assert [pace.reserve(5_000, NOW) for _ in range(3)] == [NOW] * 3 and pace.wait(NOW) == seconds(0)
