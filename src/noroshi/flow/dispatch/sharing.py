"""Shared commits: judged claims of many flights go in; what waits while others are written shares the next commit."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Judged

MOST_TOGETHER = 200
"""Messages of one take or one shared commit: of more, one of their own costs each next to nothing."""

Write = Callable[[Sequence[Judged], Sequence[Alert]], Awaitable[None]]


class _Waiting(NamedTuple):
    judged: Sequence[Judged]
    alerts: Sequence[Alert]
    written: "asyncio.Future[None]"


class Sharing:
    """A provider that takes one message at a time would else have a commit for each. Nobody waits for company: whoever
    comes while no commit is under way is written at once."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: deque[_Waiting] = deque()
        self._is_writing = False
        self._writer: asyncio.Task[None] | None = None

    async def write(self, judged: Sequence[Judged], alerts: Sequence[Alert]) -> None:
        """Returns after the commit. What it raises is about these claims, not about those that shared the commit."""
        if len(judged) >= MOST_TOGETHER:
            await self._write(judged, alerts)
            return
        one = _Waiting(judged, alerts, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        if not self._is_writing:
            self._is_writing = True
            self._writer = asyncio.create_task(self._write_waiting())
        await one.written

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                await self._write_group(self._next_group())
        finally:
            self._is_writing = False

    async def _write_group(self, group: Sequence[_Waiting]) -> None:
        try:
            await self._write([j for one in group for j in one.judged], [a for one in group for a in one.alerts])
        except Exception as error:  # noqa: BLE001 - handed to whom it is about
            if len(group) == 1:
                _fail(group[0], error)
            else:  # what cannot be written must not keep its neighbours from it
                for one in group:
                    await self._write_group([one])
        else:
            for one in group:
                if not one.written.done():
                    one.written.set_result(None)

    def _next_group(self) -> list[_Waiting]:
        """Never two results of one delivery: whose claim holds is told by the commits' order."""
        group: list[_Waiting] = []
        keys: set[DeliveryKey] = set()
        while self._waiting:
            following = {j.settlement.key for j in self._waiting[0].judged}
            if group and (len(keys) + len(following) > MOST_TOGETHER or keys & following):
                break
            keys |= following
            group.append(self._waiting.popleft())
        return group


def _fail(one: _Waiting, error: Exception) -> None:
    if not one.written.done():
        one.written.set_exception(error)
