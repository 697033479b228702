"""Embedded: settings in; a whole Noroshi inside the caller's process, and calls straight into its API, out."""

from noroshi.bootstrap.errors import START_ERRORS
from noroshi.bootstrap.noroshi import Noroshi
from noroshi.bootstrap.opening import open_noroshi
from noroshi.client.errors import NoroshiError
from noroshi.client.transports import AsgiTransport, Call, Reply
from noroshi.domain.ids import DEFAULT_TENANT
from noroshi.domain.records import KeyScope
from noroshi.domain.requests import Caller
from noroshi.entrypoints.api.app import build_app
from noroshi.settings import Settings

_INSIDER = Caller(tenant=DEFAULT_TENANT, key_id="embedded", name="embedded", scopes=frozenset(KeyScope))


class OpenGate:
    """Whoever runs the system in their own process needs no key."""

    def caller_if_cached(self, header: str | None) -> Caller:  # noqa: ARG002 - there is nothing to look at
        return _INSIDER

    async def authenticate(self, header: str | None) -> Caller:
        return self.caller_if_cached(header)


class EmbeddedTransport:
    """Implements client/transports.py Transport. Opening it opens the store and starts sending; closing it finishes
    what is under way."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._noroshi: Noroshi | None = None
        self._app: AsgiTransport | None = None

    async def open(self) -> None:
        if self._noroshi is not None:
            return
        try:
            noroshi = open_noroshi(self._settings, is_dev=False, on_broken=lambda: None)
            await noroshi.start()
        except START_ERRORS as error:
            raise NoroshiError("cannot_start", f"{error}.", "Mend that, then start again.") from error
        self._noroshi = noroshi
        self._app = AsgiTransport(build_app(noroshi, gate=OpenGate()), None)

    async def close(self) -> None:
        noroshi, self._noroshi = self._noroshi, None
        self._app = None
        if noroshi is not None:
            await noroshi.stop()

    async def carry(self, call: Call) -> Reply:
        if self._app is None:
            raise NoroshiError("not_started", "Noroshi is not started.", "Use `async with`, or call `start()`.")
        return await self._app.carry(call)
