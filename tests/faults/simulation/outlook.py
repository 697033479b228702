"""What is left to do in a store: its rows go in; what is under way and when the next thing falls due come out."""

import apsw
from msgspec import Struct

from noroshi.domain.instants import Instant


class Outlook(Struct, frozen=True):
    """`leased`: deliveries being carried. `unfinished`: everything else that will still happen."""

    leased: int
    unfinished: int
    next_due: Instant | None

    @property
    def is_empty(self) -> bool:
        return not self.leased and not self.unfinished


_LOOK = """
WITH due (at) AS (
    SELECT due_at FROM deliveries WHERE state <> 1 AND instr(lane, ?1) = 0
    UNION ALL SELECT due_at FROM holds
    UNION ALL SELECT due_at FROM batches WHERE state IN (0, 2)
)
SELECT (SELECT count(*) FROM deliveries WHERE state = 1 AND instr(lane, ?1) = 0), (SELECT count(*) FROM due),
    (SELECT min(at) FROM due)
"""


def look(keeper: apsw.Connection, ignored: str = "") -> Outlook:
    """The lanes of the account `ignored` are nobody's at the moment."""
    return Outlook(*keeper.execute(_LOOK, (f".{ignored or '#'}.",)).fetchall()[0])
