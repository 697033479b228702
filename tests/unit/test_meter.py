"""Metrics: what is counted comes out, what is not in the table is refused."""

import pytest

from noroshi.machine.meter import METRICS, Metric, MetricKind, NullMeter, UnknownMetricError
from noroshi.machine.prometheus import PrometheusMeter
from noroshi.ports.meter import Meter


def test_counts_observations_and_gauges_come_out_as_text() -> None:
    # N16.1
    meter = PrometheusMeter()
    for _ in range(2):
        meter.count("notification_sent_total", channel="email", priority="normal", status="SENT")
    meter.count("notification_sent_total", 3, status="SENT", priority="normal", channel="email")
    meter.observe("notification_delivery_latency", 0.02, channel="email")
    meter.gauge("notification_queue_depth", 7)
    lines = meter.text().decode().splitlines()
    assert 'notification_sent_total{channel="email",priority="normal",status="SENT"} 5.0' in lines
    assert 'notification_delivery_latency_bucket{channel="email",le="0.025"} 1.0' in lines
    assert 'notification_delivery_latency_bucket{channel="email",le="0.01"} 0.0' in lines
    assert "notification_queue_depth 7.0" in lines


def test_a_name_a_kind_or_a_label_that_is_not_in_the_table_is_refused() -> None:
    meter = PrometheusMeter()
    with pytest.raises(UnknownMetricError, match="no counter 'notification_snet_total'"):
        meter.count("notification_snet_total")
    with pytest.raises(UnknownMetricError, match="no gauge"):
        meter.gauge("notification_sent_total", 1, channel="email", priority="low", status="SENT")
    with pytest.raises(UnknownMetricError, match="has the labels"):
        meter.count("notification_sent_total", channel="email")
    with pytest.raises(UnknownMetricError, match="has the labels"):
        meter.gauge("notification_queue_depth", 1, channel="email")


def test_two_meters_do_not_share_what_they_count() -> None:
    first, second = PrometheusMeter(), PrometheusMeter()
    first.count("notification_template_not_found_total", channel="email")
    assert b'notification_template_not_found_total{channel="email"}' not in second.text()


def test_another_part_may_bring_its_own_rows() -> None:
    meter = PrometheusMeter([*METRICS, Metric("pages_fetched_total", MetricKind.COUNTER, (), "Pages.")])
    meter.count("pages_fetched_total")
    assert b"pages_fetched_total 1.0" in meter.text()


def test_no_label_names_a_person_or_an_id() -> None:
    # I12
    labels = {label for metric in METRICS for label in metric.labels}
    assert not labels & {"user_id", "address", "email", "phone", "token", "batch_id", "notification_id", "key_id"}


def test_the_null_meter_takes_everything() -> None:
    meter: Meter = NullMeter()
    meter.count("anything", 2, of="any")
    meter.observe("anything", 1.0)
    meter.gauge("anything", 1.0)
