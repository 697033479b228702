"""Company: a store in, the same database as another process would open it out."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from noroshi.machine.crash_points import NoCrashPoints
from noroshi.machine.meter import NullMeter
from noroshi.ports.clock import Clock
from noroshi.storage.postgres.store import PostgresStore
from tests.conformance.stores import Store, a_sealer


class _Noting(NullMeter):
    """Notes which turns had to be taken again, and why."""

    def __init__(self, again: Counter[str]) -> None:
        self._again = again

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        if name == "store_turns_again_total":
            self._again[labels["error"]] += int(by)


def _url_of(store: Store) -> str | None:
    """Where the database is; None for a file."""
    return store._url if isinstance(store, PostgresStore) else None


@asynccontextmanager
async def beside(store: Store, clock: Clock, again: Counter[str] | None = None) -> AsyncIterator[Store]:
    """A file is served by one process alone: there the two are one. `again` counts the turns that were taken again."""
    url = _url_of(store)
    if url is None:
        yield store
        return
    other = PostgresStore(
        url,
        sealer=a_sealer(),
        meter=_Noting(Counter() if again is None else again),
        crash_points=NoCrashPoints(),
        clock=clock,
        holder="another process",
        is_unsafe=True,
    )
    await other.start()
    yield other
    await other.stop()
