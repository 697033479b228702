"""The pool: sessions with the relay are lent and given back, no more than so many at a time; idle ones are closed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from heapq import heappop, heappush

from noroshi.domain.outcomes import Misconfigured
from noroshi.flow.send.email.smtp.opening import RefusedError
from noroshi.flow.send.email.smtp.session import Session
from noroshi.ports.clock import Clock

IDLE_FOR = timedelta(seconds=10)
"""Shorter than any relay's patience, long enough to bridge the pauses of a busy lane."""


class Pool:
    """Whoever is most urgent (the lowest rank) is served first. A relay that refuses one connection more is not asked
    for another as long as there are others to wait for."""

    def __init__(self, open_session: Callable[[], Awaitable[Session]], most: int, clock: Clock) -> None:
        self._open_session = open_session
        self._most = self._ceiling = most
        self._clock = clock
        self._idle: list[Session] = []
        self._count = 0
        self._waiting: list[tuple[int, int, asyncio.Future[Session | None]]] = []
        self._tickets = 0
        self._keeper: asyncio.Task[None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether a session is to be had without waiting for another to come back."""
        return bool(self._idle) or self._count < self._ceiling

    def is_wanted(self, rank: int) -> bool:
        """Whether somebody more urgent than `rank` waits."""
        while self._waiting and self._waiting[0][2].done():
            heappop(self._waiting)
        return bool(self._waiting) and self._waiting[0][0] < rank

    async def lend(self, rank: int) -> Session:
        """Raises RefusedError if there is no session and none can be opened."""
        while True:
            while self._idle:
                session = self._idle.pop()
                if session.is_usable:
                    return session
                self.drop(session)
            added = await self._add() if self._count < self._ceiling else None
            lent = added or await self._turn(rank)
            if lent is not None:
                return lent

    def take_back(self, session: Session) -> None:
        """Whoever waits gets it from hand to hand: the one who gave it back must not be quicker."""
        if not session.is_usable or session.underway:
            self.drop(session)
            return
        if self._wake(session):
            return
        session.idle_since = self._clock.monotonic()
        self._idle.append(session)
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._close_idle())

    def drop(self, session: Session) -> None:
        session.abort()
        self._forget_one()

    async def _add(self) -> Session | None:
        """None if the relay wants no more than those it has: wait for one of them."""
        self._count += 1
        try:
            return await self._open_session()
        except RefusedError as error:
            self._forget_one()
            if not self._count or isinstance(error.outcome, Misconfigured):
                raise
            self._ceiling = self._count
            return None
        except BaseException:
            self._forget_one()
            raise

    def _forget_one(self) -> None:
        self._count -= 1
        if not self._count:
            self._ceiling = self._most
        self._wake()

    async def _turn(self, rank: int) -> Session | None:
        """A session that came back, or None: there is room for one more."""
        self._tickets += 1
        turn: asyncio.Future[Session | None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, self._tickets, turn))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was our turn: let it not be lost
                session = turn.result()
                self._wake() if session is None else self.take_back(session)
            raise

    def _wake(self, session: Session | None = None) -> bool:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(session)
                return True
        return False

    async def _close_idle(self) -> None:
        """Runs while there are idle sessions; whoever ends it ends them too."""
        try:
            while self._idle:
                await self._clock.sleep(IDLE_FOR)
                stale = self._clock.monotonic() - IDLE_FOR.total_seconds()
                while self._idle and self._idle[0].idle_since <= stale:
                    self._close(self._idle.pop(0))
        finally:
            while self._idle:
                self._close(self._idle.pop())

    def _close(self, session: Session) -> None:
        session.quit()
        self._forget_one()

    async def close(self) -> None:
        """Closes what is idle; what is lent is closed when it comes back."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        while self._idle:
            self._close(self._idle.pop())
