"""Pauses as dispatch obeys them: the pauses in force go in, the lanes and categories that stand still come out."""

from collections.abc import Iterable
from typing import NamedTuple

from noroshi.domain.categories import Categories
from noroshi.domain.lanes import Lane
from noroshi.domain.records import Pause, PauseKind


class Stops(NamedTuple):
    """What stands still: everything, or what is named."""

    is_everything: bool = False
    accounts: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()

    def stop(self, lane: Lane) -> bool:
        return self.is_everything or lane.account in self.accounts or lane.channel in self.channels


def stops_of(pauses: Iterable[Pause], categories: Categories) -> Stops:
    """A pause of a category also stops the categories below it."""
    named: dict[PauseKind, set[str]] = {kind: set() for kind in PauseKind}
    is_everything = False
    for pause in pauses:
        if pause.kind is PauseKind.EVERYTHING:
            is_everything = True
        elif pause.name is not None:
            named[pause.kind].add(pause.name)
    paused = named[PauseKind.CATEGORY]
    below = {n for n in categories.names() if any(c.name in paused for c in categories.lineage(n))} if paused else set()
    return Stops(
        is_everything,
        frozenset(named[PauseKind.ACCOUNT]),
        frozenset(named[PauseKind.CHANNEL]),
        frozenset(paused | below),
    )
