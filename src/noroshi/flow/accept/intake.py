"""Batches from many callers in; one turn of the store for all that arrived during the last commit; answers out."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import structlog

from noroshi.domain.batches import Earlier, NewBatch, Progress
from noroshi.domain.ids import BatchId
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.priorities import Priority
from noroshi.domain.problems import ProblemError
from noroshi.domain.reasons import Reason
from noroshi.ports.batches import Batches, Decide, Turn
from noroshi.ports.clock import Clock
from noroshi.ports.meter import Meter
from noroshi.ports.requests import PrepareEnqueued

ANSWER_WAIT = timedelta(seconds=2)
"""How long an answer waits for its batch to be decided; what is left then is undecided."""

LARGEST_SLICE = 500
SMALLEST_SLICE = 50
_TURN_SECONDS = 0.012
"""What a turn should take: the store must never be held longer than 25 ms."""

_LARGEST_BESIDE = 1_000
_SMALLEST_BESIDE = 250
_BESIDE_SECONDS = 0.1
"""What a turn should take that nobody's call is part of and that others run beside: it keeps nothing waiting but what
is for the same people."""

_GROWTH = 1.2
_NEW_BATCHES_A_TURN = 256
_ATTACHED_A_TURN = 2_000_000
"""Bytes after which no further batch joins a turn."""

_TURNS_AT_ONCE = 2
_NOT_WORTH_PARTING = 16
_NEARLY = 0.9
"""Asked for all, one client that is late made everybody wait; asked for half, turns became small."""

_POLL = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


class _Waiting:
    """A call that waits for its batch. `kept` is answered with the decision if that was made at once; else `decided`
    is made and answered later."""

    __slots__ = ("batch", "decided", "kept")

    def __init__(self, batch: NewBatch, loop: asyncio.AbstractEventLoop) -> None:
        self.batch = batch
        self.kept: asyncio.Future[Earlier | Progress | None] = loop.create_future()
        self.decided: asyncio.Future[Progress] | None = None

    def begin_waiting(self) -> None:
        """It is kept, but not decided."""
        self.decided = self.kept.get_loop().create_future()
        self.keep(None)

    def keep(self, result: Earlier | Progress | None) -> None:
        if not self.kept.done():
            self.kept.set_result(result)


class _Slice:
    """How many recipients a turn decides: more while turns are short, fewer when they are not, for disks and
    populations differ. Little by little: of two that shared a commit the second seems to have taken no time."""

    __slots__ = ("_largest", "_seconds", "_smallest", "size")

    def __init__(self, smallest: int, largest: int, seconds: float) -> None:
        self.size = largest // 2
        self._smallest = smallest
        self._largest = largest
        self._seconds = seconds

    def learn(self, decided: int, seconds: float) -> None:
        if decided >= self.size // 2:
            wanted = self.size * min(self._seconds / max(seconds, 0.001), _GROWTH)
            self.size = int(min(max((self.size + wanted) / 2, self._smallest), self._largest))


class Intake:
    """The loop that keeps and addresses, and takes in what callers have enqueued. `announce` is told which lanes got
    deliveries, `report_dead` what was dead-lettered, by (lane, code), `report_refused` which enqueued requests died,
    by code. Where the store does several turns `side_by_side`, two are at what is undecided."""

    def __init__(
        self,
        batches: Batches,
        decide: Decide,
        announce: Callable[[set[Lane]], None],
        report_dead: Callable[[dict[tuple[Lane, str], int]], None],
        prepare: PrepareEnqueued,
        report_refused: Callable[[dict[str, int]], None],
        clock: Clock,
        meter: Meter,
        *,
        max_waiting: int,
        max_unfinished: int,
        side_by_side: bool = False,
    ) -> None:
        self._batches = batches
        self._decide = decide
        self._announce = announce
        self._report_dead = report_dead
        self._prepare = prepare
        self._report_refused = report_refused
        self._clock = clock
        self._meter = meter
        self._max_waiting = max_waiting
        self._max_unfinished = max_unfinished
        self._side_by_side = side_by_side
        self._has_more = False
        self._arrived: deque[_Waiting] = deque()
        self._undecided: dict[BatchId, tuple[_Waiting, Progress]] = {}
        self._moved = asyncio.Event()
        self._is_wanted = False
        self._next_due_at: Instant | None = None
        self._slice = _Slice(SMALLEST_SLICE, LARGEST_SLICE, _TURN_SECONDS)
        self._slice_beside = _Slice(_SMALLEST_BESIDE, _LARGEST_BESIDE, _BESIDE_SECONDS)
        self._turns: set[asyncio.Task[None]] = set()
        self._last_told: asyncio.Future[None]
        self._under_way = 0
        self._answering = 0
        self._last_end = 0.0
        self._is_stopping = False
        self._may_have_enqueued = True  # what was enqueued while nobody served
        self._loop_task: asyncio.Task[None] | None = None
        self.unfinished = 0

    async def start(self) -> None:
        self._last_told = asyncio.get_running_loop().create_future()
        self._last_told.set_result(None)
        self.wake()  # what a crash left undecided is due at once
        self._loop_task = asyncio.create_task(self._run(), name="intake")

    async def stop(self) -> None:
        """Keeps what has arrived, then ends; what is undecided is finished at the next start."""
        self._is_stopping = True
        self._moved.set()
        if self._loop_task is not None:
            await self._loop_task

    async def keep(self, batch: NewBatch) -> tuple[Earlier | None, Progress]:
        """Answers once the batch is durable and decided, or undecided after two seconds. With `Earlier` nothing
        was kept; a winner that is being decided here at this moment has then been waited for."""
        waiting = self._enqueue(batch)
        result = await waiting.kept
        if isinstance(result, Progress):
            return None, result
        if result is None:
            return None, await self._decision(waiting)
        if result.batch_id not in self._undecided:
            # Of two turns under way the later may have got the key, and is told after the one that lost it.
            await asyncio.wait((self._last_told,))
        racing = self._undecided.get(result.batch_id)
        if racing is not None:
            await self._decision(racing[0])
        return result, Progress(0)

    async def _decision(self, waiting: _Waiting) -> Progress:
        """How far the batch is decided after two seconds at most. The first to give up ends the wait for all who
        race for the key: they must hear the same."""
        decided = waiting.decided
        assert decided is not None  # noqa: S101 - it is waited for only when it was not decided at once
        if not decided.done():
            timer = asyncio.ensure_future(self._clock.sleep(ANSWER_WAIT))
            either: list[asyncio.Future[Progress] | asyncio.Future[None]] = [decided, timer]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
        if not decided.done():
            _, so_far = self._undecided.pop(waiting.batch.head.batch_id)
            decided.set_result(so_far)
        return decided.result()

    def _enqueue(self, batch: NewBatch) -> _Waiting:
        if self._is_stopping:
            raise ProblemError("overloaded", "the server is stopping", retry_after=timedelta(seconds=5))
        if len(self._arrived) >= self._max_waiting:
            raise ProblemError("overloaded", "too many calls are waiting", retry_after=timedelta(seconds=1))
        if self.unfinished >= self._max_unfinished:
            raise ProblemError("overloaded", "too many deliveries are unfinished", retry_after=timedelta(seconds=30))
        waiting = _Waiting(batch, asyncio.get_running_loop())
        self._arrived.append(waiting)
        self._is_wanted = True
        if self._is_worth_a_turn():  # else the end of a turn under way wakes the loop
            self._moved.set()
        return waiting

    def wake(self) -> None:
        """A turn is wanted: something has arrived, or may be due."""
        self._is_wanted = True
        self._moved.set()

    def take_enqueued(self) -> None:
        """A caller has enqueued something, or a dead request is to be tried again."""
        self._may_have_enqueued = True
        self.wake()

    async def _run(self) -> None:
        while self._arrived or not self._is_stopping:
            if self._is_wanted and self._is_worth_a_turn():
                self._begin_turn()
                self._is_wanted = bool(self._arrived) or (self._has_more and self._side_by_side)
            else:
                await self._rest()
        await asyncio.gather(*self._turns)

    def _is_worth_a_turn(self) -> bool:
        """Where turns run side by side, those for what is undecided keep no call waiting."""
        if self._are_calls_worth_a_turn():
            return True
        beside = len(self._turns) - self._answering
        return not self._turns or (self._side_by_side and self._has_more and beside < _TURNS_AT_ONCE)

    def _are_calls_worth_a_turn(self) -> bool:
        """While the store is at one turn the next is made ready, so that neither waits for the other; but only of
        nearly as many calls as are under way, or there would be many small ones."""
        under_way = self._answering if self._side_by_side else len(self._turns)
        if not self._arrived or under_way >= _TURNS_AT_ONCE:
            return False
        return not under_way or len(self._arrived) >= self._under_way * _NEARLY

    def _begin_turn(self) -> None:
        is_taking = self._is_free_to_take()
        if self._arrived or not is_taking:
            wanted = self._share() if self._are_calls_worth_a_turn() else 0
            calls = self._take_calls(min(len(self._arrived), wanted, _NEW_BATCHES_A_TURN))
            self._turns.add(asyncio.create_task(self._see_through(self._turn(calls), len(calls))))
            self._under_way += len(calls)
            self._answering += len(calls) > 0
        if is_taking:
            self._turns.add(asyncio.create_task(self._see_through(self._take_enqueued(), 0)))

    def _take_calls(self, count: int) -> list[_Waiting]:
        """Fewer, and one at least, if they have much attached: a turn must not hold the store for long."""
        calls: list[_Waiting] = []
        attached = 0
        while len(calls) < count and attached < _ATTACHED_A_TURN:
            calls.append(self._arrived.popleft())
            attached += sum(map(len, calls[-1].batch.contents))
        return calls

    def _share(self) -> int:
        """Of all who call at this moment, half: while the store is at their turn the answers of the other half go out
        and their next calls come in. With all in one turn, store and server would wait for each other by turns."""
        return max((len(self._arrived) + self._under_way + 1) // _TURNS_AT_ONCE, _NOT_WORTH_PARTING)

    async def _see_through(self, turn: Coroutine[Any, Any, bool], calls: int) -> None:
        try:
            has_more = await turn
        except Exception as error:  # noqa: BLE001 - the loop outlives any one slice; what is due stays due
            self._meter.count("notification_processing_errors_total", stage="address")
            _log.error("address_turn_failed", error=type(error).__name__)
            await self._clock.sleep(_POLL)
            has_more = True
        self._under_way -= calls
        self._answering -= calls > 0
        self._turns = {turn for turn in self._turns if turn is not asyncio.current_task()}
        self._is_wanted = self._is_wanted or has_more
        self._moved.set()

    @contextmanager
    def _in_order(self) -> Iterator[asyncio.Future[None]]:
        """Around a turn, from asking the store to telling the answers; gives what to await before telling. They are
        told in the order of their commits: who races for a key must find the winner among those who wait."""
        before, told = self._last_told, asyncio.get_running_loop().create_future()
        self._last_told = told
        try:
            yield before
        finally:
            if not told.done():
                told.set_result(None)

    async def _rest(self) -> None:
        """Until a call arrives, a turn ends, something falls due, or a second has passed (the net under lost
        wake-ups)."""
        if self._turns or self._moved.is_set():
            await self._moved.wait()
        else:
            span = _POLL
            if self._next_due_at is not None:
                span = min(span, timedelta(microseconds=max(self._next_due_at - self._clock.now(), 0)))
            timer = asyncio.ensure_future(self._clock.sleep(span))
            moved = asyncio.ensure_future(self._moved.wait())
            await asyncio.wait([timer, moved], return_when=asyncio.FIRST_COMPLETED)
            self._is_wanted = self._is_wanted or timer.done()
            timer.cancel()
            moved.cancel()
        self._moved.clear()

    async def _turn(self, calls: list[_Waiting]) -> bool:
        """Whether another should follow at once."""
        if self._side_by_side and not calls:
            return await self._turn_beside()
        new = [call.batch for call in calls]
        with self._in_order() as before:
            # Beside another turn nothing is urgent: it would be committed first, and the order would be lost.
            is_urgent = before.done() and any(batch.head.priority is Priority.CRITICAL for batch in new)
            began = self._clock.monotonic()
            try:
                turn = await self._batches.keep(new, self._slice.size, self._decide, is_urgent=is_urgent)
            except Exception as failure:
                for call in calls:
                    if not call.kept.done():
                        call.kept.set_exception(failure)
                if not calls:
                    raise
                return True
            await before
            ended = self._clock.monotonic()
            self._slice.learn(turn.decided, ended - max(began, self._last_end))
            self._last_end = ended
            self._answer(calls, turn)
        if calls:
            self._meter.observe("accept_group_size", len(calls))
        self._count([batch for batch, earlier in zip(new, turn.earlier, strict=True) if earlier is None], turn)
        return self._go_on(turn)

    async def _turn_beside(self) -> bool:
        """For what is undecided, while calls have turns of their own: they never wait for this one."""
        began = self._clock.monotonic()
        turn = await self._batches.keep((), self._slice_beside.size, self._decide, is_beside=True)
        self._slice_beside.learn(turn.decided, self._clock.monotonic() - began)
        # Whose batch this went on with must be among those who wait, before it is told.
        await asyncio.wait((self._last_told,))
        self._answer([], turn)
        self._count([], turn)
        return self._go_on(turn)

    def _is_free_to_take(self) -> bool:
        """Asked once a round: the watch tells again of what is left waiting."""
        may_have, self._may_have_enqueued = self._may_have_enqueued, False
        return may_have and not self._is_stopping and self.unfinished < self._max_unfinished

    async def _take_enqueued(self) -> bool:
        """A turn of its own: whatever is wrong with it, no call suffers."""
        with self._in_order() as before:
            try:
                turn = await self._batches.keep((), self._slice.size, self._decide, prepare=self._prepare)
            except Exception as error:  # noqa: BLE001 - what waits goes on waiting
                self._meter.count("notification_processing_errors_total", stage="accept")
                _log.error("taking_enqueued_failed", error=type(error).__name__)
                return False
            await before
            self._answer([], turn)
        self._may_have_enqueued = self._may_have_enqueued or turn.has_more_enqueued
        self._count(turn.enqueued, turn)
        self._meter.count("notification_requests_taken_total", len(turn.enqueued))
        if turn.refused:
            self._report_refused(turn.refused)
        return self._go_on(turn)

    def _go_on(self, turn: Turn) -> bool:
        """Whether another should follow at once."""
        if turn.lanes:
            self._announce(turn.lanes)
        if turn.dead:
            self._report_dead(turn.dead)
        self._next_due_at = turn.next_due_at
        self._has_more = turn.has_more
        return bool(self._arrived) or turn.has_more or self._may_have_enqueued

    def _answer(self, calls: list[_Waiting], turn: Turn) -> None:
        for call, earlier in zip(calls, turn.earlier, strict=True):
            if earlier is not None:
                call.keep(earlier)
                continue
            batch_id = call.batch.head.batch_id
            progress = turn.progress.pop(batch_id)
            if progress.undecided and not call.batch.is_scheduled:
                self._undecided[batch_id] = (call, progress)
                call.begin_waiting()
            else:
                call.keep(progress)
        for batch_id, progress in turn.progress.items():
            self._continue(batch_id, progress)

    def _continue(self, batch_id: BatchId, progress: Progress) -> None:
        known = self._undecided.get(batch_id)
        if known is None:
            return
        call, so_far = known
        so_far.accepted, so_far.rejected, so_far.reasons = progress.accepted, progress.rejected, progress.reasons
        so_far.rejections.extend(progress.rejections[: 101 - len(so_far.rejections)])
        if not so_far.undecided:
            del self._undecided[batch_id]
            if call.decided is not None and not call.decided.done():
                call.decided.set_result(so_far)

    def _count(self, kept: list[NewBatch], turn: Turn) -> None:
        self.unfinished += turn.deliveries
        meter = self._meter
        meter.gauge("accept_waiting_calls", len(self._arrived))
        for (channel, reason), count in turn.noes.items():
            if reason == Reason.RATE_LIMITED:
                meter.count("notification_rate_limited_total", count, channel=channel)
            elif reason == Reason.TEMPLATE_MISSING:
                meter.count("notification_template_not_found_total", count, channel=channel)
        if kept:
            meter.count("notification_batches_created_total", len(kept))
        for batch in kept:
            meter.observe("notification_batch_size", len(batch.user_ids))
