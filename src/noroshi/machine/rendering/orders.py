"""Render jobs go in, an order for one child comes out: a version is told once, data once for all its recipients."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from noroshi.domain.templates import TemplateVersion
from noroshi.machine.rendering.protocol import Group, Lesson, Order, encode
from noroshi.ports.renderer import RenderJob

UNREADABLE = "the template, the data or the person's attributes hold invalid Unicode or are nested too deep"

MAX_KNOWN = 256
"""Versions a child keeps compiled; each takes some 25 kB."""

MAX_ORDER = 16 * 1024 * 1024
"""Encoded bytes after which no further group is added to an order."""

_ENCODABLE = range(-(2**63), 2**64)


class HasJob(Protocol):
    @property
    def job(self) -> RenderJob: ...


ItemT = TypeVar("ItemT", bound=HasJob)


class Written(NamedTuple, Generic[ItemT]):
    """`items` stand in the order of the answers; `left` did not fit; `unreadable` have no encoding."""

    order: Order
    items: list[ItemT]
    left: list[ItemT]
    unreadable: list[ItemT]


class OrderBook:
    """Writes the orders for one child and remembers what it was taught."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[int, TemplateVersion]] = OrderedDict()
        self._next_number = 0

    def write(self, items: Iterable[ItemT], *, is_streamed: bool = False) -> Written[ItemT]:
        together: dict[tuple[int, int], list[ItemT]] = {}
        for item in items:
            job = item.job
            together.setdefault((id(job.template), id(job.data)), []).append(item)
        written: Written[ItemT] = Written(Order([], [], [], is_streamed), [], [], [])
        size = 0
        for group in together.values():
            if size > MAX_ORDER:
                written.left.extend(group)
            else:
                size += self._write_group(written, group)
        while len(self._known) > MAX_KNOWN:
            _, (number, _) = self._known.popitem(last=False)
            written.order.forget.append(number)
        return written

    def _write_group(self, written: Written[ItemT], items: list[ItemT]) -> int:
        """Adds those of the items that can be encoded; the bytes they take."""
        readable = items
        recipients = encoded([item.job.recipient for item in items])
        if recipients is None:
            readable = [item for item in items if encoded(item.job.recipient) is not None]
            recipients = encoded([item.job.recipient for item in readable])
        data = encoded(items[0].job.data)
        number = self._number(written.order, items[0].job.template)
        if number is None or data is None or recipients is None:
            written.unreadable.extend(items)
            return 0
        written.order.groups.append(Group(number, data, recipients))
        written.items.extend(readable)
        if readable is not items:
            written.unreadable.extend(item for item in items if item not in readable)
        return len(memoryview(data)) + len(memoryview(recipients))

    def _number(self, order: Order, version: TemplateVersion) -> int | None:
        """The child's number for the version, which it is taught if need be; None if it has no encoding. Another
        version under the same row, such as an unsaved one that is only looked at, gets another number."""
        known = self._known.get(version.row)
        if known is None or known[1] != version:
            lesson = encoded(version)
            if lesson is None:
                return None
            if known is not None:
                order.forget.append(known[0])
            known = self._known[version.row] = (self._next_number, version)
            self._next_number += 1
            order.learn.append(Lesson(known[0], lesson))
        self._known.move_to_end(version.row)
        return known[0]


def encoded(value: Any) -> msgspec.Raw | None:
    """None if the value has no encoding. Numbers too long for msgpack become their digits."""
    try:
        return msgspec.Raw(encode(value))
    except OverflowError:
        return encoded(_with_digits(msgspec.to_builtins(value)))
    except (ValueError, TypeError, RecursionError):
        return None


def _with_digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_digits(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_digits(inner) for inner in value]
    return str(value) if isinstance(value, int) and value not in _ENCODABLE else value
