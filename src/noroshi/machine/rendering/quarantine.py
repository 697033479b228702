"""Chunks that broke a child go in; each recipient comes out with its content or, if it was the guilty one, with why
it failed. Templates to be stored are checked here, too, since compiling can be a bomb as well."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from noroshi.domain.templates import TemplateVersion
from noroshi.machine.rendering.calls import CallItem
from noroshi.machine.rendering.orders import UNREADABLE, encoded
from noroshi.machine.rendering.process import BreachError, ChildCell
from noroshi.machine.rendering.protocol import Order

HOPELESS = 5
"""Breaches of one version, with no answer yet, after which the rest of its chunk is not tried: 500 recipients at
250 ms each would keep the quarantine for two minutes, to learn that a template is a bomb for everyone."""

_TRIES = 3
_MAX_SUSPECTS = 256


class _Pass(NamedTuple):
    """`left` have no answer; if there was a breach, the first of them was being rendered."""

    answered: int
    left: list[CallItem]
    breach: BreachError | None


class Quarantine:
    """Examines one chunk after another in a child of its own, which ends when nothing has come for `idle` seconds."""

    def __init__(self, deadline: float, idle: float) -> None:
        self.cell = ChildCell()
        self._deadline = deadline
        self._idle = idle
        self._chunks: deque[list[CallItem]] = deque()
        self._checks: deque[tuple[TemplateVersion, asyncio.Future[str | None]]] = deque()
        self._came = asyncio.Event()
        self._suspects: dict[int, None] = {}

    def admit(self, chunk: list[CallItem]) -> None:
        self._chunks.append(chunk)
        self._came.set()

    def sort_out(self, chunk: list[CallItem]) -> list[CallItem]:
        """Admits what is of a version found guilty before; the rest."""
        if not self._suspects:
            return chunk
        if suspicious := [item for item in chunk if item.job.template.row in self._suspects]:
            self.admit(suspicious)
        return [item for item in chunk if item.job.template.row not in self._suspects]

    async def check(self, template: TemplateVersion) -> str | None:
        """Before any chunk that waits."""
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._checks.append((template, answer))
        self._came.set()
        return await answer

    async def serve(self) -> None:
        """Runs until it is cancelled."""
        while True:
            if self._checks:
                await self._answer_check(*self._checks.popleft())
            elif self._chunks:
                await self._examine_chunk(self._chunks.popleft())
            else:
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        self._came.clear()
        try:
            async with asyncio.timeout(self._idle):
                await self._came.wait()
        except TimeoutError:
            await self.cell.clear()

    def fail_checks(self, error: Exception) -> None:
        while self._checks:
            _, answer = self._checks.popleft()
            if not answer.done():
                answer.set_exception(error)

    async def _answer_check(self, template: TemplateVersion, answer: asyncio.Future[str | None]) -> None:
        try:
            fault = await self._check(template)
        except Exception as error:  # noqa: BLE001 - whoever asked gets it
            await self.cell.clear()
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(fault)

    async def _check(self, template: TemplateVersion) -> str | None:
        lesson = encoded(template)
        if lesson is None:
            return UNREADABLE
        child = await self.cell.inhabited()
        child.send(Order(checks=[lesson]))
        try:
            return (await child.receive(self._deadline)).fault
        except BreachError as breach:
            await self.cell.clear()
            return f"the template cannot be compiled: {breach.reason}"

    async def _examine_chunk(self, chunk: list[CallItem]) -> None:
        """Version by version, since guilt is mostly a version's."""
        sections: dict[int, list[CallItem]] = {}
        for item in chunk:
            if not item.call.done.done():
                sections.setdefault(id(item.job.template), []).append(item)
        try:
            for section in sections.values():
                await self._examine(section)
        except Exception as error:  # noqa: BLE001 - nobody is left waiting, whatever broke
            await self.cell.clear()
            _fail_calls(chunk, error)

    async def _examine(self, items: list[CallItem]) -> None:
        """Renders items of one version until each is settled. The recipient that a child broke at is guilty at once
        if the breach is exact; else it is tried again, first in a fresh child, up to three times."""
        row = items[0].job.template.row
        answered = guilty = tries = 0
        while items:
            done = await self._render(items)
            answered += done.answered
            if done.breach is not None:
                tries = tries + 1 if done.left[0] is items[0] else 1
                if done.breach.is_exact or tries >= _TRIES:
                    done.left.pop(0).settle(done.breach.reason)
                    guilty += 1
                    tries = 0
                if guilty >= HOPELESS and not answered:
                    _settle_all(done.left, done.breach.reason)
                    done.left.clear()
            items = done.left
        self._remember(row, is_guilty=guilty > 0)

    async def _render(self, items: list[CallItem]) -> _Pass:
        """Streamed: the first item without an answer is the one at which the child broke."""
        child = await self.cell.inhabited()
        written = child.book.write(items, is_streamed=True)
        _settle_all(written.unreadable, UNREADABLE)
        if written.items:
            child.send(written.order)
        for number, item in enumerate(written.items):
            try:
                answer = await child.receive(self._deadline)
            except BreachError as breach:
                await self.cell.clear()
                return _Pass(number, written.items[number:] + written.left, breach)
            item.settle(answer.results[0])
        return _Pass(len(written.items), written.left, None)

    def _remember(self, row: int, *, is_guilty: bool) -> None:
        self._suspects.pop(row, None)
        if is_guilty:
            self._suspects[row] = None
        if len(self._suspects) > _MAX_SUSPECTS:
            del self._suspects[next(iter(self._suspects))]


def _settle_all(items: Iterable[CallItem], reason: str) -> None:
    for item in items:
        item.settle(reason)


def _fail_calls(items: Iterable[CallItem], error: Exception) -> None:
    for item in items:
        item.call.fail(error)
