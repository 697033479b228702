"""A load of notification requests: bodies go in, posted by a bounded number of callers who never give a key up.

A caller who hears nothing, or 429 or 5xx, asks again with the same idempotency key until there is an answer or no
time left; what each key was answered is kept, every time.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct, field

from noroshi.domain.instants import Instant
from tests.faults.machinery.reckoning import Answered

PATH = "/api/v1/notifications"

_TOO_MANY = 429
_REPLAYED = 409
_ACCEPTED = 202
_ASK_AGAIN_AFTER = 0.05
_LONGEST_WAIT = 1.0


class Heard(Struct, frozen=True):
    """One answer; status None: none came."""

    at: Instant
    status: int | None
    batch_id: str | None = None
    code: str | None = None


class Posted(Struct):
    """One idempotency key with everything that was heard of it."""

    body: dict[str, Any]
    heard: list[Heard] = field(default_factory=list)

    @property
    def answered(self) -> Answered:
        if self.batch_id is not None:
            return Answered.ACCEPTED
        return Answered.REFUSED if self.heard and _is_refusal(self.heard[-1]) else Answered.NOTHING

    @property
    def batch_id(self) -> str | None:
        return next((heard.batch_id for heard in self.heard if heard.batch_id is not None), None)

    @property
    def answered_at(self) -> Instant | None:
        """When the caller first knew that it was kept."""
        return next((heard.at for heard in self.heard if heard.batch_id is not None), None)

    @property
    def is_contradictory(self) -> bool:
        """Two batches for one key, or 202 twice (I5)."""
        batches = {heard.batch_id for heard in self.heard if heard.batch_id is not None}
        return len(batches) > 1 or sum(heard.status == _ACCEPTED for heard in self.heard) > 1


class Load:
    """`posted` may be read at any time; `waiting` holds the keys whose request waits for its answer now."""

    def __init__(self, url: str, api_key: str, bodies: Mapping[str, dict[str, Any]], callers: int = 32) -> None:
        self.posted = {key: Posted({**body, "idempotency_key": key}) for key, body in bodies.items()}
        self.waiting: set[str] = set()
        self._url = url + PATH
        self._headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
        self._callers = callers

    @property
    def outstanding(self) -> int:
        return len(self.waiting)

    async def run(self, seconds: float, patience: float = 15) -> None:
        """Posts everything once and whatever stays unanswered again, for `seconds` at most; a single request is
        waited for `patience` seconds."""
        waiting = iter(list(self.posted.values()))
        until = time.monotonic() + seconds
        connector = aiohttp.TCPConnector(limit=self._callers)
        timeout = aiohttp.ClientTimeout(total=patience)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=self._headers) as session:

            async def call() -> None:
                for posted in waiting:
                    await self._insist(session, posted, until)

            await asyncio.gather(*(call() for _ in range(self._callers)))

    async def _insist(self, session: aiohttp.ClientSession, posted: Posted, until: float) -> None:
        while time.monotonic() < until:
            heard, wait = await self._post(session, posted.body)
            posted.heard.append(heard)
            if heard.batch_id is not None or _is_refusal(heard):
                return
            await asyncio.sleep(wait)

    async def _post(self, session: aiohttp.ClientSession, body: dict[str, Any]) -> tuple[Heard, float]:
        """What was heard, and how long to wait before asking again."""
        key = body["idempotency_key"]
        self.waiting.add(key)
        try:
            async with session.post(self._url, data=msgspec.json.encode(body)) as response:
                text = await response.read()
                status, wait = response.status, _wait_of(response.headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError, OSError):
            return Heard(_now(), None), _ASK_AGAIN_AFTER
        finally:
            self.waiting.discard(key)
        return _heard(status, text), wait


def contradictions(load: Load) -> list[str]:
    """The keys whose answers cannot all be true."""
    return [key for key, posted in load.posted.items() if posted.is_contradictory]


class _Fields(Struct):
    batch_id: str | None = None
    code: str | None = None


def _heard(status: int, text: bytes) -> Heard:
    try:
        fields = msgspec.json.decode(text, type=_Fields)
    except msgspec.DecodeError:
        fields = _Fields()
    batch_id = fields.batch_id if status in (_ACCEPTED, _REPLAYED) else None
    return Heard(_now(), status, batch_id, fields.code)


def _is_refusal(heard: Heard) -> bool:
    status = heard.status
    return status is not None and 400 <= status < 500 and status != _TOO_MANY and heard.batch_id is None


def _wait_of(retry_after: str | None) -> float:
    """A test has no hour to wait: it asks again sooner than it should."""
    return min(float(retry_after), _LONGEST_WAIT) if retry_after and retry_after.isdigit() else _ASK_AGAIN_AFTER


def _now() -> Instant:
    return Instant(time.time_ns() // 1000)
