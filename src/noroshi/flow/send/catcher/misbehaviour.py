"""Misbehaviour on demand: orders how to misbehave go in, what to do with each message comes out."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct


class Fault(StrEnum):
    """SLOW answers late; ERROR is a 503, TOO_MANY a 429; HANG never answers and keeps nothing; DROP_ANSWER
    keeps the message and then breaks off; GONE says that the endpoint no longer exists."""

    SLOW = "slow"
    ERROR = "error"
    TOO_MANY = "too_many"
    HANG = "hang"
    DROP_ANSWER = "drop_answer"
    GONE = "gone"


Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Misbehaviour(Struct, frozen=True, forbid_unknown_fields=True):
    """One order. `channel` None: every channel; `count` None: until told otherwise. `seconds` is how slow;
    `retry_after` comes with TOO_MANY and may be absurd, negative or missing, as providers' are."""

    fault: Fault
    channel: str | None = None
    count: Annotated[int, Meta(ge=1)] | None = None
    seconds: Seconds = 1.0
    retry_after: Annotated[float, Meta(ge=-1e9, le=1e9)] | None = None


class Misbehaviours:
    """The orders in force, one a channel; one for a channel goes before one for all."""

    def __init__(self) -> None:
        self._orders: dict[str | None, Misbehaviour] = {}
        self._left: dict[str | None, int | None] = {}

    def misbehave(self, order: Misbehaviour) -> None:
        """In force from the next message on, in place of an earlier order for the same channel."""
        self._orders[order.channel] = order
        self._left[order.channel] = order.count

    def behave(self, channel: str | None = None) -> None:
        """Ends the misbehaviour of one channel, or (None) all of it."""
        for name in [channel] if channel is not None else list(self._orders):
            self._orders.pop(name, None)
            self._left.pop(name, None)

    def in_force(self) -> list[Misbehaviour]:
        return list(self._orders.values())

    def next_for(self, channel: str) -> Misbehaviour | None:
        """What to do to the next message; uses up one of the order's count."""
        if not self._orders:
            return None
        name = channel if channel in self._orders else None
        order = self._orders.get(name)
        left = self._left.get(name)
        if order is not None and left is not None:
            self._left[name] = left - 1
            if left <= 1:
                del self._orders[name], self._left[name]
        return order
