"""Waiting by the Clock alone, so that the same code runs in real and in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from noroshi.ports.clock import Clock

T = TypeVar("T")


class LateError(Exception):
    """The work was not done in time; it was cancelled."""


async def within(clock: Clock, span: timedelta, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or LateError after `span`. Work that resists its cancellation is not waited for."""
    working = asyncio.ensure_future(work)
    alarm = asyncio.ensure_future(clock.sleep(span))
    try:
        await asyncio.wait((working, alarm), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise LateError
        return working.result()
    finally:
        alarm.cancel()
        if not working.done():
            working.add_done_callback(_forget)
            working.cancel()


async def signalled(signal: asyncio.Event, clock: Clock, span: timedelta | None) -> bool:
    """Waits for the signal, at most for `span` (None: for ever); whether it came."""
    if signal.is_set():
        return True
    if span is None:
        return await signal.wait()
    waiting = asyncio.ensure_future(signal.wait())
    alarm = asyncio.ensure_future(clock.sleep(span))
    try:
        await asyncio.wait((waiting, alarm), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        alarm.cancel()
    return signal.is_set()


async def repeat(
    turn: Callable[[], Awaitable[object]],
    clock: Clock,
    span: timedelta,
    closing: asyncio.Event,
    on_error: Callable[[Exception], None],
) -> None:
    """Takes a turn every `span` until the closing signal; an exception costs one turn, never the loop."""
    while not await signalled(closing, clock, span):
        try:
            await turn()
        except Exception as error:  # noqa: BLE001 - the round outlives every error
            on_error(error)


def _forget(work: asyncio.Future[Any]) -> None:
    """Collects a result that nobody waits for any more, so that asyncio does not complain of it."""
    if not work.cancelled():
        work.exception()
