"""Attachments: files that a request gives along in; checked, and described in the words of a mail, out."""

import re
from collections.abc import Sequence
from functools import cache
from mimetypes import MimeTypes
from typing import Annotated

from msgspec import Meta, Struct

from noroshi.domain.problems import ProblemError

CARRIED_BY = frozenset({"email"})
"""The channels that carry attachments; the others leave them out."""

MAX_ATTACHMENTS = 10
MAX_ATTACHED = 5_000_000
"""Decoded, of all attachments of a request together."""

UNKNOWN_TYPE = "application/octet-stream"

# Control characters, line separators and folders; and what turns text around, so that `fdp.exe` reads as `exe.pdf`.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u2028\u2029/\\\\\u202a-\u202e\u2066-\u2069"
_FILENAME = f"^[^{_UNSAFE}]+$"
_WORD = "[A-Za-z0-9!#$&^_.+-]+"
_CONTENT_TYPE = f"^{_WORD}/{_WORD}( *; *{_WORD}={_WORD})*$"
_CONTENT_ID = "^[A-Za-z0-9._+-]+(@[A-Za-z0-9.-]+)?$"
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_TREES = ("multipart/", "message/")
"""Types that are mails in the mail: they must not be base64 (RFC 2046 5.2.1)."""

_OFFICE = "application/vnd.openxmlformats-officedocument."
_NOT_IN_PYTHONS_TABLE = {
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".ics": "text/calendar",
    ".webp": "image/webp",
}


def _schema(pattern: str) -> dict[str, str]:
    return {"pattern": pattern}


class AttachmentBody(Struct, frozen=True, forbid_unknown_fields=True):
    """`content` is base64. Without `content_type` the file's name tells. A picture with a `content_id` stands where the
    HTML says `cid:` and that id, and is an ordinary attachment where it does not."""

    filename: Annotated[str, Meta(min_length=1, max_length=255, extra_json_schema=_schema(_FILENAME))]
    content: Annotated[bytes, Meta(max_length=MAX_ATTACHED, extra_json_schema=_schema(_BASE64))]
    content_type: Annotated[str, Meta(max_length=127, extra_json_schema=_schema(_CONTENT_TYPE))] | None = None
    content_id: Annotated[str, Meta(max_length=128, extra_json_schema=_schema(_CONTENT_ID))] | None = None


class Attachment(Struct, frozen=True, array_like=True):
    """What is told of an attachment; its content is kept apart, at the same place among its batch's."""

    filename: str
    content_type: str
    size: int
    content_id: str | None = None


def described(given: Sequence[AttachmentBody]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(one.filename, one.content_type or type_of(one.filename), len(one.content), one.content_id)
        for one in given
    )


@cache
def _types() -> MimeTypes:
    types = MimeTypes()
    for suffix, kind in _NOT_IN_PYTHONS_TABLE.items():
        types.add_type(kind, suffix)
    return types


def type_of(filename: str) -> str:
    """What the name tells of the content, whatever this machine's own tables say."""
    kind, packing = _types().guess_type(filename)
    return UNKNOWN_TYPE if kind is None or packing or kind.startswith(_TREES) else kind


def check_attachments(given: Sequence[AttachmentBody]) -> None:
    """Refuses what no mail could carry as it is meant."""
    content_ids: set[str] = set()
    for number, one in enumerate(given):
        _check(one, f"attachments[{number}]")
        if one.content_id is not None:
            if one.content_id in content_ids:
                raise _bad("another attachment has the same one", f"attachments[{number}].content_id")
            content_ids.add(one.content_id)
    total = sum(len(one.content) for one in given)
    if total > MAX_ATTACHED:
        raise _bad(
            f"{total:,} bytes in all; at most {MAX_ATTACHED:,}: put a link in the template instead", "attachments"
        )


def _check(one: AttachmentBody, place: str) -> None:
    if not re.match(_FILENAME, one.filename) or one.filename.strip(" .") == "":
        raise _bad(
            "a plain file name is wanted: no folder, no control character, no mark that turns text around",
            f"{place}.filename",
        )
    wanted = one.content_type
    if wanted is not None and not re.fullmatch(_CONTENT_TYPE, wanted):
        raise _bad("a type such as `application/pdf` or `text/csv; charset=utf-8` is wanted", f"{place}.content_type")
    if wanted is not None and wanted.lower().startswith(_TREES):
        raise _bad(f"a mail in a mail is sent as {UNKNOWN_TYPE}", f"{place}.content_type")
    if one.content_id is not None and not re.fullmatch(_CONTENT_ID, one.content_id):
        raise _bad(
            "letters, digits and . _ + - are wanted, such as `logo` or `logo@shop.example`", f"{place}.content_id"
        )


def _bad(detail: str, field: str) -> ProblemError:
    return ProblemError("bad_field", detail, field=field)
