"""Visits: an operator's key in, a closed cookie out; a request in, who visits and whether the form is their own out."""

import hmac
from datetime import timedelta
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

import msgspec
from msgspec import Struct
from starlette.requests import Request

from noroshi.domain.ids import TenantId
from noroshi.domain.instants import plus
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.shop_pages.door import SHOP

COOKIE = "noroshi_shop"
LASTS = timedelta(hours=12)

_PURPOSE = "shop visit"


class Visit(Struct, frozen=True):
    """`token` must come back with every form: who only sees the cookie's site cannot know it."""

    tenant: TenantId
    token: str


class _Kept(Struct, frozen=True, array_like=True):
    key: str
    until: int


class Visits:
    """The cookie holds the key itself, closed: a revoked key ends its visits at once. Only an operator's will do."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def open(self, key: str, *, is_secure: bool) -> str | None:
        """The value of Set-Cookie; None: it is not the key of an operator."""
        if await self._tenant(key) is None:
            return None
        kept = _Kept(key, plus(self._desk.clock.now(), LASTS))
        closed = self._desk.envelopes.close(_PURPOSE, msgspec.msgpack.encode(kept))
        return f"{COOKIE}={closed}; Max-Age={int(LASTS.total_seconds())}{_marks(is_secure=is_secure)}"

    def end(self) -> str:
        return f"{COOKIE}=; Max-Age=0{_marks(is_secure=False)}"

    async def find(self, request: Request) -> Visit | None:
        cookie = _cookie(request)
        clear = None if cookie is None else self._desk.envelopes.open(_PURPOSE, cookie)
        if cookie is None or clear is None:
            return None
        kept = msgspec.msgpack.decode(clear, type=_Kept)
        tenant = await self._tenant(kept.key) if kept.until > self._desk.clock.now() else None
        return None if tenant is None else Visit(tenant, sha256(cookie.encode()).hexdigest()[:32])

    async def _tenant(self, key: str) -> TenantId | None:
        try:
            caller = await self._desk.gate.authenticate(f"Bearer {key}")
        except ProblemError as problem:
            if problem.kind.code != "unauthorized":
                raise
            return None
        return caller.tenant if KeyScope.ADMIN in caller.scopes else None


def is_own_form(visit: Visit, token: str) -> bool:
    return hmac.compare_digest(token.encode(), visit.token.encode())


def _marks(*, is_secure: bool) -> str:
    return f"; Path={SHOP}; HttpOnly; SameSite=Lax{'; Secure' if is_secure else ''}"


def _cookie(request: Request) -> str | None:
    try:
        cookies = SimpleCookie(request.headers.get("cookie", ""))
    except CookieError:
        return None
    return cookies[COOKIE].value if COOKIE in cookies else None
