"""Enclosures: the attachments of a batch in; what stands around the text of its letters, encoded once for all, out."""

from binascii import b2a_base64
from collections.abc import Sequence

from msgspec import Struct

from noroshi.domain.attachments import Attachment
from noroshi.flow.send.email.smtp.headers import check_value, filename_lines

# None begins with another, nor with that of the alternatives: readers compare the beginnings of lines (RFC 2046 5.1.1).
_MIXED = b"=_mixed_noroshi"
_RELATED = b"=_related_noroshi"
_BASE64_LINE = 76


def opening(kind: bytes, boundary: bytes) -> bytes:
    """The head of a part that holds others, and the line before the first of them."""
    return b'Content-Type: multipart/%b; boundary="%b"\r\n\r\n--%b\r\n' % (kind, boundary, boundary)


def next_part(boundary: bytes) -> bytes:
    return b"\r\n--%b\r\n" % boundary


def end_of_parts(boundary: bytes) -> bytes:
    return b"\r\n--%b--" % boundary


def base64_lines(raw: bytes) -> bytes:
    coded = b2a_base64(raw, newline=False)
    return b"\r\n".join(coded[n : n + _BASE64_LINE] for n in range(0, len(coded), _BASE64_LINE))


class Wrapping(Struct, frozen=True):
    """What stands `before` the text of a letter, `before_html` inside of it, and after the HTML: first what belongs to
    it, then, once the alternatives have ended, the files. Letters share these pieces; nobody joins them."""

    before: bytes = b""
    before_html: bytes = b""
    pictures: tuple[bytes, ...] = ()
    files: tuple[bytes, ...] = ()


BARE = Wrapping()


class Enclosures:
    """The attachments of one batch. A picture stands in the HTML that names its `content_id`, and is a file among the
    others where none does: a reader would show it nowhere."""

    def __init__(self, attachments: Sequence[Attachment], contents: Sequence[bytes]) -> None:
        self._attachments = attachments
        self._coded = [base64_lines(content) for content in contents]
        self._wrappings: dict[tuple[int, ...], Wrapping] = {}

    @property
    def size(self) -> int:
        return sum(map(len, self._coded))

    def around(self, html: str | None) -> Wrapping:
        """Raises UnsafeHeaderError."""
        pictures = tuple(
            place
            for place, one in enumerate(self._attachments)
            if html is not None and one.content_id is not None and f"cid:{one.content_id}" in html
        )
        if pictures not in self._wrappings:
            self._wrappings[pictures] = self._wrap(pictures)
        return self._wrappings[pictures]

    def _wrap(self, pictures: Sequence[int]) -> Wrapping:
        files = [place for place in range(len(self._attachments)) if place not in pictures]
        return Wrapping(
            opening(b"mixed", _MIXED) if files else b"",
            opening(b"related", _RELATED) if pictures else b"",
            self._parts(pictures, "inline", _RELATED),
            self._parts(files, "attachment", _MIXED),
        )

    def _parts(self, places: Sequence[int], disposition: str, boundary: bytes) -> tuple[bytes, ...]:
        pieces: list[bytes] = []
        for place in places:
            pieces += (next_part(boundary) + _head(self._attachments[place], disposition), self._coded[place])
        return (*pieces, end_of_parts(boundary)) if pieces else ()


def _head(attachment: Attachment, disposition: str) -> bytes:
    """Of one part. No line of it begins with a dot."""
    for name, value in (("Content-Type", attachment.content_type), ("Content-ID", attachment.content_id or "")):
        check_value(name, value)
    content_id = f"Content-ID: <{attachment.content_id}>\r\n" if attachment.content_id is not None else ""
    lines = (
        f"Content-Type: {attachment.content_type}\r\nContent-Transfer-Encoding: base64\r\n{content_id}"
        f"Content-Disposition: {disposition};{filename_lines(attachment.filename)}\r\n\r\n"
    )
    return lines.encode("ascii")
