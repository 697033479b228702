"""Words: codes and times of the API in; what a person reads out."""

import re
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

_DAY = timedelta(days=1)
_FAR = timedelta(days=30)
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_GSM = re.compile(r"[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà\f^{}\\\[~\]|€]*")
_GSM_TWICE = re.compile(r"[\f^{}\\\[~\]|€]")


_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)")
_DETAIL_NAMES = {"started_at": "began", "due_at": "again at", "message_id": "provider’s id", "by": "by"}


class Pill(Struct, frozen=True):
    """A state in one or two words. `tone`: good, busy, wait, bad or quiet; `icon` says the same without colour."""

    tone: str
    icon: str
    text: str


PILLS: dict[str, Pill] = {
    "CREATED": Pill("busy", "dots", "Created"),
    "PROCESSING": Pill("busy", "dots", "Processing"),
    "SCHEDULED": Pill("wait", "clock", "Waiting"),
    "QUEUED": Pill("busy", "dots", "Queued"),
    "SENDING": Pill("busy", "dots", "Sending"),
    "FAILED": Pill("bad", "cross", "Failed"),
    "RETRYING": Pill("wait", "again", "Retrying"),
    "SENT": Pill("good", "check", "Sent"),
    "DELIVERED": Pill("good", "checks", "Delivered"),
    "OPENED": Pill("good", "eye", "Opened"),
    "CLICKED": Pill("good", "eye", "Clicked"),
    "BOUNCED": Pill("bad", "cross", "Bounced"),
    "COMPLAINED": Pill("bad", "cross", "Complained"),
    "DEAD_LETTERED": Pill("bad", "cross", "Dead letter"),
    "SUPPRESSED": Pill("quiet", "minus", "Suppressed"),
    "CANCELLED": Pill("quiet", "minus", "Cancelled"),
}

CHANNEL_NAMES: dict[str, str] = {
    "push": "Push",
    "email": "E-mail",
    "sms": "SMS",
    "in_app": "In-app",
    "web_push": "Web push",
    "voice": "Voice",
    "line": "LINE",
}

TONES: dict[str, str] = {
    "queued": "busy",
    "released": "busy",
    "sent": "good",
    "delivered": "good",
    "opened": "good",
    "failed": "wait",
    "outcome_unknown": "wait",
    "late_result": "quiet",
    "dead_lettered": "bad",
    "suppressed": "quiet",
    "deferred": "wait",
    "cancelled": "quiet",
    "replayed": "busy",
    "discarded": "quiet",
}
"""How an entry of the trail is drawn, by its kind."""

SAID: dict[str, str] = {
    "replayed": "Queued again: {n}.",
    "untouched": "Queued again: {n}. The others have nothing to be sent to, or no template.",
    "discarded": "Discarded: {n}.",
    "cancelled": "Withdrawn: {n}. What was sent before stays sent.",
    "rolled_back": "Version {n} is in use again.",
    "saved": "Saved as version {n}.",
    "paused": "Paused.",
    "resumed": "Sending goes on.",
    "sent": "Accepted for {n}.",
    "left": "You have signed out.",
    "ended": "Your visit has ended. Sign in again.",
    "spent": "That link was used before or is too old. `noroshi console` prints another.",
    "wrong": "This is not a live key. `noroshi keys create` makes one.",
    "blind": "This key may not read. The console needs one with the scope `read`.",
}
"""What a page says after a form; pages are told the code only, so nobody can put words into its mouth."""


def ago(then: datetime, now: datetime) -> str:
    """As `times.js` says it."""
    span = now - then
    if span < timedelta(0):
        ahead = "in a moment" if -span < timedelta(seconds=1) else f"in {_span(-span)}"
        return ahead if -span < _FAR else _date(then, now)
    if span < timedelta(seconds=2):
        return "just now"
    return f"{_span(span)} ago" if span < _FAR else _date(then, now)


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if span < _DAY else f"{span.days} d"


def _date(then: datetime, now: datetime) -> str:
    return f"{then.day} {then:%b}" if then.year == now.year else f"{then.day} {then:%b} {then.year}"


def exact(then: datetime, zone: str | None = None) -> str:
    """For machines in UTC; for people as their own clock shows it, and in UTC."""
    utc = f"{then.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if zone is None or zone == "UTC":
        return utc
    return f"{then.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S} {zone} · {utc}"


def time_tag(then: datetime, now: datetime, zone: str | None = None) -> str:
    """HTML: relative to now, exact when pointed at."""
    stamp = then.isoformat(timespec="milliseconds")
    return f'<time datetime="{stamp}" title="{escape(exact(then, zone))}" data-ago>{ago(then, now)}</time>'


def clock_time(then: datetime, zone: str | None) -> str:
    return f"{then.astimezone(ZoneInfo(zone or 'UTC')):%H:%M}"


def gap(before: datetime, after: datetime) -> str:
    """How long after the entry before it an entry of the trail came; empty where it hardly did."""
    span = after - before
    if span < timedelta(milliseconds=1):
        return ""
    if span < timedelta(seconds=1):
        return f"+{span // timedelta(milliseconds=1)} ms"
    return f"+{span.total_seconds():.1f} s" if span < timedelta(minutes=1) else f"+{_span(span)}"


def details(detail: dict[str, Any]) -> list[tuple[str, str]]:
    """What the ledger noted with an entry, named and timed for people."""
    return [
        (_DETAIL_NAMES.get(name, name.replace("_", " ")), _noted(value))
        for name, value in detail.items()
        if value is not None and value != ""
    ]


def _noted(value: Any) -> str:
    if isinstance(value, str) and _ISO.fullmatch(value):
        return f"{datetime.fromisoformat(value).astimezone(UTC):%H:%M:%S.%f}"[:-3] + " UTC"
    return str(value)


def masked(address: str | None) -> str | None:
    """Enough to recognise, too little to write to."""
    if not address:
        return None
    name, at, domain = address.partition("@")
    return f"{name[:1]}***@{domain}" if at else f"{address[:3]}•••{address[-2:]}" if len(address) > 7 else "•••"


def language_of(text: str) -> str:
    """Which voice reads a call aloud."""
    return "ja-JP" if _JAPANESE.search(text) else "en-US"


def sms_parts(text: str) -> tuple[int, int]:
    """(characters, parts) as carriers count: 160 of the GSM alphabet or 70 others in one, 153 or 67 in each of more."""
    if _GSM.fullmatch(text):
        length, one, each = len(text) + len(_GSM_TWICE.findall(text)), 160, 153
    else:
        length, one, each = len(text.encode("utf-16-le")) // 2, 70, 67
    return len(text), 1 if length <= one else -(-length // each)


def initial(name: str) -> str:
    return name.strip()[:1].upper() or "?"
