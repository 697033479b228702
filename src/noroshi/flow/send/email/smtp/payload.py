"""The payload: an attempt in; a letter as it goes over the wire (RFC 5322, MIME), or why there can be none, out."""

from binascii import b2a_base64, b2a_qp
from email.utils import format_datetime
from typing import Any

from msgspec import Struct

from noroshi.domain.deliveries import Attempt, DeliveryKey
from noroshi.domain.ids import BatchId, batch_of, show
from noroshi.domain.instants import Instant, moment_of
from noroshi.domain.outcomes import Rejected
from noroshi.domain.templates import Content
from noroshi.flow.send.email.smtp.addresses import Mailbox, read_address, read_mailbox
from noroshi.flow.send.email.smtp.headers import UnsafeHeaderError, check_value, mailbox_header, text_header
from noroshi.flow.send.email.smtp.plain_text import text_of

BAD_ADDRESS = "INVALID_ADDRESS"
BAD_HEADER = "UNSAFE_HEADER"

_END_OF_CONTENT = b"\r\n.\r\n"
_DOT = len(b".\r\n")
_LONGEST_LINE = 998
_BASE64_LINE = 76
_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_NOT_ASCII = bytes(range(0x80, 0x100))

_BOUNDARY = b"=_noroshi"
"""Cannot occur in a part: `=_` is neither base64 nor quoted-printable, and text that holds it is not sent as it is."""

_PART = b"Content-Type: text/%b; charset=utf-8\r\nContent-Transfer-Encoding: %b\r\n\r\n%b"
_ALTERNATIVES = b'Content-Type: multipart/alternative; boundary="' + _BOUNDARY + b'"\r\n\r\n--' + _BOUNDARY + b"\r\n"
_NEXT = b"\r\n--" + _BOUNDARY + b"\r\n"
_LAST = b"\r\n--" + _BOUNDARY + b"--"


class Letter(Struct):
    """`place` is the attempt's among its neighbours; `content` ends with the dot that ends the DATA. `is_out` is set
    when the first byte of it leaves: from then on only the relay's answer says what became of it."""

    place: int
    message_id: str
    recipient: bytes
    content: bytes
    needs_utf8: bool
    is_out: bool = False

    @property
    def size(self) -> int:
        """Bytes as RFC 1870 counts them: without the dot that ends the content."""
        return len(self.content) - _DOT


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

    def letter(self, place: int, attempt: Attempt) -> Letter | Rejected:
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
        except UnsafeHeaderError as error:
            return Rejected(BAD_HEADER, str(error))
        whole = b"".join((*head, self._body(content))).replace(b"\r\n.", b"\r\n..")
        return Letter(place, message_id, address.text.encode(), whole + _END_OF_CONTENT, address.needs_utf8)

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

    def _body(self, content: Content) -> bytes:
        """The template's `body` (or `metadata.text_body`) is the plain part, `metadata.html_body` the HTML beside it;
        the plain part of a mail that has none is drawn from the HTML."""
        html = content.metadata.get("html_body")
        text = str(content.metadata.get("text_body") or content.body)
        if not isinstance(html, str) or not html.strip():
            return self._part(b"plain", text)
        if not text.strip():
            text = text_of(html)
        return b"".join((_ALTERNATIVES, self._part(b"plain", text), _NEXT, self._part(b"html", html), _LAST))

    def _part(self, kind: bytes, text: str) -> bytes:
        """Made once for letters in a row that have the same text."""
        last, part = self._parts.get(kind, ("", b""))
        if not part or last != text:
            part = _PART % (kind, *_encode(text))
            self._parts[kind] = text, part
        return part


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
        coded = b2a_base64(flat, newline=False)
        return b"base64", b"\r\n".join(coded[n : n + _BASE64_LINE] for n in range(0, len(coded), _BASE64_LINE))
    return b"quoted-printable", b2a_qp(flat, istext=True)
