"""The console as an ASGI application: a browser's request in, a page, a redirect or a live stream out."""

import re
import traceback
from collections.abc import Callable
from typing import Any

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from noroshi.client import Noroshi, NoroshiError
from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.console.calls import Asked, Call, Row, surroundings
from noroshi.entrypoints.console.door import House
from noroshi.entrypoints.console.entering import Entering
from noroshi.entrypoints.console.pages import Pages
from noroshi.entrypoints.console.reading import check_origin, raw_path, read_asked
from noroshi.entrypoints.console.refusals import broken, foreign, nowhere, of_problem
from noroshi.entrypoints.console.replies import Reply, Stream, deliver, deliver_stream
from noroshi.entrypoints.console.routes import ROWS
from noroshi.entrypoints.console.visits import COOKIE, Visit, Visits, is_from

log = structlog.get_logger()

_FOR_EVER = "public, max-age=31536000, immutable"


def build_console(api: ASGIApp, house: House, *, public_url: str, is_closing: Callable[[], bool]) -> ASGIApp:
    return Console(api, house, public_url, is_closing)


class Console:
    def __init__(self, api: ASGIApp, house: House, public_url: str, is_closing: Callable[[], bool]) -> None:
        self._api = api
        self._house = house
        self._public_url = public_url
        self._is_closing = is_closing
        self._pages = Pages()
        self._visits = Visits(house.envelopes, house.clock, is_secure=public_url.startswith("https:"))
        self._entering = Entering(house, self._visits, self._pages, public_url)
        self._rows = [(_pattern(row.path), row) for row in ROWS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = await self._answer(scope, receive)
        except NoroshiError as refused:
            reply = await self._refusal(scope, refused)
        except Exception as bug:  # noqa: BLE001  whatever broke, the operator gets a page that leaks nothing
            reply = await self._report(scope, bug)
        if isinstance(reply, Stream):
            await deliver_stream(reply, receive, send, is_only_asked_for=scope["method"] == "HEAD")
        else:
            await deliver(reply, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Reply | Stream:
        path = raw_path(scope)
        if path.startswith("/console/assets/"):
            return self._asset(path)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        row, parts = self._find(method, path)
        asked = await read_asked(scope, receive, parts)
        if row is None:
            reply = await self._entering.answer(path.removeprefix("/console/"), asked)
            if reply is not None:
                return reply
        visit = self._visits.find(asked.cookies.get(COOKIE))
        if visit is None:
            return self._entering.ask_to_enter(asked)
        try:
            caller = await self._house.gate.authenticate(f"Bearer {visit.key}")
        except ProblemError as problem:
            if problem.kind.code == "unauthorized":
                return self._entering.ask_to_enter(asked, "ended")
            raise of_problem(problem) from None
        if row is None:
            raise nowhere()
        if method == "POST":
            self._check_form(asked, visit)
        api = Noroshi.inside(self._api, visit.key)
        return await row.run(Call(asked, visit, caller, api, self._pages, self._house.clock, self._is_closing))

    def _find(self, method: str, path: str) -> tuple[Row | None, dict[str, str]]:
        for pattern, row in self._rows:
            if row.method == method and (match := pattern.fullmatch(path)):
                return row, match.groupdict()
        return None, {}

    def _check_form(self, asked: Asked, visit: Visit) -> None:
        check_origin(asked, self._public_url)
        if not is_from(visit, asked.form.get("token")):
            raise foreign()

    def _asset(self, path: str) -> Reply:
        edition, _, name = path.removeprefix("/console/assets/").partition("/")
        if edition != self._pages.edition or name not in self._pages.assets:
            return Reply(b"There is no such file.", status=404, media="text/plain; charset=utf-8")
        body, media = self._pages.assets[name]
        return Reply(body, media=media, caching=_FOR_EVER)

    async def _report(self, scope: Scope, bug: Exception) -> Reply:
        # Not the bug's own text: it may hold an address, a token or a key.
        log.error("page_failed", error=type(bug).__name__, trace=traceback.format_tb(bug.__traceback__))
        return await self._refusal(scope, broken())

    async def _refusal(self, scope: Scope, refused: NoroshiError) -> Reply:
        """A key that ended while the page was being made leads to the door; everything else is a page that says so."""

        async def nothing() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        asked = await read_asked({**scope, "method": "GET", "query_string": b""}, nothing, {})
        if refused.status == 401:
            return self._entering.ask_to_enter(asked, "ended")
        shown = {**surroundings(asked, self._house.clock), "error": refused}
        headers = () if refused.retry_after is None else (("retry-after", str(refused.retry_after)),)
        return Reply(self._pages.render("error.html", shown).encode(), status=refused.status, headers=headers)


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))
