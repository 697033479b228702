"""Drawing: a message in; what is needed to show it as its recipient would see it out."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from noroshi.client.answers import Caught, Preview
from noroshi.entrypoints.console.words import clock_time, language_of, sms_parts

_BEFORE = '<!doctype html><meta charset="utf-8"><base target="_blank"><style>body{margin:0}</style>'


class Drawing(Struct, frozen=True):
    """`clock` is what the recipient's telephone would show; `language` which voice reads a call aloud; `characters` and
    `parts` what a carrier counts of an SMS."""

    message: Caught | Preview
    at: datetime
    zone: str | None
    clock: str
    language: str
    characters: int
    parts: int
    has_html: bool


def draw(message: Caught | Preview, at: datetime, zone: str | None) -> Drawing:
    characters, parts = sms_parts(message.body)
    return Drawing(
        message=message,
        at=at,
        zone=zone,
        clock=clock_time(at, zone),
        language=language_of(message.body),
        characters=characters,
        parts=parts,
        has_html=isinstance(message.metadata.get("html_body"), str),
    )


def letter_of(metadata: dict[str, Any]) -> bytes:
    """An e-mail's HTML, whose links open beside the console."""
    html = metadata.get("html_body")
    return (_BEFORE + html).encode() if isinstance(html, str) else b""
