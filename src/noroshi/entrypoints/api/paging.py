"""Paging: a limit and an opaque cursor in; one page and the cursor of the next out."""

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from noroshi.domain.problems import ProblemError

LimitNumber = Annotated[int, Meta(ge=1, le=100, description="How many items at most.")]
CursorText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern="^[A-Za-z0-9_-]+$",
        description="`next_cursor` of the page before; leave it out for the first page.",
    ),
]
RowNumber = Annotated[int, Meta(ge=0, le=2**63 - 1)]
IdBytes = Annotated[bytes, Meta(min_length=16, max_length=16)]

T = TypeVar("T")
R = TypeVar("R")


class PageQuery(Struct, frozen=True, forbid_unknown_fields=True):
    limit: LimitNumber = 50
    cursor: CursorText | None = None


class Page(Struct, Generic[T], frozen=True):
    """`next_cursor` is null on the last page."""

    items: list[T]
    next_cursor: str | None


def seal(place: Any) -> str:
    """The cursor for a place in a list."""
    return urlsafe_b64encode(msgspec.msgpack.encode(place)).rstrip(b"=").decode()


def place_in(cursor: str | None, kind: Any) -> Any:
    """The place, of type `kind`, that a cursor of ours names; None without a cursor."""
    if cursor is None:
        return None
    try:
        packed = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        place = msgspec.msgpack.decode(packed, type=kind)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _bad_cursor() from None
    if seal(place) != cursor:
        raise _bad_cursor()
    return place


def page_of(rows: Sequence[R], query: PageQuery, place: Callable[[R], Any], show: Callable[[R], T]) -> Page[T]:
    """A page from `limit + 1` rows: the one too many only tells that there is a next page."""
    shown = rows[: query.limit]
    has_more = len(rows) > query.limit
    return Page(items=[show(row) for row in shown], next_cursor=seal(place(shown[-1])) if has_more else None)


def _bad_cursor() -> ProblemError:
    return ProblemError("bad_field", "The cursor is not one that this list gave out.", field="cursor")
