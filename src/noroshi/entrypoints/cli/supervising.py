"""Supervising: what one process does in, several such processes until they are told to stop, one exit code out.

The parent has neither threads nor an event loop: it forks, and waits for signals. The first child starts alone, so that
migrations are done once and what is wrong with the settings is said once; then the others follow.
"""

import asyncio
import os
import signal
from collections.abc import Callable

import structlog
from msgspec import Struct

_READY = signal.SIGUSR1
_SIGNALS = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, _READY}
_SHORTEST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0

log = structlog.get_logger(__name__)


class Seat(Struct, frozen=True):
    """A child's place: its number, whether it is the first to have it, and a pipe that ends with the parent."""

    number: int
    is_new: bool
    lifeline: int

    def report_ready(self) -> None:
        os.kill(os.getppid(), _READY)

    def watch_parent(self, stop: Callable[[], None]) -> None:
        """Nobody restarts or ends a child whose parent was killed: it stops by itself."""
        loop = asyncio.get_running_loop()

        def bereaved() -> None:
            loop.remove_reader(self.lifeline)
            stop()

        loop.add_reader(self.lifeline, bereaved)


def supervise(count: int, work: Callable[[Seat], int], on_stop: Callable[[], None]) -> int:
    """Returns in the parent when all have ended, and in each child with the code of its own work. `on_stop` is called
    in the parent when the children are told to stop."""
    crew = _Crew(count, on_stop)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        seat = crew.run()
        while seat is None and signal.sigtimedwait(_SIGNALS, 0) is not None:
            pass  # what came too late to be obeyed must not end us when it is let in
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return crew.code if seat is None else work(seat)


class _Crew:
    """The children of one parent. A seat that falls vacant is filled after a pause, which grows while none comes up."""

    def __init__(self, count: int, on_stop: Callable[[], None]) -> None:
        self.code = 0
        self._on_stop = on_stop
        self._lifeline, self._held_end = os.pipe()
        self._children: dict[int, int] = {}
        self._due = [0]
        self._others = list(range(1, count))
        self._vacant: set[int] = set()
        self._seated: set[int] = set()
        self._pause = _SHORTEST_PAUSE
        self._has_begun = False
        self._is_stopping = False

    def run(self) -> Seat | None:
        """A seat in each child; None in the parent, at the end."""
        while self._due or self._children or self._vacant:
            while self._due:
                if (seat := self._fill(self._due.pop(0))) is not None:
                    return seat
            self._wait()
        return None

    def _fill(self, number: int) -> Seat | None:
        is_new = number not in self._seated
        pid = os.fork()
        if pid == 0:
            os.close(self._held_end)
            return Seat(number, is_new, self._lifeline)
        self._seated.add(number)
        self._children[pid] = number
        return None

    def _wait(self) -> None:
        news = signal.sigtimedwait(_SIGNALS, self._pause) if self._vacant else signal.sigwaitinfo(_SIGNALS)
        if news is None:
            self._due, self._vacant = sorted(self._vacant), set()
        elif news.si_signo == signal.SIGCHLD:
            self._bury()
        elif news.si_signo == _READY:
            self._begin()
        else:
            self._stop()

    def _begin(self) -> None:
        self._has_begun, self._pause = True, _SHORTEST_PAUSE
        if not self._is_stopping:
            self._due += self._others
        self._others = []

    def _bury(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number, code = self._children.pop(pid), os.waitstatus_to_exitcode(status)
            if self._is_stopping:
                self.code = self.code or max(code, 0)
            elif not self._has_begun:
                self.code = code if code > 0 else 1
                self._stop()
            else:
                log.warning("process_ended", pid=pid, number=number, code=code)
                self._vacant.add(number)
                self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _stop(self) -> None:
        """Always by SIGTERM: a second SIGINT, which a terminal sends to all, would make them drop their calls."""
        self._is_stopping = True
        self._due, self._others, self._vacant = [], [], set()
        for pid in self._children:
            os.kill(pid, signal.SIGTERM)
        self._on_stop()
