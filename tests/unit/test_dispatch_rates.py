"""Rates: what was settled and what failed within the last minute, and nothing older (N16.1)."""

from dispatch_cast import CountingMeter, HandClock, seconds

from noroshi.flow.dispatch.rates import Rates

EMAIL = (("channel", "email"),)
RELAY = (("provider", "relay"),)


class Room:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.meter = CountingMeter()
        self.rates = Rates(self.clock, self.meter)

    def pass_by(self, span: float) -> None:
        """Measured once a second, as the sweeper does."""
        for _ in range(int(span)):
            self.clock.jump(seconds(1))
            self.rates.measure()

    @property
    def shown(self) -> tuple[float, float]:
        """(settled a second, share of failures)."""
        gauges = self.meter.gauges
        return gauges["worker_processing_rate", EMAIL], gauges["provider_error_rate", RELAY]


def test_a_rate_is_told_over_the_time_there_has_been_and_over_a_minute_at_most() -> None:
    room = Room()
    room.rates.settled("email", 30)
    room.rates.attempted("relay", 40, failures=10)
    room.pass_by(10)
    assert room.shown == (3.0, 0.25)
    room.rates.settled("email", 30)
    room.rates.attempted("relay", 10, failures=10)
    room.pass_by(50)
    assert room.shown == (1.0, 0.4)


def test_what_is_older_than_a_minute_counts_no_more_and_the_quiet_are_still_shown() -> None:
    room = Room()
    room.rates.settled("email", 30)
    room.rates.attempted("relay", 40, failures=10)
    room.pass_by(62)
    assert room.shown == (0.0, 0.0)


def test_before_a_second_has_passed_nothing_is_divided_by_less() -> None:
    room = Room()
    room.rates.settled("email", 5)
    room.rates.attempted("relay", 1, failures=0)
    room.rates.measure()
    assert room.shown == (5.0, 0.0)
