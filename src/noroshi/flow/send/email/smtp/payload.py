"""The payload: an attempt in; a letter as it goes over the wire (RFC 5322, MIME), or why there can be none, out."""

from binascii import b2a_qp
from email.utils import format_datetime
from typing import Any

from msgspec import Struct

from noroshi.domain.deliveries import Attempt, DeliveryKey
from noroshi.domain.ids import BatchId, batch_of, show
from noroshi.domain.instants import Instant, moment_of
from noroshi.domain.outcomes import Rejected
from noroshi.domain.templates import Content
from noroshi.flow.send.email.smtp.addresses import Mailbox, read_address, read_mailbox
from noroshi.flow.send.email.smtp.enclosures import (
    BARE,
    Enclosures,
    Wrapping,
    base64_lines,
    end_of_parts,
    next_part,
    opening,
)
from noroshi.flow.send.email.smtp.headers import UnsafeHeaderError, check_value, mailbox_header, text_header
from noroshi.flow.send.email.smtp.plain_text import text_of

BAD_ADDRESS = "INVALID_ADDRESS"
BAD_HEADER = "UNSAFE_HEADER"

_END_OF_CONTENT = b"\r\n.\r\n"
_DOT = len(b".\r\n")
_LONGEST_LINE = 998
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_NOT_ASCII = bytes(range(0x80, 0x100))

_BOUNDARY = b"=_noroshi"
"""Cannot occur in a part: `=_` is neither base64 nor quoted-printable, and text that holds it is not sent as it is."""

_PART = b"Content-Type: text/%b; charset=utf-8\r\nContent-Transfer-Encoding: %b\r\n\r\n%b"
_ALTERNATIVES = opening(b"alternative", _BOUNDARY)
_NEXT = next_part(_BOUNDARY)
_LAST = end_of_parts(_BOUNDARY)


class Letter(Struct):
    """`place` is the attempt's among its neighbours. The last of the `pieces` of its content, which letters may share,
    ends with the dot that ends the DATA. `is_out` is set when that piece leaves: from then on only the relay's
    answer says what became of the letter, and before that the relay keeps nothing (RFC 5321 4.1.1.4)."""

    place: int
    message_id: str
    recipient: bytes
    pieces: tuple[bytes, ...]
    needs_utf8: bool
    is_out: bool = False

    @property
    def size(self) -> int:
        """Bytes as RFC 1870 counts them: without the dot that ends the content."""
        return sum(map(len, self.pieces)) - _DOT


class Letterhead:
    """What the letters of one call share, made once; `letter` fills in the rest."""

    def __init__(self, sender: Mailbox, reply_to: Mailbox | None, now: Instant) -> None:
        self._domain = sender.address.domain
        self._reply_to = b"" if reply_to is None else mailbox_header("Reply-To", reply_to)
        self._top = (
            f"Date: {format_datetime(moment_of(now))}\r\n".encode("ascii")
            + mailbox_header("From", sender)
            + b"MIME-Version: 1.0\r\nAuto-Submitted: auto-generated\r\n"
        )
        self._tags: dict[tuple[BatchId, str], bytes] = {}
        self._parts: dict[bytes, tuple[str, bytes]] = {}

    def letter(self, place: int, attempt: Attempt, enclosures: Enclosures | None = None) -> Letter | Rejected:
        address = read_address(attempt.address)
        if address is None:
            return Rejected(BAD_ADDRESS, "the address is no plain local@domain")
        content, message_id = attempt.content, self._message_id(attempt.key)
        try:
            head = (
                self._top,
                self._batch_tags(attempt),
                mailbox_header("To", Mailbox((attempt.recipient.name or "").strip(" "), address)),
                _subject(content),
                f"Message-ID: <{message_id}>\r\n".encode("ascii"),
                self._reply_to_of(content.metadata),
            )
            text, *files = self._body(content, enclosures)
        except UnsafeHeaderError as error:
            return Rejected(BAD_HEADER, str(error))
        whole = b"".join((*head, text)).replace(b"\r\n.", b"\r\n..")
        pieces = (whole, *files, _END_OF_CONTENT) if files else (whole + _END_OF_CONTENT,)
        return Letter(place, message_id, address.text.encode(), pieces, address.needs_utf8)

    def _message_id(self, key: DeliveryKey) -> str:
        """The same on every try, so that a mailbox can drop the twin of an answer that was lost."""
        return f"{key.notification_id.hex()}.{key.tenant}.{key.endpoint_id}@{self._domain}"

    def _batch_tags(self, attempt: Attempt) -> bytes:
        """N1.4: by these a mail is found again in the relay's logs."""
        key = batch_of(attempt.key.notification_id), attempt.category
        tags = self._tags.get(key)
        if tags is None:
            batch = f"X-Noroshi-Batch: {show(key[0])}\r\n".encode("ascii")
            tags = self._tags[key] = batch + text_header("X-Noroshi-Category", attempt.category)
        return tags

    def _reply_to_of(self, metadata: dict[str, Any]) -> bytes:
        wished = metadata.get("reply_to")
        if not wished:
            return self._reply_to
        check_value("Reply-To", str(wished))
        mailbox = read_mailbox(str(wished))
        if mailbox is None or mailbox.address.needs_utf8:
            raise UnsafeHeaderError("Reply-To is neither `address` nor `Name <address>`")
        return mailbox_header("Reply-To", mailbox)

    def _body(self, content: Content, enclosures: Enclosures | None) -> tuple[bytes, ...]:
        """The template's `body` (or `metadata.text_body`) is the plain part, `metadata.html_body` the HTML beside it;
        the plain part of a mail that has none is drawn from the HTML. What the letter shares with others comes last."""
        html = content.metadata.get("html_body")
        text = str(content.metadata.get("text_body") or content.body)
        if not isinstance(html, str) or not html.strip():
            wrapping = BARE if enclosures is None else enclosures.around(None)
            return wrapping.before + self._part(b"plain", text), *wrapping.files
        if not text.strip():
            text = text_of(html)
        return _alternatives(
            BARE if enclosures is None else enclosures.around(html),
            self._part(b"plain", text),
            self._part(b"html", html),
        )

    def _part(self, kind: bytes, text: str) -> bytes:
        """Made once for letters in a row that have the same text."""
        last, part = self._parts.get(kind, ("", b""))
        if not part or last != text:
            part = _PART % (kind, *_encode(text))
            self._parts[kind] = text, part
        return part


def _alternatives(wrapping: Wrapping, plain: bytes, html: bytes) -> tuple[bytes, ...]:
    text = b"".join((wrapping.before, _ALTERNATIVES, plain, _NEXT, wrapping.before_html, html))
    if wrapping is BARE:
        return (text + _LAST,)
    return text, *wrapping.pictures, _LAST, *wrapping.files


def _subject(content: Content) -> bytes:
    subject = content.subject or content.title
    return text_header("Subject", subject) if subject else b""


def _encode(text: str) -> tuple[bytes, bytes]:
    """Seven bits whatever the relay can do, so that no signature breaks on the way; every line break becomes CRLF."""
    lines = text.encode("utf-8", "replace").splitlines()
    flat = b"\r\n".join(lines)
    is_printable = not flat.translate(None, _PRINTABLE)
    if is_printable and b"=_" not in flat and max(map(len, lines), default=0) <= _LONGEST_LINE:
        return b"7bit", flat
    if (len(flat) - len(flat.translate(None, _NOT_ASCII))) * 6 > len(flat):
        return b"base64", base64_lines(flat)
    return b"quoted-printable", b2a_qp(flat, istext=True)
