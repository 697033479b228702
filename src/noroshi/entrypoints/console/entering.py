"""Entering: a key or a one-time ticket in, a visit out; and the way out again."""

import re
from urllib.parse import urlencode

from noroshi.domain.problems import ProblemError
from noroshi.domain.records import KeyScope
from noroshi.entrypoints.console.calls import Asked, surroundings
from noroshi.entrypoints.console.door import House
from noroshi.entrypoints.console.pages import Pages
from noroshi.entrypoints.console.reading import check_origin
from noroshi.entrypoints.console.refusals import foreign
from noroshi.entrypoints.console.replies import Reply, redirect
from noroshi.entrypoints.console.visits import COOKIE, Visits, is_from

_HOME = "/console"
_INSIDE = re.compile(r"/console(?:[/?][\x21-\x7e]*)?")
_READERS = frozenset({KeyScope.READ, KeyScope.ADMIN})


class Entering:
    """All that answers without a visit."""

    def __init__(self, house: House, visits: Visits, pages: Pages, public_url: str) -> None:
        self._house = house
        self._visits = visits
        self._pages = pages
        self._public_url = public_url

    async def answer(self, name: str, asked: Asked) -> Reply | None:
        """None for what is not one of these."""
        match asked.method, name:
            case "GET" | "HEAD", "login":
                return self._show(asked)
            case "POST", "login":
                return await self._enter_by_key(asked)
            case "GET", "enter":
                return await self._enter_by_ticket(asked)
            case "POST", "leave":
                return await self._leave(asked)
        return None

    def ask_to_enter(self, asked: Asked, code: str | None = None) -> Reply:
        """To the door, and afterwards back to where the operator wanted to go."""
        if "text/html" not in asked.headers.get("accept", "text/html"):
            return Reply(b"Sign in first.", status=401, media="text/plain; charset=utf-8")
        wanted = asked.here if asked.method == "GET" else _HOME
        return redirect(_door(code, wanted), self._visits.end())

    def _show(self, asked: Asked) -> Reply:
        shown = {**surroundings(asked, self._house.clock), "next": _inside(asked.query.get("next"))}
        return Reply(self._pages.render("login.html", shown).encode())

    async def _enter_by_key(self, asked: Asked) -> Reply:
        check_origin(asked, self._public_url)
        wanted = _inside(asked.form.get("next"))
        key = asked.form.get("key", "").strip()
        try:
            caller = await self._house.gate.authenticate(f"Bearer {key}")
        except ProblemError:
            return redirect(_door("wrong", wanted))
        if caller.scopes.isdisjoint(_READERS):
            return redirect(_door("blind", wanted))
        return redirect(wanted, self._visits.open(key, is_minted=False))

    async def _enter_by_ticket(self, asked: Asked) -> Reply:
        """Not for who only looks ahead: a ticket works once."""
        if "prefetch" in asked.headers.get("sec-purpose", asked.headers.get("purpose", "")):
            return Reply(status=425)
        key = await self._house.redeem_ticket(asked.query.get("ticket", ""))
        if key is not None:
            return redirect(_HOME, self._visits.open(key, is_minted=True))
        is_inside = self._visits.find(asked.cookies.get(COOKIE)) is not None
        return redirect(_HOME if is_inside else _door("spent", _HOME))

    async def _leave(self, asked: Asked) -> Reply:
        visit = self._visits.find(asked.cookies.get(COOKIE))
        if visit is not None:
            check_origin(asked, self._public_url)
            if not is_from(visit, asked.form.get("token")):
                raise foreign()
            if visit.is_minted:
                await self._end(visit.key)
        return redirect("/console/login?said=left", self._visits.end())

    async def _end(self, key: str) -> None:
        try:
            caller = await self._house.gate.authenticate(f"Bearer {key}")
        except ProblemError:
            return
        await self._house.end_key(caller)


def _door(code: str | None, wanted: str) -> str:
    query = {"said": code, "next": wanted if wanted != _HOME else None}
    told = urlencode({name: value for name, value in query.items() if value is not None})
    return f"/console/login?{told}" if told else "/console/login"


def _inside(wanted: str | None) -> str:
    """Only pages of ours: a sign-in must not lead elsewhere."""
    is_ours = wanted is not None and _INSIDE.fullmatch(wanted) and not wanted.startswith("/console/login")
    return wanted if wanted is not None and is_ours else _HOME
