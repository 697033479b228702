"""Header lines: a name and a text in; lines that a parser reads back as that text, and as nothing else, out."""

import re
from binascii import b2a_base64
from urllib.parse import quote

from noroshi.flow.send.email.smtp.addresses import Mailbox

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_QUOTED = re.compile(r'["\\]')
_LONGEST_LINE = 78
_CHARACTERS_A_WORD = 10
"""At most 40 bytes: an encoded word of 68 characters, which fits behind the name of any header here."""

_PERCENT_ENCODED = 56
"""Characters of a piece of a parameter: with its name it fits a line."""


class UnsafeHeaderError(ValueError):
    """A value with a control character or a line separator, which could become a header of its own (RELIABILITY 5.6);
    the text names the header, never the value."""


def text_header(name: str, text: str) -> bytes:
    """An unstructured header: a line as it is, folded at its spaces, or in encoded words (RFC 2047)."""
    check_value(name, text)
    return f"{name}: {_folded(text, len(name) + 2)}\r\n".encode("ascii")


def mailbox_header(name: str, mailbox: Mailbox) -> bytes:
    """The name beside the address is quoted or, where that would not do, in encoded words. The line is UTF-8 if the
    local part of the address is."""
    check_value(name, mailbox.name)
    shown = f"<{mailbox.address.text}>" if mailbox.name else mailbox.address.text
    phrase = _phrase(mailbox.name, len(name) + 2) if mailbox.name else ""
    last = len(name) + 2 + len(phrase) if "\r\n" not in phrase else len(phrase) - phrase.rindex("\r\n") - 2
    space = "" if not phrase else " " if last + 1 + len(shown) <= _LONGEST_LINE else "\r\n "
    return f"{name}: {phrase}{space}{shown}\r\n".encode()


def filename_lines(filename: str) -> str:
    """The parameter `filename`, with what goes before it: quoted or, where that would not do, percent-encoded (RFC
    2231), in several pieces if it is long."""
    check_value("filename", filename)
    quoted = _QUOTED.sub(r"\\\g<0>", filename)
    if _is_plain(filename) and len(quoted) <= _LONGEST_LINE - len(' filename=""'):
        return f'\r\n filename="{quoted}"'
    pieces = [""]
    for character in filename:
        coded = quote(character, safe="")
        if len(pieces[-1]) + len(coded) > _PERCENT_ENCODED:
            pieces.append("")
        pieces[-1] += coded
    if len(pieces) == 1:
        return f"\r\n filename*=utf-8''{pieces[0]}"
    charset = ("utf-8''", *[""] * (len(pieces) - 1))
    return ";".join(f"\r\n filename*{n}*={charset[n]}{piece}" for n, piece in enumerate(pieces))


def check_value(name: str, text: str) -> None:
    if _UNSAFE.search(text):
        raise UnsafeHeaderError(f"{name} has a control character or a line separator")


def _folded(text: str, used: int) -> str:
    if not _is_plain(text):
        return _encoded_words(text)
    if used + len(text) <= _LONGEST_LINE:
        return text
    lines, room = [""], _LONGEST_LINE - used
    for word in text.split(" "):
        if not word or len(word) > _LONGEST_LINE - used:  # spaces in a row and very long words do not fold
            return _encoded_words(text)
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
            room = _LONGEST_LINE - 1
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return "\r\n ".join(lines)


def _phrase(text: str, used: int) -> str:
    quoted = '"' + _QUOTED.sub(r"\\\g<0>", text) + '"'
    return quoted if _is_plain(text) and used + len(quoted) <= _LONGEST_LINE else _encoded_words(text)


def _is_plain(text: str) -> bool:
    """What looks like an encoded word must be one, or a reader would show something else."""
    return text.isascii() and "=?" not in text and text == text.strip(" ")


def _encoded_words(text: str) -> str:
    words = (text[n : n + _CHARACTERS_A_WORD] for n in range(0, len(text), _CHARACTERS_A_WORD))
    return "\r\n ".join(f"=?utf-8?B?{_base64(word)}?=" for word in words)


def _base64(text: str) -> str:
    return b2a_base64(text.encode("utf-8", "replace"), newline=False).decode("ascii")
