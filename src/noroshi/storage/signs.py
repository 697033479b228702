"""Signs: what a database says of its own condition, for whoever examines it."""

from msgspec import Struct

from noroshi.domain.instants import Instant


class SqliteSigns(Struct, frozen=True):
    library: str
    file_bytes: int
    log_bytes: int
    journal_mode: str


class TableSigns(Struct, frozen=True):
    """`vacuumed_at` is the last time autovacuum ran; None: never."""

    name: str
    bytes: int
    live: int
    dead: int
    vacuumed_at: Instant | None


class PostgresSigns(Struct, frozen=True):
    """`clock_ahead` is by how many seconds the server's clock is ahead of ours; `oldest_transaction` how many seconds
    the oldest transaction has been open."""

    version: int
    settings: dict[str, str]
    clock_ahead: float
    connections: int
    oldest_transaction: float
    standbys: int
    is_standby: bool
    days: int
    tables: list[TableSigns]
