"""Following: a batch in; how it stands, again and again until nothing of it moves, out."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from noroshi.client.answers import BatchStatus
from noroshi.machine.clock import SystemClock
from noroshi.ports.clock import Clock

_FIRST_LOOK = timedelta(milliseconds=50)
_SELDOMEST = timedelta(seconds=1)
_ON_ITS_WAY = ("CREATED", "PROCESSING", "QUEUED", "SENDING", "FAILED", "RETRYING")


def is_moving(status: BatchStatus) -> bool:
    """Whether something will happen by itself before long: what waits for its time is not on its way."""
    return status.undecided > 0 or any(status.statuses.get(name) for name in _ON_ITS_WAY)


async def follow(
    look: Callable[[], Awaitable[BatchStatus]], within: timedelta, clock: Clock | None = None
) -> AsyncIterator[BatchStatus]:
    """Each look; the last one when nothing moves any more, or when the time is over."""
    clock = clock or SystemClock()
    ends_at = clock.monotonic() + within.total_seconds()
    pause = _FIRST_LOOK
    while True:
        status = await look()
        yield status
        left = timedelta(seconds=ends_at - clock.monotonic())
        if not is_moving(status) or left <= timedelta(0):
            return
        await clock.sleep(min(pause, left))
        pause = min(pause * 1.5, _SELDOMEST)
