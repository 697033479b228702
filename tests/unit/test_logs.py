"""Logs: lines for people and machines, in which no address, token or key can appear."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from noroshi.machine.logs import set_up_logs

CANARY = "canary@example.com"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_its_event_level_time_and_allowed_fields(stream: io.StringIO) -> None:
    set_up_logs("info", "json", stream)
    structlog.get_logger().warning("account paused", account="ses-1", code="BAD_KEY", count=2)
    [line] = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "account paused", "level": "warning", "account": "ses-1", "code": "BAD_KEY", "count": 2}


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_field_that_is_not_on_the_list_is_dropped(stream: io.StringIO, form: str) -> None:
    # I12
    set_up_logs("debug", form, stream)
    structlog.get_logger().info("sent", address=CANARY, user_id=CANARY, token=CANARY, channel="email")
    assert "email" in stream.getvalue()
    assert CANARY not in stream.getvalue()


def test_an_error_is_shown_by_class_and_place_and_not_by_its_text(stream: io.StringIO) -> None:
    # I12
    set_up_logs("info", "json", stream)
    try:
        int(CANARY)
    except ValueError:
        structlog.get_logger().exception("send failed")
    [line] = lines(stream)
    assert line["error"] == "ValueError"
    assert line["raised_at"].startswith("test_logs.py:")
    assert CANARY not in stream.getvalue()


def test_an_error_given_as_text_is_dropped_and_as_a_class_name_kept(stream: io.StringIO) -> None:
    # I12
    set_up_logs("info", "json", stream)
    structlog.get_logger().error("send failed", error=f"no such mailbox {CANARY}")
    structlog.get_logger().error("send failed", error="TimeoutError")
    assert [line.get("error") for line in lines(stream)] == [None, "TimeoutError"]


def test_lines_of_other_libraries_come_out_without_their_values(stream: io.StringIO) -> None:
    # I12
    set_up_logs("info", "json", stream)
    logging.getLogger("uvicorn.error").error("cannot reach %s", CANARY, exc_info=ValueError(CANARY))
    logging.getLogger("uvicorn.error").info("not worth a line")
    [line] = lines(stream)
    assert (line["event"], line["logger"], line["level"]) == ("cannot reach %s", "uvicorn.error", "error")
    assert CANARY not in stream.getvalue()


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    set_up_logs("error", "json", stream)
    structlog.get_logger().warning("quiet")
    assert stream.getvalue() == ""
