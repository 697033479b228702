"""Rates over the last minute: deliveries settled and attempts failed in; the gauges of N16.1 out."""

from collections import Counter, deque

from noroshi.ports.clock import Clock
from noroshi.ports.meter import Meter

WINDOW_SECONDS = 60.0


class _Moment:
    """What happened between two measurements."""

    __slots__ = ("at", "attempts", "failures", "settled")

    def __init__(self, at: float) -> None:
        self.at = at
        self.settled: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()


class Rates:
    """Fed by lanes and sweeper, measured by the sweeper about once a second."""

    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock = clock
        self._meter = meter
        self._moments: deque[_Moment] = deque([_Moment(clock.monotonic())])
        self._channels: set[str] = set()
        self._providers: set[str] = set()

    def settled(self, channel: str, count: int) -> None:
        self._moments[-1].settled[channel] += count

    def attempted(self, provider: str, count: int, failures: int) -> None:
        moment = self._moments[-1]
        moment.attempts[provider] += count
        moment.failures[provider] += failures

    def measure(self) -> None:
        """A channel or provider that has gone quiet falls to 0 and is still shown."""
        now = self._clock.monotonic()
        while len(self._moments) > 1 and self._moments[0].at < now - WINDOW_SECONDS:
            self._moments.popleft()
        settled: Counter[str] = Counter()
        attempts: Counter[str] = Counter()
        failures: Counter[str] = Counter()
        for moment in self._moments:
            settled.update(moment.settled)
            attempts.update(moment.attempts)
            failures.update(moment.failures)
        span = max(now - self._moments[0].at, 1.0)
        self._channels |= settled.keys()
        self._providers |= attempts.keys()
        for channel in self._channels:
            self._meter.gauge("worker_processing_rate", settled[channel] / span, channel=channel)
        for provider in self._providers:
            rate = failures[provider] / max(attempts[provider], 1)
            self._meter.gauge("provider_error_rate", rate, provider=provider)
        self._moments.append(_Moment(now))
