"""Logs: events with fields in, lines without any address, token or key out (I12)."""

import logging
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

ALLOWED_FIELDS: frozenset[str] = frozenset(
    {
        # what every line has
        *("event", "level", "timestamp", "logger"),
        # what an error leaves: its class and where it was raised, never its text, which may quote anything
        *("error", "raised_at", "trace"),
        # names and ids of our own making
        *("account", "attempt", "batch_id", "category", "channel", "code", "job_id", "kind", "lane", "lanes"),
        *(
            "notification_id",
            "pause_id",
            "priority",
            "provider",
            "reason",
            "request_id",
            "reservation_id",
            "route",
            "severity",
            "stage",
            "status",
            "stops",
        ),
        *("subject", "task", "template_id", "tenant"),
        # measures
        *("bytes", "count", "deliveries", "due_at", "is_start", "jobs", "limit", "messages", "number", "pages"),
        *("seconds", "total", "until"),
        # the start
        *("catcher", "channels", "data", "host", "pid", "port", "store", "version"),
    }
)


def set_up_logs(level: str, form: str, stream: TextIO | None = None) -> None:
    """`form` is `json` or `console`. Replaces whatever was set up before; lines of other libraries come out too."""
    stream = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            describe_error,
            keep_allowed,
            _renderer(form, stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Foreign()]
    root.setLevel(max(number, logging.WARNING))


def describe_error(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Turns `exc_info` into the error's class and the place where it was raised."""
    raised = event.pop("exc_info", None)
    error = sys.exc_info()[1] if raised is True else raised[1] if isinstance(raised, tuple) else raised
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            event["raised_at"] = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    return event


def keep_allowed(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Drops every field that is not on the list, and an `error` that is more than the name of a class."""
    kept = {name: value for name, value in event.items() if name in ALLOWED_FIELDS}
    if not str(kept.get("error", "NoError")).isidentifier():
        del kept["error"]
    return kept


def _renderer(form: str, stream: TextIO) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(colors=stream.isatty())


class _Foreign(logging.Handler):
    """Lines of other libraries, as the text they were written with: nobody vouches for the values in them."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger().bind(logger=record.name)
        log.log(record.levelno, str(record.msg), exc_info=record.exc_info)
