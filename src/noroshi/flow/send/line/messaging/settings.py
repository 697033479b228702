"""Settings of LINE's Messaging API: token, secret and address in; one LineSettings, or Off, out."""

import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from msgspec import Struct

from noroshi.flow.send.parts import Off, ProviderSetting

TOKEN_VARIABLE = "LINE_MESSAGING_CHANNEL_ACCESS_TOKEN"  # noqa: S105 - a name
SECRET_VARIABLE = "LINE_MESSAGING_CHANNEL_SECRET"  # noqa: S105 - a name

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_MOST_PER_SECOND = 100_000
_SHORTEST, _LONGEST = 1, 60


class LineSettings(Struct, frozen=True):
    """While a secret is being replaced, both are valid."""

    token: str
    secrets: tuple[str, ...] = ()
    url: str = "https://api.line.me"
    per_second: int = 2_000
    timeout: timedelta = timedelta(seconds=10)

    def __repr__(self) -> str:
        return f"LineSettings(url={self.url!r})"


def _read_token(text: str) -> str:
    """What could not stand in a header was not copied whole, or with something else."""
    if not re.fullmatch(r"[!-~]+", text.strip()):
        raise ValueError("must be the channel access token, without spaces")
    return text.strip()


def _read_secrets(text: str) -> tuple[str, ...]:
    secrets = tuple(secret.strip() for secret in text.split(","))
    if not all(re.fullmatch(r"[!-~]+", secret) for secret in secrets):
        raise ValueError("must be the channel secret; while it is being replaced both, separated by a comma")
    return secrets


def _read_url(text: str) -> str:
    parts = urlsplit(text.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("must be https://host, maybe with a port and a path")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError("must begin with https://: the token would cross the network in clear")
    return text.strip().rstrip("/")


def _read_count(least: int, most: int, text: str) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"must be a whole number from {least} to {most}")
    return int(text)


def _read_per_second(text: str) -> int:
    return _read_count(1, _MOST_PER_SECOND, text)


def _read_timeout(text: str) -> timedelta:
    return timedelta(seconds=_read_count(_SHORTEST, _LONGEST, text))


SETTINGS: tuple[ProviderSetting, ...] = (
    ProviderSetting(
        "line_channel_access_token",
        _read_token,
        "The channel access token of the LINE official account.",
        default_text="no LINE",
        is_secret=True,
        also=TOKEN_VARIABLE,
    ),
    ProviderSetting(
        "line_channel_secret",
        _read_secrets,
        "The channel secret, by which webhooks are known to be LINE's; while it is being replaced both, "
        "separated by a comma.",
        default_text="webhooks are refused",
        is_secret=True,
        also=SECRET_VARIABLE,
    ),
    ProviderSetting("line_url", _read_url, "Where LINE's Messaging API is.", "https://api.line.me"),
    ProviderSetting("line_per_second", _read_per_second, "How many pushes a second LINE allows.", "2000"),
    ProviderSetting(
        "line_timeout",
        _read_timeout,
        "Seconds a push may take, 1 to 60; the reservations wait for 15 at most.",
        "10",
    ),
)

_NAMES = {
    "line_channel_access_token": "token",
    "line_channel_secret": "secrets",
    "line_url": "url",
    "line_per_second": "per_second",
    "line_timeout": "timeout",
}


def read_settings(values: Mapping[str, str]) -> LineSettings | Off:
    read = {_NAMES[row.key]: row.read(values[row.variable]) for row in SETTINGS if values.get(row.variable)}
    if "token" not in read:
        return Off(f"{TOKEN_VARIABLE} is not set")
    return LineSettings(**read)
