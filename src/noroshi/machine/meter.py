"""The names of all metrics with their labels (each row: docs/metrics.md), and the meter that counts nothing."""

from enum import StrEnum

from msgspec import Struct


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True):
    """A row of docs/metrics.md. Labels take few values: never a person, an address or an id."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
_SIZES = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0)

_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

METRICS: tuple[Metric, ...] = (
    # accept and address
    Metric("notification_batches_created_total", _C, (), "Batches accepted."),
    Metric("notification_batch_size", _H, (), "Recipients of a batch.", _SIZES),
    Metric("accept_waiting_calls", _G, (), "Calls that wait for their commit."),
    Metric("accept_group_size", _H, (), "Calls that one commit accepted.", _SIZES),
    Metric("accept_refused_total", _C, ("code",), "Calls refused, by problem code."),
    Metric("notification_requests_taken_total", _C, (), "Enqueued requests that became batches."),
    Metric("notification_requests_dead_total", _C, ("code",), "Enqueued requests that died, by problem code."),
    Metric("notification_oldest_request_seconds", _G, (), "Age of the oldest enqueued request that waits."),
    Metric("notification_processing_errors_total", _C, ("stage",), "Errors of our own on the way, by stage."),
    Metric("notification_rate_limited_total", _C, ("channel",), "Notifications over a person's limit."),
    Metric("notification_template_not_found_total", _C, ("channel",), "Notifications whose template has no version."),
    # compose
    Metric("notification_render_errors_total", _C, ("channel",), "Deliveries whose template could not be rendered."),
    # dispatch and send
    Metric("notification_sent_total", _C, ("channel", "priority", "status"), "Deliveries settled, by end status."),
    Metric(
        "notification_delivery_latency",
        _H,
        ("channel",),
        "Seconds from accept or due time to SENT (in-app: DELIVERED).",
        _LONG,
    ),
    Metric("notification_retry_total", _C, ("channel", "attempt"), "Retries planned, by number."),
    Metric("notification_dead_lettered_total", _C, ("channel", "error_code"), "Dead letters."),
    Metric("notification_released_total", _C, ("channel",), "Claims given back without using up a try."),
    Metric("notification_resent_total", _C, ("channel",), "Deliveries sent again because an outcome was never learnt."),
    Metric("notification_late_results_total", _C, (), "Outcomes that came after their lease: recorded, not counted."),
    Metric("notification_settle_errors_total", _C, (), "Settling commits that failed and were tried again."),
    Metric("notification_alerts_total", _C, ("kind", "severity"), "Alerts raised."),
    Metric("notification_queue_depth", _G, (), "Deliveries not settled for good."),
    Metric(
        "notification_oldest_unfinished_seconds",
        _G,
        ("lane",),
        "Age of a lane's oldest delivery due or claimed.",
    ),
    Metric("dispatch_claimed", _G, (), "Deliveries claimed and not settled yet."),
    Metric("dispatch_sending", _G, (), "Attempts that a provider has not answered yet."),
    Metric("dispatch_errors_total", _C, ("lane",), "Errors of our own in a lane (empty: outside any)."),
    Metric("provider_api_latency", _H, ("provider",), "Seconds that one call to a provider took.", _QUICK),
    Metric("provider_attempts_total", _C, ("provider",), "Attempts handed to a provider."),
    Metric("provider_errors_total", _C, ("provider",), "Attempts that a provider did not take."),
    Metric("provider_unknown_total", _C, ("provider",), "Attempts that left and were never answered."),
    Metric("provider_error_rate", _G, ("provider",), "Share of attempts of the last minute that failed."),
    Metric("worker_processing_rate", _G, ("channel",), "Deliveries settled a second, over the last minute."),
    Metric("provider_breaker_open", _G, ("provider",), "1 while the account's breaker is open."),
    Metric("sweeper_last_run_timestamp", _G, (), "Heartbeat: Unix time of the sweeper's last turn, in seconds."),
    Metric("sweeper_errors_total", _C, (), "Turns of the sweeper that failed."),
    # inbox
    Metric("inbox_streams", _G, (), "Connections that look at an inbox live."),
    Metric("inbox_streams_dropped_total", _C, (), "Connections ended because they took nothing for a minute."),
    # store
    Metric("store_commit_group_size", _H, (), "Turns that shared one commit; on PostgreSQL each has its own.", _SIZES),
    Metric("store_turns_again_total", _C, ("error",), "Turns taken again: two processes wanted the same at once."),
    Metric("store_commit_seconds", _H, (), "Seconds that one commit with its writes took.", _QUICK),
)


class UnknownMetricError(LookupError):
    """The name, its kind or its labels are not those of a row of METRICS."""


class NullMeter:
    """Counts nothing: for tests and for commands that serve nobody."""

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Nothing."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Nothing."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Nothing."""
