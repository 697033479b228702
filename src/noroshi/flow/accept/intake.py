"""Batches from many callers in; one turn of the store for all that arrived during the last commit; answers out."""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta

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
_TURN_SECONDS = 0.018
"""What a turn should take: the store must never be held longer than 25 ms."""

_NEW_BATCHES_A_TURN = 256

_POLL = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


class _Waiting:
    """A call that waits for its batch: kept first, then decided."""

    __slots__ = ("batch", "decided", "kept")

    def __init__(self, batch: NewBatch, loop: asyncio.AbstractEventLoop) -> None:
        self.batch = batch
        self.kept: asyncio.Future[Earlier | None] = loop.create_future()
        self.decided: asyncio.Future[Progress] = loop.create_future()


class Intake:
    """The loop that keeps and addresses, and takes in what callers have enqueued. `announce` is told which lanes got
    deliveries, `report_dead` what was dead-lettered, by (lane, code), `report_refused` which enqueued requests died,
    by code."""

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
        self._arrived: deque[_Waiting] = deque()
        self._undecided: dict[BatchId, tuple[_Waiting, Progress]] = {}
        self._wake = asyncio.Event()
        self._next_due_at: Instant | None = None
        self._slice = LARGEST_SLICE // 2
        self._is_stopping = False
        self._may_have_enqueued = True  # what was enqueued while nobody served
        self._loop_task: asyncio.Task[None] | None = None
        self.unfinished = 0

    async def start(self) -> None:
        self._wake.set()  # what a crash left undecided is due at once
        self._loop_task = asyncio.create_task(self._run(), name="intake")

    async def stop(self) -> None:
        """Keeps what has arrived, then ends; what is undecided is finished at the next start."""
        self._is_stopping = True
        self._wake.set()
        if self._loop_task is not None:
            await self._loop_task

    async def keep(self, batch: NewBatch) -> tuple[Earlier | None, Progress]:
        """Answers once the batch is durable and decided, or undecided after two seconds. With `Earlier` nothing
        was kept; a winner that is being decided here at this moment has then been waited for."""
        waiting = self._enqueue(batch)
        earlier = await waiting.kept
        if earlier is None:
            return None, await self._decision(waiting)
        racing = self._undecided.get(earlier.batch_id)
        if racing is not None:
            await self._decision(racing[0])
        return earlier, Progress(0)

    async def _decision(self, waiting: _Waiting) -> Progress:
        """How far the batch is decided after two seconds at most. The first to give up ends the wait for all who
        race for the key: they must hear the same."""
        decided = waiting.decided
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
        self._wake.set()
        return waiting

    def wake(self) -> None:
        """Something may be due that was not announced."""
        self._wake.set()

    def take_enqueued(self) -> None:
        """A caller has enqueued something, or a dead request is to be tried again."""
        self._may_have_enqueued = True
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._rest()
            self._wake.clear()
            if self._is_stopping and not self._arrived:
                return
            try:
                is_taking = self._is_free_to_take()
                if self._arrived or not is_taking:
                    await self._turn()
                if is_taking:
                    await self._take_enqueued()
            except Exception as error:  # noqa: BLE001 - the loop outlives any one slice; what is due stays due
                self._meter.count("notification_processing_errors_total", stage="address")
                _log.error("address_turn_failed", error=type(error).__name__)
                await self._clock.sleep(_POLL)
                self._wake.set()

    async def _rest(self) -> None:
        """Until a call arrives, something falls due, or a second has passed (the net under lost wake-ups)."""
        if self._wake.is_set():
            return
        span = _POLL
        if self._next_due_at is not None:
            span = min(span, timedelta(microseconds=max(self._next_due_at - self._clock.now(), 0)))
        timer = asyncio.ensure_future(self._clock.sleep(span))
        woken = asyncio.ensure_future(self._wake.wait())
        await asyncio.wait([timer, woken], return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        woken.cancel()

    async def _turn(self) -> None:
        count = min(len(self._arrived), _NEW_BATCHES_A_TURN)
        calls = [self._arrived.popleft() for _ in range(count)]
        new = [call.batch for call in calls]
        is_urgent = any(batch.head.priority is Priority.CRITICAL for batch in new)
        started = self._clock.monotonic()
        try:
            turn = await self._batches.keep(new, self._slice, self._decide, is_urgent=is_urgent)
        except Exception as failure:
            for call in calls:
                if not call.kept.done():
                    call.kept.set_exception(failure)
            if not calls:
                raise
            return
        self._size_slice(turn, self._clock.monotonic() - started)
        self._answer(calls, turn)
        self._count([batch for batch, earlier in zip(new, turn.earlier, strict=True) if earlier is None], turn)
        self._go_on(turn)

    def _is_free_to_take(self) -> bool:
        """Asked once a round: the watch tells again of what is left waiting."""
        may_have, self._may_have_enqueued = self._may_have_enqueued, False
        return may_have and not self._is_stopping and self.unfinished < self._max_unfinished

    async def _take_enqueued(self) -> None:
        """A turn of its own: whatever is wrong with it, no call suffers."""
        try:
            turn = await self._batches.keep((), self._slice, self._decide, prepare=self._prepare)
        except Exception as error:  # noqa: BLE001 - what waits goes on waiting
            self._meter.count("notification_processing_errors_total", stage="accept")
            _log.error("taking_enqueued_failed", error=type(error).__name__)
            return
        self._may_have_enqueued = turn.has_more_enqueued
        self._answer([], turn)
        self._count(turn.enqueued, turn)
        self._meter.count("notification_requests_taken_total", len(turn.enqueued))
        if turn.refused:
            self._report_refused(turn.refused)
        self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        if turn.lanes:
            self._announce(turn.lanes)
        if turn.dead:
            self._report_dead(turn.dead)
        self._next_due_at = turn.next_due_at
        if self._arrived or turn.has_more or self._may_have_enqueued or self._is_stopping:
            self._wake.set()

    def _size_slice(self, turn: Turn, seconds: float) -> None:
        """Larger slices while turns are short, smaller ones when they are not: disks and populations differ."""
        if turn.decided >= self._slice // 2:
            wanted = self._slice * _TURN_SECONDS / max(seconds, 0.001)
            self._slice = int(min(max((self._slice + wanted) / 2, SMALLEST_SLICE), LARGEST_SLICE))

    def _answer(self, calls: list[_Waiting], turn: Turn) -> None:
        for call, earlier in zip(calls, turn.earlier, strict=True):
            if not call.kept.done():
                call.kept.set_result(earlier)
            if earlier is not None:
                continue
            batch_id = call.batch.head.batch_id
            progress = turn.progress.pop(batch_id)
            if progress.undecided and not call.batch.is_scheduled:
                self._undecided[batch_id] = (call, progress)
            else:
                call.decided.set_result(progress)
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
            if not call.decided.done():
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
        for batch in kept:
            meter.count("notification_batches_created_total")
            meter.observe("notification_batch_size", len(batch.user_ids))
