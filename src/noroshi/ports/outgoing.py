"""The one way out over HTTP."""

from typing import Protocol

from noroshi.domain.outgoing import OutgoingCall, OutgoingReply


class Outgoing(Protocol):
    async def call(self, call: OutgoingCall) -> OutgoingReply:
        """Made once: no redirect is followed. Never raises for what the network or the other side does, and no text
        of a reply but the answer itself quotes address, headers or body."""
        ...
