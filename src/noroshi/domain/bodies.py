"""Bodies: JSON as it came in; checked structs out, or a problem that names the field."""

import json
import re
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from noroshi.domain.problems import ProblemError

DEEPEST = 64
"""How deep free JSON may be nested: far under what would overflow a stack anywhere behind the API."""

MAX_BODY = 5_000_000
"""Bytes."""

S = TypeVar("S", bound=Struct)

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROLS_BUT_BREAKS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PLACE = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_LACKS = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_STRANGER = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_INTEGERS = range(-(2**63), 2**64)
_SHOWN_NAME = 100


class BodyDecoder(Generic[S]):
    """Decodes bodies of one type; `multiline` names the fields whose values may hold tabs and line breaks."""

    def __init__(self, kind: type[S], multiline: frozenset[str]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._multiline = multiline
        self._names = tuple(f'"{f.encode_name}"'.encode() for f in msgspec.structs.fields(kind))
        self._free_fields = tuple(f.name for f in msgspec.structs.fields(kind) if f.type == dict[str, Any])

    def decode(self, body: bytes) -> S:
        try:
            decoded = self._decode_json(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            detail = f"{error}." if isinstance(error, msgspec.DecodeError) else "The body is not UTF-8."
            raise ProblemError("bad_json", detail) from None
        except RecursionError:
            raise ProblemError("bad_json", "The JSON is nested too deeply.") from None
        if not (_looks_plain(body) and self._has_plain_numbers(decoded)):
            check_text(decoded, multiline=self._multiline)
        for name in self._names:
            if body.count(name) > 1:
                _refuse_repeated(body)
                break
        return decoded

    def _decode_json(self, body: bytes) -> S:
        try:
            decoded: S = self._decode(body)
        except msgspec.ValidationError as error:
            # The decoder stops at the first wrong field; unreadable JSON after it is still unreadable JSON.
            msgspec.json.decode(body)
            raise problem_of(error) from None
        return decoded

    def _has_plain_numbers(self, decoded: Struct) -> bool:
        """Whether the free JSON has only numbers of 64 bits: more than that no part behind the API can hold."""
        try:
            for name in self._free_fields:
                msgspec.msgpack.encode(getattr(decoded, name))
        except OverflowError:
            return False
        return True


def _refuse_repeated(body: bytes) -> None:
    """A field named twice means two things, and others (a proxy, a log) may read the one that we do not."""
    fields: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        fields[:] = [name for name, _ in pairs]  # the outermost object comes last

    json.loads(body, object_pairs_hook=note)
    for number, name in enumerate(fields):
        if name in fields[:number]:
            raise ProblemError("bad_field", "The field stands there twice.", field=shortened(name))


def problem_of(error: msgspec.ValidationError) -> ProblemError:
    """The problem a caller sees: field named like `user_ids[3]` or `quiet_hours.start`, no value repeated."""
    match = _PLACE.fullmatch(str(error))
    what = match["what"] if match else ""
    path = ((match["path"] if match else None) or "").replace("[...]", ".*").lstrip(".")
    if stranger := _STRANGER.fullmatch(what):
        return ProblemError("unknown_field", "This field is not known here.", field=_join(path, stranger["name"]))
    if lacks := _LACKS.fullmatch(what):
        return ProblemError("bad_field", "This field is required.", field=_join(path, lacks["name"]))
    if what.startswith("Invalid enum value"):
        what = "The value is none of those allowed"
    return ProblemError("bad_field", f"{what}.", field=path or "$")


def check_text(value: object, path: str = "", *, multiline: frozenset[str] = frozenset()) -> None:
    """Refuses control characters, numbers over 64 bits and deep nesting, naming the field."""
    if isinstance(value, Struct) and multiline:
        for name in value.__struct_fields__:
            _walk(getattr(value, name), name, _CONTROLS_BUT_BREAKS if name in multiline else _CONTROLS, 1)
    else:
        _walk(value, path, _CONTROLS, 0)


def _looks_plain(body: bytes) -> bool:
    """Whether the body surely holds no control character and no deep nesting. In JSON a control character is
    escaped, but for DEL and those from U+0080 on, whose first byte is C2; three scans cost less than a walk."""
    return (
        b"\\" not in body
        and b"\x7f" not in body
        and b"\xc2" not in body
        and body.count(b"[") + body.count(b"{") <= DEEPEST
    )


def _walk(value: object, path: str, forbidden: re.Pattern[str], depth: int) -> None:
    if depth > DEEPEST:
        raise ProblemError("bad_field", f"Nested over {DEEPEST} levels deep.", field=shortened(path))
    if isinstance(value, list | tuple):
        for number, item in enumerate(value):
            _walk(item, f"{path}[{number}]", forbidden, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if _CONTROLS.search(key):
                raise ProblemError("bad_field", "A key contains a control character.", field=path or "$")
            _walk(item, _join(path, key), forbidden, depth + 1)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            _walk(getattr(value, name), _join(path, name), forbidden, depth + 1)
    elif isinstance(value, str) and forbidden.search(value):
        raise ProblemError("bad_field", "Contains a control character.", field=path or "$")
    elif isinstance(value, int) and value not in _INTEGERS:
        raise ProblemError("bad_field", "The number does not fit 64 bits.", field=path or "$")


def _join(path: str, name: str) -> str:
    return f"{path}.{shortened(name)}" if path else shortened(name)


def shortened(name: str) -> str:
    return name if len(name) <= _SHOWN_NAME else name[:_SHOWN_NAME] + "..."
