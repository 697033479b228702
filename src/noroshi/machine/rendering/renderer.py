"""Render jobs in, contents out, rendered by child processes that a template may wreck without hurting anyone.

Two children. All calls share the first, in chunks. A chunk that kills it, or keeps it too long, is examined in the
second, the quarantine, recipient by recipient, while a fresh first child goes on with everything else; only the
recipient found guilty fails. A version found guilty goes to the quarantine straight away, until a chunk of it comes
through unharmed.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from noroshi.domain.templates import Content, RenderFailure, TemplateVersion
from noroshi.machine.rendering.calls import Call, CallItem, CallQueue
from noroshi.machine.rendering.orders import UNREADABLE
from noroshi.machine.rendering.process import BreachError, ChildCell
from noroshi.machine.rendering.quarantine import Quarantine
from noroshi.ports.renderer import RenderJob

CHUNK = 500
DEADLINE = timedelta(seconds=2)
QUARANTINE_IDLE = timedelta(seconds=30)


class RendererStoppedError(Exception):
    """The renderer does not run, or was stopped before it answered."""


class ChildRenderer:
    """Implements the Renderer port. A call may be cancelled at any time. If no child can be started the calls that
    wait raise ChildStartError: that is no template's fault."""

    def __init__(self, deadline: timedelta = DEADLINE, quarantine_idle: timedelta = QUARANTINE_IDLE) -> None:
        self._deadline = deadline.total_seconds()
        self._queue = CallQueue()
        self._calls: set[Call] = set()
        self._came = asyncio.Event()
        self._cell = ChildCell()
        self._quarantine = Quarantine(self._deadline, quarantine_idle.total_seconds())
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """The first child is up when this returns; the quarantine's is started when it is needed."""
        await self._cell.inhabited()
        self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(self._quarantine.serve())]

    async def stop(self) -> None:
        """Ends the children; whoever still waits gets a RendererStoppedError."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        error = RendererStoppedError("the renderer was stopped")
        for call in self._calls:
            call.fail(error)
        self._quarantine.fail_checks(error)
        await self._cell.clear()
        await self._quarantine.cell.clear()

    def pids(self) -> list[int]:
        """The processes of the children that live now, the quarantine's last."""
        cells = (self._cell, self._quarantine.cell)
        return [cell.child.pid for cell in cells if cell.child is not None]

    async def render(self, jobs: Sequence[RenderJob]) -> list[Content | RenderFailure]:
        self._must_run()
        if not jobs:
            return []
        call = Call(jobs)
        self._calls.add(call)
        self._queue.add(call)
        self._came.set()
        try:
            return await call.done
        finally:
            self._calls.discard(call)

    async def check(self, template: TemplateVersion) -> str | None:
        self._must_run()
        return await self._quarantine.check(template)

    def _must_run(self) -> None:
        if not self._tasks:
            raise RendererStoppedError("the renderer does not run")

    async def _serve(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            while taken := self._queue.take(CHUNK):
                if chunk := self._quarantine.sort_out(taken):
                    await self._render_chunk(chunk)

    async def _render_chunk(self, chunk: list[CallItem]) -> None:
        try:
            await self._ask(chunk)
        except BreachError:
            await self._cell.clear()
            self._quarantine.admit(chunk)
        except Exception as error:  # noqa: BLE001 - nobody is left waiting, whatever broke
            await self._cell.clear()
            for item in chunk:
                item.call.fail(error)

    async def _ask(self, chunk: list[CallItem]) -> None:
        """Settles the chunk, or as much of it as came in one answer: the rest goes back to wait its turn."""
        child = await self._cell.inhabited()
        written = child.book.write(chunk)
        results: list[Content | str] = []
        if written.items:
            child.send(written.order)
            results = (await child.receive(self._deadline)).results
        for item, result in zip(written.items, results, strict=False):
            item.settle(result)
        for item in written.unreadable:
            item.settle(UNREADABLE)
        self._queue.put_back(written.items[len(results) :] + written.left)
