"""Misbehaviour on demand: orders how to misbehave go in, what to do with each message comes out."""

from noroshi.domain.misbehaviour import Misbehaviour


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
