"""Replies: bytes from a relay in; each reply with its codes and its text out."""

import re

from msgspec import Struct

LONGEST_REPLY = 65_536

GO_AHEAD = 354
CLOSING = 421

_ONE_LINE = re.compile(rb"([2-5]\d\d)(?: ([^\r\n]*))?\r*\n")
_BEGINS_LINE = re.compile(rb"[2-5]\d\d(?:[ -]|\Z)")
_ENHANCED = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?:\s+|\Z)")
_ADDRESS = re.compile(r"<?[^\s<>]+@[^\s<>]+>?")
_LONGEST_TEXT = 300


class NonsenseError(ValueError):
    """What came is no reply of RFC 5321."""


class Reply(Struct, frozen=True):
    """`lines` without their codes."""

    code: int
    lines: tuple[str, ...]

    @property
    def is_positive(self) -> bool:
        return 200 <= self.code < 300

    @property
    def enhanced(self) -> str:
        """The code of RFC 3463, or nothing; one whose class contradicts the reply's is none."""
        found = _ENHANCED.match(self.lines[0])
        return found[1] if found and found[1][0] == str(self.code)[0] else ""

    @property
    def text(self) -> str:
        """What the relay says, without enhanced codes and without any address: it is kept and shown."""
        words = " ".join(_ENHANCED.sub("", line, count=1).strip() for line in self.lines)
        return _ADDRESS.sub("(address)", words)[:_LONGEST_TEXT]


def take_reply(buffer: bytearray) -> Reply | None:
    """The first whole reply, which leaves the buffer; None if more must come first."""
    if (whole := _ONE_LINE.match(buffer)) is not None:  # as nearly all are
        number, text = whole.groups(b"")
        del buffer[: whole.end()]
        return Reply(int(number), (text.decode("utf-8", "replace"),))
    lines: list[str] = []
    place, code = 0, b""
    while (end := buffer.find(b"\n", place)) >= 0:
        line = bytes(buffer[place:end]).rstrip(b"\r")
        place = end + 1
        if not _BEGINS_LINE.match(line) or (lines and line[:3] != code):
            raise NonsenseError("a line without a reply code")
        code = line[:3]
        lines.append(line[4:].decode("utf-8", "replace"))
        if line[3:4] != b"-":
            del buffer[:place]
            return Reply(int(code), tuple(lines))
    if len(buffer) > LONGEST_REPLY:
        raise NonsenseError("a reply without end")
    return None
