"""The load: a plan on the standard input, requests over connections that stay open, what came back on the output.

    python -m bench.generator < plan.json

A process of its own, and cheap: a request is a few joined bytes, an answer is kept unread until the end, so that
what is measured is the server and not this.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import cast

import msgspec
import uvloop
from msgspec import Struct

from bench.cast import TEMPLATE, USERS, user_id

_USER_STEP = 6_151  # a prime: one after the other, requests reach people from everywhere
_ORDER_DIGITS = 9


class Plan(Struct, frozen=True, kw_only=True):
    """Either for `seconds` or until `requests` are answered. `mark` makes data and keys unlike those of any other
    plan. `pause` is waited before each request; `per_second` is the rate that all clients together do not exceed;
    `only` names the people's numbers instead of all of them."""

    port: int
    key: str
    clients: int
    mark: str
    seconds: float | None = None
    requests: int | None = None
    recipients: int = 1
    priority: str = "normal"
    pause: float = 0.0
    per_second: float | None = None
    has_keys: bool = False
    is_traced: bool = False
    only: list[int] | None = None


class Trace(Struct, frozen=True):
    """When one request was sent, by the monotonic clock, and the batch it became."""

    batch_id: str
    sent_at: float


class Report(Struct):
    """`recipients` were asked for; accepted and rejected are as answered, the rest was still undecided."""

    requests: int = 0
    recipients: int = 0
    accepted: int = 0
    rejected: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    statuses: dict[str, int] = msgspec.field(default_factory=dict)
    traces: list[Trace] = msgspec.field(default_factory=list)


class _Answer(Struct):
    batch_id: str
    total_recipients: int
    accepted: int
    rejected: int


def percentile(values: list[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed; 0 of none."""
    if not values:
        return 0.0
    ranked = sorted(values)
    return ranked[min(int(len(ranked) * share), len(ranked) - 1)]


def requests_of(plan: Plan) -> Callable[[int], bytes]:
    """Request number n, all of one length, put together from parts made once."""
    people = plan.only or [number * _USER_STEP % USERS for number in range(USERS)]
    lists = [
        msgspec.json.encode([user_id(one) for one in people[first : first + plan.recipients]])
        for first in range(0, len(people) - plan.recipients + 1, plan.recipients)
    ]
    asked = f'],"template_id":"{TEMPLATE}","channels":["email"],"priority":"{plan.priority}","category":"general",'
    if plan.has_keys:
        asked += f'"idempotency_key":"{plan.mark}-%0{_ORDER_DIGITS}d",'
    asked += f'"data":{{"order":"{plan.mark}-%0{_ORDER_DIGITS}d","total":4200,"items":["tea","cake"]}}}}'
    tail = asked.encode()
    times = tail.count(b"%0")
    body_bytes = len(b'{"user_ids":') + len(lists[0]) - 1 + len(tail % ((0,) * times))
    head = (
        f"POST /api/v1/notifications HTTP/1.1\r\nHost: 127.0.0.1:{plan.port}\r\nAuthorization: Bearer {plan.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
    ).encode() + b'{"user_ids":'
    parts = [head + one[:-1] for one in lists]
    return lambda number: parts[number % len(parts)] + tail % ((number,) * times)


class Load:
    """What the connections share: the next request, and everything that came back."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.build = requests_of(plan)
        self.sent = 0
        self.open = 0
        self.latencies: list[float] = []
        self.statuses: Counter[bytes] = Counter()
        self.bodies: list[tuple[float, bytes]] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.began = 0.0
        self.ended = 0.0
        self.cpu_seconds = 0.0

    def has_more(self) -> bool:
        if self.plan.requests is not None:
            return self.sent < self.plan.requests
        return time.monotonic() - self.began < (self.plan.seconds or 0.0)

    def rest(self, now: float) -> float:
        """How long the next request has to wait. One that is late is sent at once, and the rate is caught up with."""
        if self.plan.per_second is None:
            return self.plan.pause
        return max(self.began + self.sent / self.plan.per_second - now, 0.0)


def _nowhere(_request: bytes) -> None:
    raise ConnectionError("not connected yet")


class _Client(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self._load = load
        self._pending = b""
        self._sent_at = 0.0
        self._write: Callable[[bytes], None] = _nowhere

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.Transport", transport).write

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._load.done.done():
            self._load.done.set_exception(exc or ConnectionError("the server closed a connection"))

    def send(self) -> None:
        load = self._load
        request = load.build(load.sent)
        load.sent += 1
        self._sent_at = time.monotonic()
        self._write(request)

    def data_received(self, data: bytes) -> None:
        if self._pending:
            data = self._pending + data
        head_end = data.find(b"\r\n\r\n")
        if head_end < 0:
            self._pending = data
            return
        mark = data.find(b"content-length: ") + 16
        length = int(data[mark : data.find(b"\r\n", mark)])
        if len(data) < head_end + 4 + length:
            self._pending = data
            return
        self._pending = b""
        self._take(data[9:12], data[head_end + 4 :])

    def _take(self, status: bytes, body: bytes) -> None:
        load = self._load
        load.ended = time.monotonic()
        load.latencies.append(load.ended - self._sent_at)
        load.statuses[status] += 1
        load.bodies.append((self._sent_at, body))
        if not load.has_more():
            load.open -= 1
            if not load.open and not load.done.done():
                load.done.set_result(None)
        elif rest := load.rest(load.ended):
            asyncio.get_running_loop().call_later(rest, self.send)
        else:
            self.send()


async def _drive(plan: Plan) -> Load:
    loop = asyncio.get_running_loop()
    load = Load(plan)
    opened = [await loop.create_connection(lambda: _Client(load), "127.0.0.1", plan.port) for _ in range(plan.clients)]
    load.open = plan.clients
    load.began, used = time.monotonic(), time.process_time()
    for _, client in opened:
        client.send()
    await load.done
    load.cpu_seconds = time.process_time() - used
    return load


def _report(load: Load) -> Report:
    decode = msgspec.json.Decoder(_Answer).decode
    report = Report(
        requests=len(load.latencies),
        seconds=load.ended - load.began,
        cpu_seconds=load.cpu_seconds,
        p50_ms=percentile(load.latencies, 0.5) * 1000,
        p99_ms=percentile(load.latencies, 0.99) * 1000,
        statuses={status.decode(): count for status, count in load.statuses.items()},
    )
    if load.statuses.keys() != {b"202"}:
        return report
    for sent_at, body in load.bodies:
        answer = decode(body)
        report.recipients += answer.total_recipients
        report.accepted += answer.accepted
        report.rejected += answer.rejected
        if load.plan.is_traced:
            report.traces.append(Trace(answer.batch_id, sent_at))
    return report


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        driven = runner.run(_drive(given))
    sys.stdout.buffer.write(msgspec.json.encode(_report(driven)))
