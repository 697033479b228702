"""The door: a path under /console in, the console's answer out; everything else is the API's."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from noroshi.domain.requests import Caller
from noroshi.ports.clock import Clock
from noroshi.ports.envelopes import Envelopes

ROOT = "/console"


class Gatekeeper(Protocol):
    async def authenticate(self, header: str | None) -> Caller: ...


class House(Protocol):
    """All that the console has beside the API: who is at the door, and what time it is."""

    @property
    def gate(self) -> Gatekeeper: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def envelopes(self) -> Envelopes: ...

    async def redeem_ticket(self, ticket: str) -> str | None:
        """The key of a new visit; None for a ticket that was used before, is too old, or is none."""
        ...

    async def end_key(self, caller: Caller) -> None: ...


def with_console(api: ASGIApp, house: House, *, public_url: str, is_closing: Callable[[], bool]) -> ASGIApp:
    """The API with the console before it. Nothing of the console is loaded until the first of its pages is asked for;
    its live streams end when `is_closing` says so."""

    @cache
    def console() -> ASGIApp:
        module = import_module("noroshi.entrypoints.console.app")
        return cast(ASGIApp, module.build_console(api, house, public_url=public_url, is_closing=is_closing))

    # Not a coroutine: every call of the API would pay for one more.
    def app(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        path = scope.get("path", "")
        is_ours = path.startswith(ROOT) and path[len(ROOT) : len(ROOT) + 1] in {"", "/"}
        return (console() if is_ours and scope["type"] == "http" else api)(scope, receive, send)

    return app
