"""Categories (N3.6): what a notification is about, and the rules that follow from it."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct


class OnUnknown(StrEnum):
    """What to do when a request left and no answer came."""

    RESEND = "resend"
    RECONCILE = "reconcile"
    GIVE_UP = "give_up"


class OverLimit(StrEnum):
    SUPPRESS = "suppress"
    DEFER = "defer"


class Category(Struct, frozen=True):
    """`tries` limits the sends (None: the channel's policy); `is_on` is the default of people who said nothing."""

    name: str
    parent: str | None = None
    is_on: bool = True
    is_required: bool = False
    is_gathered: bool = False
    over_limit: OverLimit = OverLimit.SUPPRESS
    on_unknown: OnUnknown = OnUnknown.RESEND
    tries: int | None = None
    expires_after: timedelta | None = None


GENERAL = "general"

BUILT_IN: tuple[Category, ...] = (
    Category(GENERAL),
    Category("transaction", over_limit=OverLimit.DEFER),
    Category("security", is_required=True, over_limit=OverLimit.DEFER),
    Category(
        "one_time_code",
        parent="security",
        is_required=True,
        over_limit=OverLimit.DEFER,
        on_unknown=OnUnknown.GIVE_UP,
        expires_after=timedelta(minutes=10),
    ),
    Category("marketing", is_on=False, tries=1),
    Category("social"),
    Category("like", parent="social", is_gathered=True),
    Category("follow", parent="social", is_gathered=True),
    Category("comment", parent="social", is_gathered=True),
    Category("mention", parent="social", is_gathered=True),
)


class Categories:
    """The registry: built-in categories, and the operator's own ones in their place or beside them."""

    def __init__(self, own: Iterable[Category] = ()) -> None:
        self._by_name: dict[str, Category] = {c.name: c for c in (*BUILT_IN, *own)}

    def named(self, name: str) -> Category:
        """The category; one that is not registered is a child of `general`."""
        found = self._by_name.get(name)
        return found if found is not None else Category(name, parent=GENERAL)

    def names(self) -> list[str]:
        return list(self._by_name)

    def lineage(self, name: str) -> list[Category]:
        """The category, its parent, and so on; a circle is cut where it closes."""
        line: list[Category] = []
        following: str | None = name
        while following is not None and all(c.name != following for c in line):
            line.append(self.named(following))
            following = line[-1].parent
        return line

    def is_on(self, name: str, wishes: Mapping[str, bool]) -> bool:
        """Whether a person with these wishes gets the category: a parent that is off turns its children off."""
        line = self.lineage(name)
        if any(c.is_required for c in line):
            return True
        return all(wishes.get(c.name, c.is_on) for c in line)
