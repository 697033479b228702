"""Settings of e-mail over SMTP: the relay's URL and what goes with it in; one SmtpSettings, or Off, out."""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from noroshi.flow.send.email.smtp.addresses import Mailbox, read_mailbox
from noroshi.flow.send.parts import Off, ProviderSetting, UnfitSettingError

_FORM = "must be smtp://user:password@host:port or smtps://…, user and password percent-encoded"
_PORTS = {"smtp": 587, "smtps": 465}
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f.:]+\]")
_MOST_CONNECTIONS = 64
_MOST_PER_SECOND = 100_000
_SHORTEST, _LONGEST = 10, 600


class Security(Enum):
    """When TLS begins: with the connection, by STARTTLS before anything else is said, or never."""

    AT_ONCE = "at once"
    STARTTLS = "starttls"
    NONE = "none"


class Relay(Struct, frozen=True):
    """Where the mail goes, as NOROSHI_SMTP_URL says."""

    host: str
    port: int
    security: Security
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Relay({self.host!r}, {self.port})"


class SmtpSettings(Struct, frozen=True):
    relay: Relay
    sender: Mailbox
    reply_to: Mailbox | None = None
    helo: str | None = None
    ca: Path | None = None
    connections: int = 4
    per_second: int | None = None
    timeout: timedelta = timedelta(seconds=60)


def is_loopback(host: str) -> bool:
    """Whether what is said to the host never leaves this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_url(text: str) -> Relay:
    """Nothing in an error quotes the URL: it may hold a password."""
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ValueError(_FORM) from None
    if parts.scheme not in _PORTS or parts.path not in {"", "/"} or parts.fragment or not _is_host(host):
        raise ValueError(_FORM)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("must have both a user and a password, or neither")
    security = _read_security(parts.scheme, host, options)
    if user and security is Security.NONE and not is_loopback(host):
        raise ValueError("may not switch STARTTLS off: the password would cross the network in clear")
    return Relay(host, port or _PORTS[parts.scheme], security, user, password)


def _is_host(host: str) -> bool:
    return bool(_HOST_NAME.fullmatch(f"[{host}]" if ":" in host else host))


def _read_security(scheme: str, host: str, options: dict[str, str]) -> Security:
    wished = options.pop("starttls", None)
    if options:
        raise ValueError("may have one option only: ?starttls=required or ?starttls=off")
    if scheme == "smtps":
        if wished is not None:
            raise ValueError("may have the option starttls with smtp:// only: smtps:// is TLS from the first byte")
        return Security.AT_ONCE
    match wished:
        case "required":
            return Security.STARTTLS
        case "off":
            return Security.NONE
        case None:
            return Security.NONE if is_loopback(host) else Security.STARTTLS
        case _:
            raise ValueError("may have the option starttls as required or off")


def _read_mailbox(text: str) -> Mailbox:
    mailbox = read_mailbox(text)
    if mailbox is None or mailbox.address.needs_utf8 or not mailbox.name.isprintable():
        raise ValueError("must be `address` or `Name <address>`, the address in ASCII")
    return mailbox


def _read_helo(text: str) -> str:
    if not _HOST_NAME.fullmatch(text):
        raise ValueError("must be a host name, or an address in brackets")
    return text


def _read_ca(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise ValueError("must be the path of a PEM file that exists")
    return path


def _read_count(least: int, most: int, text: str) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"must be a whole number from {least} to {most}")
    return int(text)


def _read_connections(text: str) -> int:
    return _read_count(1, _MOST_CONNECTIONS, text)


def _read_per_second(text: str) -> int:
    return _read_count(1, _MOST_PER_SECOND, text)


def _read_timeout(text: str) -> timedelta:
    return timedelta(seconds=_read_count(_SHORTEST, _LONGEST, text))


SETTINGS: tuple[ProviderSetting, ...] = (
    ProviderSetting(
        "smtp_url",
        read_url,
        "The relay for e-mail: `smtp://user:password@host:port` (STARTTLS is required, unless the host is this machine "
        "or `?starttls=off` stands behind it) or `smtps://…` (TLS at once). User and password percent-encoded.",
        default_text="no e-mail over SMTP",
        is_secret=True,
    ),
    ProviderSetting(
        "smtp_from",
        _read_mailbox,
        "The sender of every e-mail: `Name <address>` or `address`.",
        default_text="the user of NOROSHI_SMTP_URL, if it is an address",
    ),
    ProviderSetting("smtp_reply_to", _read_mailbox, "Where answers go, if a template does not say otherwise."),
    ProviderSetting(
        "smtp_helo",
        _read_helo,
        "The name this machine gives the relay.",
        default_text="its host name, if that is a full one, else its address",
    ),
    ProviderSetting(
        "smtp_ca",
        _read_ca,
        "A PEM file: the authority that signs the relay's certificate.",
        default_text="those the system trusts",
    ),
    ProviderSetting("smtp_connections", _read_connections, "How many connections to the relay may be open.", "4"),
    ProviderSetting("smtp_per_second", _read_per_second, "How many messages a second the relay allows."),
    ProviderSetting(
        "smtp_timeout",
        _read_timeout,
        "Seconds an attempt may take, 10 to 600: after that an answer that has not come is unknown.",
        "60",
    ),
)

_ROWS = {row.key: row for row in SETTINGS}


def read_settings(values: Mapping[str, str]) -> SmtpSettings | Off:
    read = {key: row.read(values[row.variable]) for key, row in _ROWS.items() if values.get(row.variable)}
    relay = read.pop("smtp_url", None)
    if relay is None:
        return Off("NOROSHI_SMTP_URL is not set")
    sender = read.pop("smtp_from", None) or read_mailbox(relay.user)
    if sender is None:
        raise UnfitSettingError("NOROSHI_SMTP_FROM must be set: the user of NOROSHI_SMTP_URL is no e-mail address")
    return SmtpSettings(relay, sender, **{key.removeprefix("smtp_"): value for key, value in read.items()})
