"""Render calls go in, chunks that take from all of them come out; results find their way back."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from noroshi.domain.templates import Content, RenderFailure
from noroshi.ports.renderer import RenderJob

Result = Content | RenderFailure


class Call:
    """One call of `render`: `done` gets the results when the last one is there."""

    def __init__(self, jobs: Sequence[RenderJob]) -> None:
        self.jobs = jobs
        self.waiting = deque(range(len(jobs)))
        self.done: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
        self._results: list[Result] = [RenderFailure("")] * len(jobs)
        self._open = len(jobs)

    def settle(self, place: int, result: Result) -> None:
        self._results[place] = result
        self._open -= 1
        if not self._open and not self.done.done():
            self.done.set_result(self._results)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class CallItem:
    """One job of a call, on its way."""

    __slots__ = ("call", "job", "place")

    def __init__(self, call: Call, place: int) -> None:
        self.call = call
        self.place = place
        self.job = call.jobs[place]

    def settle(self, result: Content | str) -> None:
        """A string is why there is no content."""
        self.call.settle(self.place, RenderFailure(result) if isinstance(result, str) else result)


class CallQueue:
    """Calls take turns: a small one never waits for all of a large one."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()

    def add(self, call: Call) -> None:
        self._calls.append(call)

    def take(self, most: int) -> list[CallItem]:
        """Up to `most` items, an equal share from each call that waits; cancelled calls are dropped."""
        chunk: list[CallItem] = []
        while self._calls and len(chunk) < most:
            share = max(1, (most - len(chunk)) // len(self._calls))
            call = self._calls.popleft()
            if call.done.done():
                continue
            chunk += [CallItem(call, call.waiting.popleft()) for _ in range(min(share, len(call.waiting)))]
            if call.waiting:
                self._calls.append(call)
        return chunk

    def put_back(self, items: Iterable[CallItem]) -> None:
        for item in items:
            if not item.call.waiting:
                self._calls.append(item.call)
            item.call.waiting.append(item.place)
