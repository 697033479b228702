"""The catcher as a channel: attempts go in and are kept, answers come out as good or bad as it was told to give."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from noroshi.domain.channels import CHANNELS
from noroshi.domain.deliveries import Attempt
from noroshi.domain.misbehaviour import Fault, Misbehaviour
from noroshi.domain.outcomes import Gone, Outcome, Retry, Scope, Sent, Unknown
from noroshi.flow.send.catcher.misbehaviour import Misbehaviours
from noroshi.flow.send.catcher.settings import CatcherSettings, read_settings
from noroshi.flow.send.parts import Off, Parts
from noroshi.ports.caught import Caught
from noroshi.ports.clock import Clock

_KEPT = frozenset({Fault.SLOW, Fault.DROP_ANSWER})
_BAD_ANSWERS: dict[Fault, Outcome] = {
    Fault.ERROR: Retry("SERVER_ERROR", "503 by order"),
    Fault.HANG: Unknown("TIMEOUT", "no answer by order"),
    Fault.DROP_ANSWER: Unknown("CONNECTION_LOST", "the answer was dropped by order"),
    Fault.GONE: Gone("UNREGISTERED", "gone by order"),
}


class Catcher:
    """Stands in for the given channels. What it takes is committed before it answers, so a crash in between
    looks to dispatch as it would with a real provider."""

    def __init__(
        self,
        caught: Caught,
        clock: Clock,
        channels: frozenset[str],
        *,
        account: str = "catcher",
        misbehaviours: Misbehaviours | None = None,
        settings: CatcherSettings | None = None,
    ) -> None:
        self.misbehaviours = misbehaviours if misbehaviours is not None else Misbehaviours()
        self._caught = caught
        self._clock = clock
        self._channels = channels
        self._account = account
        self._settings = settings if settings is not None else CatcherSettings()

    @property
    def account(self) -> str:
        return self._account

    @property
    def channels(self) -> frozenset[str]:
        return self._channels

    @property
    def max_batch(self) -> int:
        return self._settings.max_batch

    @property
    def attempt_timeout(self) -> timedelta:
        return self._settings.attempt_timeout

    @property
    def per_second(self) -> int | None:
        return self._settings.per_second

    def misbehave(self, order: Misbehaviour) -> None:
        self.misbehaviours.misbehave(order)

    def behave(self, channel: str | None = None) -> None:
        self.misbehaviours.behave(channel)

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        orders = [self.misbehaviours.next_for(a.lane.channel) for a in attempts]
        slowest = max((o.seconds for o in orders if o is not None and o.fault is Fault.SLOW), default=0.0)
        if slowest:
            await self._clock.sleep(timedelta(seconds=slowest))
        kept = [a for a, o in zip(attempts, orders, strict=True) if o is None or o.fault in _KEPT]
        if kept:
            await self._caught.keep_caught(kept)
        if any(o is not None and o.fault is Fault.HANG for o in orders):
            await asyncio.Event().wait()
        return [_answer(a, o) for a, o in zip(attempts, orders, strict=True)]

    def validate_target(self, address: str) -> str | None:  # noqa: ARG002
        return None


def open_catcher(parts: Parts) -> Sequence[Catcher] | Off:
    """One account a channel, so that misbehaviour on one does not hold up another; all obey the same orders."""
    settings = read_settings(parts.values)
    if isinstance(settings, Off):
        return settings
    missing = [name for name in CHANNELS if name not in parts.served]
    if not missing:
        return Off("every channel has a provider")
    misbehaviours = Misbehaviours()
    return [
        Catcher(
            parts.caught,
            parts.clock,
            frozenset({name}),
            account=f"catcher-{name.replace('_', '-')}",
            misbehaviours=misbehaviours,
            settings=settings,
        )
        for name in missing
    ]


def _answer(attempt: Attempt, order: Misbehaviour | None) -> Outcome:
    if order is None or order.fault is Fault.SLOW:
        key = attempt.key
        return Sent(f"caught-{key.notification_id.hex()}-{key.endpoint_id}-{attempt.number}")
    if order.fault is Fault.TOO_MANY:
        after = None if order.retry_after is None else timedelta(seconds=order.retry_after)
        return Retry("TOO_MANY_REQUESTS", "429 by order", after, Scope.ACCOUNT)
    return _BAD_ANSWERS[order.fault]
