"""The writer on the loop of a process that does nothing else: calls in, one commit for all that arrived during the last
one out, without a hand-over between threads."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from noroshi.storage.sqlite.checkpoints import Checkpoints
from noroshi.storage.sqlite.connection import BUSY_PATIENCE_MS
from noroshi.storage.sqlite.writer import CommitGroup, Job, Work, unavailable

T = TypeVar("T")

HELD_PATIENCE_MS = 20
"""How long the loop stands still for a foreign writer; between two looks at its lock it goes on."""

_LOOKS = BUSY_PATIENCE_MS // (2 * HELD_PATIENCE_MS)


class LoopWriter:
    """Implements storage/turns.py Turns. A turn holds the loop, so whatever is read meanwhile is answered after it: the
    answers of the last group go out before the next one is begun, and the log is moved after them."""

    def __init__(self, group: CommitGroup, checkpoints: Checkpoints, on_broken: Callable[[], None]) -> None:
        self._group = group
        self._checkpoints = checkpoints
        self._on_broken = on_broken
        self._urgent: deque[Job] = deque()
        self._usual: deque[Job] = deque()
        self._is_awaited = False
        self._is_closed = False
        self._looks = 0

    async def turn(self, name: str, work: Work[T], *, is_urgent: bool = False) -> T:
        if self._is_closed or self._group.is_broken:
            raise unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        job = Job(name, work, loop.create_future())
        (self._urgent if is_urgent else self._usual).append(job)
        self._come_round(loop)
        result: T = await job.future
        return result

    def _come_round(self, loop: asyncio.AbstractEventLoop, after: float = 0.0) -> None:
        if self._is_awaited:
            return
        self._is_awaited = True
        if after:
            loop.call_later(after, self._commit, loop)
        else:
            loop.call_soon(self._commit, loop)

    def _commit(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_awaited = False
        if self._is_closed or not (self._urgent or self._usual):
            return
        if not self._commit_group(may_come_back=self._looks < _LOOKS):
            self._looks += 1
            self._come_round(loop, HELD_PATIENCE_MS / 1000)
            return
        self._looks = 0
        loop.call_soon(self._look_after_the_log)
        if self._urgent or self._usual:
            self._come_round(loop)

    def _commit_group(self, *, may_come_back: bool) -> bool:
        """False: another process is writing, and everybody still waits."""
        jobs = [*self._urgent, *self._usual]
        count = self._group.commit(jobs, may_come_back=may_come_back)
        for _ in range(count):
            (self._urgent or self._usual).popleft()
        _answer(jobs[:count])
        if self._group.is_broken:
            self._abandon()
        return count > 0

    def _look_after_the_log(self) -> None:
        if not (self._is_closed or self._group.is_broken):
            self._group.checkpoint_if_large(self._checkpoints)
            if self._group.is_broken:
                self._abandon()

    def _abandon(self) -> None:
        left = [*self._urgent, *self._usual]
        self._urgent.clear()
        self._usual.clear()
        for job in left:
            job.error = unavailable("the disk failed before this was begun")
        _answer(left)
        self._on_broken()

    def close(self) -> None:
        """Commits what waits, then closes the file. Nobody needs the loop any more, so a foreign lock is waited for."""
        self._group.connection.set_busy_timeout(BUSY_PATIENCE_MS)
        while (self._urgent or self._usual) and not self._group.is_broken:
            self._commit_group(may_come_back=False)
        self._is_closed = True
        self._checkpoints.close(is_broken=self._group.is_broken)
        self._group.close()


def _answer(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.answer()
