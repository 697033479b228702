"""Settings of the inbox: whether it serves `in_app`, to whom, and how many may look on; nothing has to be set."""

import re
from collections.abc import Mapping

from msgspec import Struct

from noroshi.flow.send.parts import ProviderSetting

INBOX_SETTING = "NOROSHI_INBOX"

_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?")


def _switch(text: str) -> bool:
    if text.lower() not in {"on", "off", "true", "false"}:
        raise ValueError("must be on or off")
    return text.lower() in {"on", "true"}


def _origins(text: str) -> frozenset[str]:
    origins = frozenset(one.strip().rstrip("/").lower() for one in text.split(",") if one.strip())
    if not all(_ORIGIN.fullmatch(one) for one in origins):
        raise ValueError("must be https://host or http://host:port, several separated by commas")
    return origins


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("must be a whole number above 0")
    return int(text)


SETTINGS = (
    ProviderSetting(
        "inbox",
        _switch,
        "`off`: people have no inbox, and `in_app` is left to a channel of your own or to the catcher.",
        default="on",
    ),
    ProviderSetting(
        "inbox_origins",
        _origins,
        "Other sites whose pages may show inboxes, `https://shop.example`, several separated by commas.",
        default="",
        default_text="none but our own",
    ),
    ProviderSetting(
        "inbox_streams", _count, "Live connections to inboxes that one process holds before a 503.", default="10000"
    ),
)


class InboxSettings(Struct, frozen=True):
    is_on: bool
    origins: frozenset[str]
    most_streams: int


def read_inbox_settings(values: Mapping[str, str]) -> InboxSettings:
    switch, origins, streams = (row.read(values.get(row.variable, row.default or "")) for row in SETTINGS)
    return InboxSettings(switch, origins, streams)
