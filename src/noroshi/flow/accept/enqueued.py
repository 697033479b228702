"""Enqueued requests in, batches out: how each is prepared, and the watch that tells the intake when some wait."""

import asyncio
from collections.abc import Callable, Collection
from datetime import timedelta

import structlog

from noroshi.domain.batches import NewBatch
from noroshi.domain.enqueued import Enqueued
from noroshi.domain.ids import batch_id_for
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import Caller, NotificationRequest
from noroshi.flow.accept.prepare import prepare
from noroshi.ports.clock import Clock
from noroshi.ports.meter import Meter
from noroshi.ports.requests import PrepareEnqueued, Requests

EVERY = timedelta(milliseconds=250)
_SECOND = 1_000_000

_log = structlog.get_logger(__name__)


def preparing(served: Collection[str]) -> PrepareEnqueued:
    """`served`: the channels that some provider serves."""

    def prepare_one(
        enqueued: Enqueued, request: NotificationRequest, template_channels: tuple[str, ...], now: Instant
    ) -> NewBatch:
        caller = Caller(enqueued.tenant, enqueued.created_by, enqueued.created_by, frozenset())
        batch_id = batch_id_for(enqueued.request_id, now // 1000)
        try:
            return prepare(caller, request, request.idempotency_key, template_channels, served, now, batch_id)
        except ProblemError:
            raise
        except Exception as bug:
            # It would be met again at every turn, and every other request waits behind it: a person must look.
            _log.error("enqueued_request_failed", error=type(bug).__name__)
            raise ProblemError("internal", f"it could not be prepared ({type(bug).__name__})") from bug

    return prepare_one


class EnqueuedWatch:
    """Asks the store four times a second whether a request waits, and calls `tell` if so. Nothing announces one: the
    caller's transaction must not pay for it, and only a look at the state finds what committed late (W6)."""

    def __init__(self, requests: Requests, tell: Callable[[], None], clock: Clock, meter: Meter) -> None:
        self._requests = requests
        self._tell = tell
        self._clock = clock
        self._meter = meter
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._look_for_ever(), name="enqueued")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def look(self) -> None:
        oldest = await self._requests.oldest_waiting()
        age = 0 if oldest is None else max(self._clock.now() - oldest, 0)
        self._meter.gauge("notification_oldest_request_seconds", age / _SECOND)
        if oldest is not None:
            self._tell()

    async def _look_for_ever(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - the next look may succeed; what waits goes on waiting
                _log.error("enqueued_look_failed", error=type(error).__name__)
            await self._clock.sleep(EVERY)
