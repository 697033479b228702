"""Written: a file with versions of a template in; the versions, or what is wrong with the file, out."""

import tomllib
from typing import Any

import msgspec
from msgspec import Struct, field

MALFORMED: tuple[type[Exception], ...] = (msgspec.MsgspecError, tomllib.TOMLDecodeError)


class Written(Struct, frozen=True, forbid_unknown_fields=True):
    """A version as it stands in a file."""

    channel: str
    locale: str
    body: str
    subject: str | None = None
    title: str | None = None
    variant: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class WrittenFile(Struct, frozen=True, forbid_unknown_fields=True):
    version: list[Written]


def read_versions(text: str, *, is_json: bool = False) -> list[Written]:
    """Raises one of MALFORMED."""
    raw = msgspec.json.decode(text) if is_json else tomllib.loads(text)
    return msgspec.convert(raw, WrittenFile).version
