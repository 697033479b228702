"""The inbox as a channel: what it keeps of a content, and what it cannot show."""

from typing import Any

import msgspec
import pytest

from noroshi.domain.inbox import LONGEST_CONTENT
from noroshi.domain.outcomes import Rejected
from noroshi.domain.templates import Content
from noroshi.flow.send.in_app.inbox.payload import payload_of
from noroshi.flow.send.in_app.inbox.settings import SETTINGS, read_inbox_settings


def kept(content: Content) -> dict[str, Any]:
    payload = payload_of(content)
    assert isinstance(payload, str)
    found: dict[str, Any] = msgspec.json.decode(payload)
    return found


def refusal(content: Content) -> str:
    payload = payload_of(content)
    assert isinstance(payload, Rejected)
    return payload.code


def test_a_title_is_the_title_or_else_the_subject() -> None:
    assert kept(Content("b", "subject", "title"))["title"] == "title"
    assert kept(Content("b", "subject"))["title"] == "subject"
    assert kept(Content("b"))["title"] is None


def test_link_and_data_are_kept_and_nothing_else_of_the_metadata() -> None:
    content = Content("b", metadata={"url": "/orders/1", "data": {"order": 1}, "html_body": "<b>x</b>"})
    assert kept(content) == {"title": None, "body": "b", "url": "/orders/1", "data": {"order": 1}}


@pytest.mark.parametrize("url", ["https://shop.example/a", "HTTP://shop.example", "/orders/1?a=b#c"])
def test_a_link_leads_to_the_web_or_into_the_product(url: str) -> None:
    assert kept(Content("b", metadata={"url": url}))["url"] == url


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "/\\evil.example",
        "x",
        "",
        7,
    ],
)
def test_no_other_link_is_kept(url: object) -> None:  # RELIABILITY 5.6
    assert refusal(Content("b", metadata={"url": url})) == "BAD_URL"


def test_data_is_an_object() -> None:
    assert refusal(Content("b", metadata={"data": [1]})) == "BAD_DATA"


@pytest.mark.parametrize(("size", "is_kept"), [(-1, True), (0, True), (1, False)])
def test_an_entry_has_its_greatest_size(size: int, is_kept: bool) -> None:  # RELIABILITY 5.1, shoutrrr
    around = len(msgspec.json.encode(kept(Content(""))))
    payload = payload_of(Content("x" * (LONGEST_CONTENT - around + size)))
    assert isinstance(payload, str) is is_kept


def test_nothing_has_to_be_set() -> None:
    settings = read_inbox_settings({})
    assert (settings.is_on, settings.origins, settings.most_streams) == (True, frozenset(), 10_000)


def test_origins_are_those_of_browsers() -> None:
    found = read_inbox_settings({"NOROSHI_INBOX_ORIGINS": "https://Shop.example/, http://localhost:3000"}).origins
    assert found == {"https://shop.example", "http://localhost:3000"}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("inbox", "maybe"),
        ("inbox_streams", "0"),
        ("inbox_origins", "shop.example"),
        ("inbox_origins", "https://a/b"),
        ("inbox_origins", "*"),
    ],
)
def test_a_setting_that_cannot_be_says_so(key: str, text: str) -> None:
    row = next(row for row in SETTINGS if row.key == key)
    with pytest.raises(ValueError, match="must be"):
        row.read(text)
