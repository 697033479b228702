"""Calls: one row of the table of pages, and what a page's function is given when it is asked for."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from noroshi.client import Noroshi
from noroshi.domain.instants import moment_of
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller
from noroshi.entrypoints.console.pages import Pages
from noroshi.entrypoints.console.refusals import nowhere
from noroshi.entrypoints.console.replies import Reply, Stream, redirect
from noroshi.entrypoints.console.visits import Visit
from noroshi.entrypoints.console.words import SAID
from noroshi.ports.clock import Clock

_LONGEST_NUMBER = 18


class Asked(Struct, frozen=True):
    """What the browser sent. `path` holds the variable parts, decoded; `here` is the address as it was asked for."""

    method: str
    here: str
    path: dict[str, str]
    query: dict[str, str]
    form: dict[str, str]
    cookies: dict[str, str]
    headers: dict[str, str]


class Call(Struct, frozen=True):
    asked: Asked
    visit: Visit
    caller: Caller
    api: Noroshi
    pages: Pages
    clock: Clock
    is_closing: Callable[[], bool]

    @property
    def path(self) -> dict[str, str]:
        return self.asked.path

    @property
    def query(self) -> dict[str, str]:
        return self.asked.query

    @property
    def form(self) -> dict[str, str]:
        return self.asked.form

    def number(self, name: str) -> int:
        """A numeric id of the path; what is no such number has no page."""
        text = self.path[name]
        if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
            raise nowhere()
        return int(text)

    def may(self, scope: KeyScope) -> bool:
        return not self.caller.scopes.isdisjoint({scope, KeyScope.ADMIN})

    def text(self, name: str, **context: Any) -> str:
        return self.pages.render(name, {**self._surroundings(), **context})

    def page(self, name: str, **context: Any) -> Reply:
        return Reply(self.text(name, **context).encode())

    def _surroundings(self) -> dict[str, Any]:
        return {
            **surroundings(self.asked, self.clock),
            "token": self.visit.token,
            "me": {
                "name": self.caller.name,
                "may_send": self.may(KeyScope.SEND),
                "may_admin": self.may(KeyScope.ADMIN),
            },
        }


Run = Callable[[Call], Awaitable[Reply | Stream]]


class Row(Struct, frozen=True):
    """One page or form: every one needs a visit."""

    method: str
    path: str
    run: Run


def surroundings(asked: Asked, clock: Clock) -> dict[str, Any]:
    """What every page shows around itself."""
    return {
        "now": moment_of(clock.now()),
        "here": asked.here,
        "section": asked.here.removeprefix("/console").split("?")[0].strip("/").split("/")[0],
        "theme": theme_of(asked),
        "said": said(asked.query),
    }


def theme_of(asked: Asked) -> str:
    theme = asked.cookies.get("noroshi_theme", "")
    return theme if theme in {"light", "dark"} else "auto"


def said(query: dict[str, str]) -> str | None:
    """The sentence for `?said=code&n=3`."""
    count = query.get("n", "")
    text = SAID.get(query.get("said", ""))
    return None if text is None else text.format(n=count if count.isdigit() and len(count) <= _LONGEST_NUMBER else "")


def back_to(path: str, code: str, count: int | None = None) -> Reply:
    """After a form: the page again, with a sentence on top."""
    joint = "&" if "?" in path else "?"
    return redirect(f"{path}{joint}said={code}" + ("" if count is None else f"&n={count}"))
