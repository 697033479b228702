"""Courier as a channel: attempts in, one call each and its outcome out."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome
from noroshi.flow.send.parts import Off, Parts
from noroshi.flow.send.sms.courier.outcomes import outcome_of
from noroshi.flow.send.sms.courier.payload import send_call
from noroshi.flow.send.sms.courier.settings import CourierSettings, read_settings
from noroshi.ports.outgoing import Outgoing


class CourierChannel:
    account = "courier"
    channels = frozenset({"sms"})
    max_batch = 20
    attempt_timeout = timedelta(seconds=15)
    per_second = None

    def __init__(self, settings: CourierSettings, outgoing: Outgoing) -> None:
        self._settings = settings
        self._outgoing = outgoing

    def validate_target(self, address: str) -> str | None:
        return None if address.startswith("+") else "must be a number with its country, +81…"

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        return await asyncio.gather(*map(self._send, attempts))

    async def _send(self, attempt: Attempt) -> Outcome:
        return outcome_of(await self._outgoing.call(send_call(self._settings, attempt.address, attempt.content)))


def open_courier(parts: Parts) -> CourierChannel | Off:
    settings = read_settings(parts.values)
    return settings if isinstance(settings, Off) else CourierChannel(settings, parts.outgoing)
