"""Metrics: names with their labels in, the text that Prometheus reads out."""

from collections.abc import Iterable
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from noroshi.machine.meter import METRICS, Metric, MetricKind, UnknownMetricError

_Label = tuple[str, tuple[tuple[str, str], ...]]
_Family = TypeVar("_Family", Counter, Gauge, Histogram)


class PrometheusMeter:
    """Over a registry of its own, so that two servers in one process do not meet."""

    def __init__(self, metrics: Iterable[Metric] = METRICS) -> None:
        self._registry = CollectorRegistry()
        self._rows = {metric.name: metric for metric in metrics}
        self._families = {name: _family(row, self._registry) for name, row in self._rows.items()}
        self._counters: dict[_Label, Counter] = {}
        self._gauges: dict[_Label, Gauge] = {}
        self._histograms: dict[_Label, Histogram] = {}
        ProcessCollector(registry=self._registry)

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        key = (name, tuple(labels.items()))
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = self._child(Counter, name, labels)
        counter.inc(by)

    def observe(self, name: str, value: float, **labels: str) -> None:
        key = (name, tuple(labels.items()))
        histogram = self._histograms.get(key)
        if histogram is None:
            histogram = self._histograms[key] = self._child(Histogram, name, labels)
        histogram.observe(value)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        key = (name, tuple(labels.items()))
        gauge = self._gauges.get(key)
        if gauge is None:
            gauge = self._gauges[key] = self._child(Gauge, name, labels)
        gauge.set(value)

    def text(self) -> bytes:
        """What `GET /metrics` answers."""
        return generate_latest(self._registry)

    def _child(self, kind: type[_Family], name: str, labels: dict[str, str]) -> _Family:
        family = self._families.get(name)
        if not isinstance(family, kind):
            raise UnknownMetricError(f"there is no {kind.__name__.lower()} {name!r}: see METRICS")
        if set(labels) != set(self._rows[name].labels):
            raise UnknownMetricError(f"{name} has the labels {self._rows[name].labels}, not {tuple(labels)}")
        return family.labels(**labels) if labels else family


def _family(row: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if row.kind is MetricKind.COUNTER:
        return Counter(row.name, row.help, row.labels, registry=registry)
    if row.kind is MetricKind.GAUGE:
        return Gauge(row.name, row.help, row.labels, registry=registry)
    return Histogram(row.name, row.help, row.labels, buckets=row.buckets, registry=registry)
