"""Orders to a child, and the queue of calls they are made from."""

from typing import Any, NamedTuple

import msgspec

from noroshi.domain.deliveries import Recipient
from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.machine.rendering import orders
from noroshi.machine.rendering.calls import Call, CallItem, CallQueue
from noroshi.machine.rendering.orders import OrderBook
from noroshi.ports.renderer import RenderJob

WELCOME = TemplateVersion(1, "welcome", "push", "ja", "", 1, None, None, "Hello {{ user.name }}", {})


class One(NamedTuple):
    job: RenderJob


def person(number: int, **attributes: Any) -> Recipient:
    return Recipient(f"u{number}", f"name {number}", "ja", None, attributes)


def job(number: int = 0, data: dict[str, Any] | None = None, template: TemplateVersion = WELCOME) -> RenderJob:
    return RenderJob(template, {} if data is None else data, person(number))


def test_a_version_is_taught_once_and_data_told_once_for_all_recipients() -> None:
    book, data = OrderBook(), {"a": 1}
    first = book.write([One(job(n, data)) for n in range(3)])
    second = book.write([One(job(n, data)) for n in range(3)])
    assert [len(first.order.learn), len(first.order.groups)] == [1, 1]
    assert [len(second.order.learn), len(second.order.groups)] == [0, 1]
    assert len(msgspec.msgpack.decode(first.order.groups[0].recipients)) == 3


def test_items_stand_in_the_order_of_the_answers() -> None:
    one, other = {"a": 1}, {"a": 2}
    items = [One(job(n, one if n % 2 else other)) for n in range(6)]
    written = OrderBook().write(items)
    told = [r["user_id"] for group in written.order.groups for r in msgspec.msgpack.decode(group.recipients)]
    assert [item.job.recipient.user_id for item in written.items] == told
    assert len(told) == 6


def test_another_text_under_the_same_row_is_taught_anew() -> None:
    book = OrderBook()
    changed = msgspec.structs.replace(WELCOME, body="Bye")
    book.write([One(job())])
    order = book.write([One(job(template=changed)), One(job(template=WELCOME))]).order
    assert [lesson.number for lesson in order.learn] == [1, 2]
    assert [group.number for group in order.groups] == [1, 2]
    assert order.forget == [0, 1]


def test_a_child_is_told_to_forget_what_was_not_used_for_longest(monkeypatch: Any) -> None:
    monkeypatch.setattr(orders, "MAX_KNOWN", 2)
    book = OrderBook()
    rows = [book.write([One(job(template=msgspec.structs.replace(WELCOME, row=row)))]) for row in (1, 2, 1, 3)]
    assert [written.order.forget for written in rows] == [[], [], [], [1]]


def test_an_order_that_grows_too_long_leaves_the_rest(monkeypatch: Any) -> None:
    monkeypatch.setattr(orders, "MAX_ORDER", 1000)
    items = [One(job(n, {"text": "x" * 800})) for n in range(5)]
    written = OrderBook().write(items)
    assert (len(written.items), len(written.left)) == (2, 3)


def test_what_cannot_be_encoded_spoils_nothing_else() -> None:
    data: dict[str, Any] = {}
    good, bad = One(job(1, data)), One(RenderJob(WELCOME, data, person(2, note="\ud800")))
    bad_data = One(job(3, {"note": "\ud800"}))
    bad_template = One(job(4, template=msgspec.structs.replace(WELCOME, row=9, body="\ud800")))
    written = OrderBook().write([bad, good, bad_data, bad_template])
    assert written.items == [good]
    assert sorted(item.job.recipient.user_id for item in written.unreadable) == ["u2", "u3", "u4"]


def test_numbers_too_long_for_msgpack_become_digits() -> None:
    written = OrderBook().write([One(RenderJob(WELCOME, {"wei": [10**30, 7]}, person(1, big=-(10**30))))])
    group = written.order.groups[0]
    assert msgspec.msgpack.decode(group.data) == {"wei": [str(10**30), 7]}
    assert msgspec.msgpack.decode(group.recipients)[0]["attributes"] == {"big": str(-(10**30))}


async def test_calls_share_a_chunk_equally() -> None:
    queue, large, small = CallQueue(), Call([job()] * 1000), Call([job()] * 3)
    queue.add(large)
    queue.add(small)
    chunk = queue.take(10)
    assert [item.call for item in chunk].count(small) == 3
    assert len(chunk) == 10
    assert {item.call for item in queue.take(10)} == {large}


async def test_a_cancelled_call_is_dropped() -> None:
    queue, gone, there = CallQueue(), Call([job()] * 5), Call([job()])
    queue.add(gone)
    queue.add(there)
    gone.done.cancel()
    assert [item.call for item in queue.take(10)] == [there]


async def test_what_is_put_back_is_taken_again_once() -> None:
    queue, call = CallQueue(), Call([job()] * 5)
    queue.add(call)
    queue.put_back(queue.take(3)[1:])
    assert sorted(item.place for item in queue.take(10)) == [1, 2, 3, 4]
    assert queue.take(10) == []


async def test_a_call_is_done_when_its_last_result_is_there() -> None:
    call = Call([job(), job()])
    CallItem(call, 1).settle("why not")
    assert not call.done.done()
    CallItem(call, 0).settle(Content("hello"))
    assert await call.done == [Content("hello"), RenderFailure("why not")]
