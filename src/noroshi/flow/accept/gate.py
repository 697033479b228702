"""The gate: an Authorization header in, the caller it belongs to out, or a refusal (N4.5)."""

import hmac
from collections.abc import Iterator
from datetime import timedelta
from math import ceil

from msgspec import Struct

from noroshi.domain import api_keys
from noroshi.domain.instants import Instant
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import ApiKey
from noroshi.domain.requests import Caller
from noroshi.ports.clock import Clock
from noroshi.ports.keys import Keys

KEPT_FOR = timedelta(seconds=5)
"""How long a key is believed without asking the store again: a revoked one is refused everywhere after this."""

_KEPT_AT_MOST = 10_000
_SCHEME = "Bearer "
_NOBODYS_DIGEST = bytes(32)
_MINUTE = 60.0


class Pace:
    """The limit of one key (GCRA): `per_minute` at once after a minute of rest, then evenly."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._interval = _MINUTE / per_minute
        self._used_until = 0.0

    def admit(self, now: float) -> float:
        """0 if the call may pass, which counts it; else how many seconds until one may. `now` is monotonic."""
        used_until = max(self._used_until, now) + self._interval
        wait = used_until - now - _MINUTE
        if wait > 1e-6:
            return wait
        self._used_until = used_until
        return 0.0

    def headers(self, now: float) -> Iterator[tuple[str, str]]:
        used = max(self._used_until - now, 0.0)
        yield "RateLimit-Limit", str(self.per_minute)
        yield "RateLimit-Remaining", str(int((_MINUTE - used + 1e-6) / self._interval))
        yield "RateLimit-Reset", str(ceil(used))


class _Known(Struct, frozen=True):
    """A live key as last read from the store."""

    digest: bytes
    caller: Caller
    believed_until: float
    expires_at: Instant | None
    pace: Pace | None


class Gate:
    def __init__(self, keys: Keys, pepper: bytes, clock: Clock) -> None:
        self._keys = keys
        self._pepper = pepper
        self._clock = clock
        self._known: dict[str, _Known] = {}
        # Whole headers that were right: found by Python's keyed hash, so the time of a look-up tells nothing.
        self._proven: dict[str | None, _Known] = {}

    def caller_if_cached(self, header: str | None) -> Caller | None:
        """The fast way for a key seen within the last 5 s. None means: ask `authenticate`, which says why."""
        known = self._proven.get(header) if header is not None else None
        if known is None:
            return None
        now = self._clock.monotonic()
        if known.believed_until <= now or self._known.get(known.caller.key_id) is not known or self._has_expired(known):
            del self._proven[header]
            return None
        if known.pace is not None and known.pace.admit(now):
            return None
        return known.caller

    async def authenticate(self, header: str | None) -> Caller:
        """Raises `unauthorized` or `too_many_requests`."""
        key = _presented_key(header)
        known = await self._look_up(api_keys.key_id(key))
        # An unknown id costs the same comparison, so that time does not tell which ids exist.
        wanted = _NOBODYS_DIGEST if known is None else known.digest
        is_right = hmac.compare_digest(wanted, api_keys.digest(self._pepper, key))
        if known is None or not is_right or self._has_expired(known):
            raise unauthorized("The API key is unknown, expired or revoked.")
        self._count(known)
        if header is not None and header.startswith(_SCHEME):
            while len(self._proven) >= _KEPT_AT_MOST:
                del self._proven[next(iter(self._proven))]
            self._proven[header] = known
        return known.caller

    async def live_key(self, key_id: str) -> Caller | None:
        """The caller whose key has this id; None once it has expired or was revoked."""
        known = await self._look_up(key_id)
        return None if known is None or self._has_expired(known) else known.caller

    async def _look_up(self, key_id: str) -> _Known | None:
        asked_at = self._clock.monotonic()
        before = self._known.get(key_id)
        if before is not None and asked_at < before.believed_until:
            return before
        key = await self._keys.find(key_id)
        # Taken only now: another call may have read the key meanwhile, and its pace must not be forgotten.
        before = self._known.pop(key_id, None)
        if key is None or key.revoked_at is not None:
            return None
        while len(self._known) >= _KEPT_AT_MOST:
            del self._known[next(iter(self._known))]
        known = _Known(
            digest=key.digest,
            caller=Caller(tenant=key.tenant, key_id=key.key_id, name=key.name, scopes=frozenset(key.scopes)),
            believed_until=asked_at + KEPT_FOR.total_seconds(),
            expires_at=key.expires_at,
            pace=_pace_of(key, before),
        )
        self._known[key_id] = known
        return known

    def _has_expired(self, known: _Known) -> bool:
        return known.expires_at is not None and known.expires_at <= self._clock.now()

    def _count(self, known: _Known) -> None:
        if known.pace is None:
            return
        now = self._clock.monotonic()
        wait = known.pace.admit(now)
        if wait:
            raise too_fast("This key", known.pace, wait, now)


def _presented_key(header: str | None) -> str:
    if header is None:
        raise unauthorized("The Authorization header is missing.")
    if header[: len(_SCHEME)].lower() != _SCHEME.lower():
        raise unauthorized("The Authorization header must be `Bearer` and an API key.")
    key = header[len(_SCHEME) :].strip()
    if not api_keys.is_well_formed(key):
        raise unauthorized("The API key is mistyped: its form or checksum is wrong.")
    return key


def _pace_of(key: ApiKey, before: _Known | None) -> Pace | None:
    """The pace goes on where it stood: reading the key again must not give back what was used."""
    if not key.per_minute:
        return None
    if before is not None and before.pace is not None and before.pace.per_minute == key.per_minute:
        return before.pace
    return Pace(key.per_minute)


def too_fast(who: str, pace: Pace, wait: float, now: float) -> ProblemError:
    return ProblemError(
        "too_many_requests",
        f"{who} may call {pace.per_minute} times a minute.",
        retry_after=timedelta(seconds=wait),
        headers=dict(pace.headers(now)),
    )


def unauthorized(detail: str) -> ProblemError:
    return ProblemError("unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
