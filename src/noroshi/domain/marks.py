"""Marks of a store: whether it may be served, and what an operator must decide first."""

from enum import StrEnum

from msgspec import Struct

from noroshi.domain.instants import Instant


class Mark(StrEnum):
    RESTORING = "restoring"
    """Rows of a backup are being put in; the value is the backup's identity."""

    RESTORED = "restored"
    """All is there and paused, until an operator resumes; the value is a Restored."""

    MOVING = "moving"
    """Rows are being moved, from here or to here; the value is the identity of the move."""

    MOVED = "moved"
    """Everything was moved from here."""

    ARRIVED = "arrived"
    """Everything was moved to here; the value is the identity of the move."""


WHY_NOT_SERVED: dict[Mark, str] = {
    Mark.RESTORING: "a backup is half restored into this store: run `noroshi restore` again",
    Mark.MOVING: "this store is half moved: run `noroshi move` again, or give it up with `noroshi move --give-up`",
    Mark.MOVED: "this store was moved to another: set NOROSHI_STORE to that one, or serve this one after all with"
    " `noroshi move --give-up`",
}


class Restored(Struct, frozen=True):
    """When the backup was taken, and when it was put in: what happened between the two is not known here."""

    taken_at: Instant
    restored_at: Instant
