"""Settings of the catcher: whether it stands in for missing providers, and how it takes messages."""

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from noroshi.flow.send.parts import Off

CATCHER_SETTING = "NOROSHI_CATCHER"
CATCHER_HELP = "`on`: the catcher stands in for every channel without a provider and keeps what it gets. Default `off`."


class CatcherSettings(Struct, frozen=True):
    max_batch: int = 100
    attempt_timeout: timedelta = timedelta(seconds=10)
    per_second: int | None = None


def read_settings(values: Mapping[str, str]) -> CatcherSettings | Off:
    if values.get(CATCHER_SETTING, "off") != "on":
        return Off(f"{CATCHER_SETTING} is not `on`")
    return CatcherSettings()
