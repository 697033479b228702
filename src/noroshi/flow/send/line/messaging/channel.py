"""LINE as a channel: attempts in, one push each and LINE's answer to it out; and the pushes of the reservations."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from noroshi.domain.deliveries import Attempt
from noroshi.domain.line import LineAnswer
from noroshi.domain.outcomes import Outcome, Rejected, Retry, Sent
from noroshi.domain.outgoing import Answered, NotAllowed
from noroshi.domain.quotas import Quota
from noroshi.domain.receipts import Reach
from noroshi.flow.send.line.messaging import payload
from noroshi.flow.send.line.messaging.outcomes import RATE_LIMITED, outcome_of, request_id_of
from noroshi.flow.send.line.messaging.quota import ask_quota
from noroshi.flow.send.line.messaging.receipts import SIGNATURE, is_signed, read_reaches
from noroshi.flow.send.line.messaging.settings import LineSettings, read_settings
from noroshi.flow.send.parts import Off, Parts
from noroshi.ports.outgoing import Outgoing

INVALID_TOKEN = "INVALID_TOKEN"  # noqa: S105 - an outcome's code (N1.9)
TEXT_EMPTY = "TEXT_EMPTY"
TEXT_TOO_LONG = "TEXT_TOO_LONG"

_AT_ONCE = 50
_PATIENCE = 0.9
"""Of the attempt's time: dispatch would call all of a late batch unknown, we know which pushes were answered."""
_KEYS_KEPT = timedelta(hours=24)
_MARGIN = timedelta(minutes=10)
_FIRST_REST = timedelta(seconds=1)
_LONGEST_REST = timedelta(seconds=60)


class LineChannel:
    """Many pushes are under way at once; a delivery has the same retry key on every try."""

    account = "line"
    channels = frozenset({"line"})
    max_batch = _AT_ONCE
    repeats_within = _KEYS_KEPT - _MARGIN

    def __init__(self, settings: LineSettings, outgoing: Outgoing) -> None:
        self._settings = settings
        self._outgoing = outgoing
        self._rest = _FIRST_REST

    @property
    def attempt_timeout(self) -> timedelta:
        return self._settings.timeout

    @property
    def per_second(self) -> int | None:
        return self._settings.per_second

    def validate_target(self, address: str) -> str | None:
        return None if payload.is_user_id(address) else "must be LINE's own id of the person: U and 32 hex digits"

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        outcomes = await asyncio.gather(*map(self._push, attempts))
        if any(isinstance(outcome, Retry) and outcome.code == RATE_LIMITED for outcome in outcomes):
            self._rest = min(self._rest * 2, _LONGEST_REST)
        elif any(isinstance(outcome, Sent) for outcome in outcomes):
            self._rest = _FIRST_REST
        return outcomes

    async def quota(self) -> Quota | None:
        return await ask_quota(self._settings, self._outgoing)

    def read_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Reach] | None:
        if not is_signed(self._settings.secrets, raw, headers.get(SIGNATURE, "")):
            return None
        return read_reaches(raw)

    async def _push(self, attempt: Attempt) -> Outcome:
        text = payload.text_of(attempt.content)
        refusal = self._refusal(attempt.address, text)
        if refusal is not None:
            return refusal
        key = payload.retry_key(attempt.key)
        call = payload.push_call(self._settings, attempt.address, text, key, self._settings.timeout * _PATIENCE)
        return outcome_of(await self._outgoing.call(call), attempt.address, self._rest)

    def _refusal(self, address: str, text: str) -> Rejected | None:
        """What LINE would refuse anyway. Nothing is cut: half a message may say the opposite of the whole."""
        if (why := self.validate_target(address)) is not None:
            return Rejected(INVALID_TOKEN, why)
        if not text.strip():
            return Rejected(TEXT_EMPTY, "LINE takes no message without text")
        if (length := payload.length_of(text)) > payload.LONGEST_TEXT:
            return Rejected(TEXT_TOO_LONG, f"{length:,} UTF-16 code units; LINE takes {payload.LONGEST_TEXT:,}")
        return None


class LinePusher:
    """Implements ports/line.py."""

    def __init__(self, settings: LineSettings, outgoing: Outgoing) -> None:
        self._settings = settings
        self._outgoing = outgoing

    async def push(self, to: str, text: str, retry_key: UUID) -> LineAnswer:
        call = payload.push_call(self._settings, to, text, retry_key, self._settings.timeout)
        reply = await self._outgoing.call(call)
        if isinstance(reply, Answered):
            return LineAnswer(reply.status, reply.body.decode("utf-8", "replace"), request_id_of(reply))
        code = "" if isinstance(reply, NotAllowed) else reply.code
        return LineAnswer(None, f"{code} {reply.error}".strip())


def open_messaging(parts: Parts) -> LineChannel | Off:
    settings = read_settings(parts.values)
    return settings if isinstance(settings, Off) else LineChannel(settings, parts.outgoing)


def open_line(values: Mapping[str, str], outgoing: Outgoing) -> LinePusher | None:
    """For the reservations; None: LINE is not configured."""
    settings = read_settings(values)
    return None if isinstance(settings, Off) else LinePusher(settings, outgoing)
