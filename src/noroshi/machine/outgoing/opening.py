"""LateOutgoing: the one way out, opened by the first call."""

from importlib import import_module
from pathlib import Path
from typing import Protocol

from noroshi.domain.outgoing import OutgoingCall, OutgoingReply
from noroshi.ports.outgoing import Outgoing


class ClosableOutgoing(Outgoing, Protocol):
    async def close(self) -> None:
        """Called once, when nothing more will be asked."""
        ...


class LateOutgoing:
    """Whoever calls nobody pays nothing for the client: it is loaded on first use (12 MB, and a thread)."""

    def __init__(self, ca: Path | None = None) -> None:
        self._ca = ca
        self._outgoing: ClosableOutgoing | None = None

    async def call(self, call: OutgoingCall) -> OutgoingReply:
        if self._outgoing is None:
            opened: ClosableOutgoing = import_module("noroshi.machine.outgoing.client").ReqwestOutgoing(ca=self._ca)
            self._outgoing = opened
        return await self._outgoing.call(call)

    async def close(self) -> None:
        if self._outgoing is not None:
            await self._outgoing.close()
