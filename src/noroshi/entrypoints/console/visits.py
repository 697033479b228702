"""Visits: an operator's key in, a closed cookie out; a cookie in, the visit it stands for out.

The cookie holds the key itself, closed: a revoked key ends every visit that was opened with it, in every process, and
the cookie alone never shows the key."""

import hmac
from datetime import timedelta
from hashlib import sha256

import msgspec
from msgspec import Struct

from noroshi.domain.instants import Instant, plus
from noroshi.ports.clock import Clock
from noroshi.ports.envelopes import Envelopes

COOKIE = "noroshi_console"
LASTS = timedelta(hours=12)

_PURPOSE = "console visit"


class Visit(Struct, frozen=True):
    """`is_minted`: the key was made for this visit and ends with it. `token` must come back with every form."""

    key: str
    token: str
    is_minted: bool


class _Kept(Struct, frozen=True, array_like=True):
    key: str
    until: int
    is_minted: bool


class Visits:
    def __init__(self, envelopes: Envelopes, clock: Clock, *, is_secure: bool) -> None:
        self._envelopes = envelopes
        self._clock = clock
        self._marks = f"; Path=/console; HttpOnly; SameSite=Lax{'; Secure' if is_secure else ''}"

    def open(self, key: str, *, is_minted: bool) -> str:
        """The value of Set-Cookie."""
        kept = _Kept(key, plus(self._clock.now(), LASTS), is_minted)
        closed = self._envelopes.close(_PURPOSE, msgspec.msgpack.encode(kept))
        return f"{COOKIE}={closed}; Max-Age={int(LASTS.total_seconds())}{self._marks}"

    def end(self) -> str:
        return f"{COOKIE}=; Max-Age=0{self._marks}"

    def find(self, cookie: str | None) -> Visit | None:
        clear = None if cookie is None else self._envelopes.open(_PURPOSE, cookie)
        if cookie is None or clear is None:
            return None
        try:
            kept = msgspec.msgpack.decode(clear, type=_Kept)
        except msgspec.DecodeError:  # of another version of ours
            return None
        if Instant(kept.until) <= self._clock.now():
            return None
        # Whoever knows the cookie can make the token; whoever sees the token cannot make the cookie.
        return Visit(kept.key, sha256(cookie.encode()).hexdigest()[:32], kept.is_minted)


def is_from(visit: Visit, token: str | None) -> bool:
    return token is not None and hmac.compare_digest(token.encode(), visit.token.encode())
