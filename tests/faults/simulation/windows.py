"""Which crash windows (RELIABILITY 3) a crash has hit: what the store and the callers show right after it goes in."""

from collections import Counter
from collections.abc import Iterable, Mapping

import apsw

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.instants import Instant
from tests.faults.simulation.asks import Ask
from tests.faults.simulation.provider import Provider

WINDOWS: Mapping[str, str] = {
    "W1": "crash before the accept commit: a call waits, nothing of it is in the store",
    "W2": "crash after the accept commit, before the answer",
    "W4": "crash between the commit that queues deliveries and the word to their lanes",
    "W9": "two workers held one delivery: the result of the lost claim came late",
    "W10": "crash with deliveries claimed that were never handed to the provider",
    "W11": "crash with messages taken by the provider and not recorded",
    "W12": "crash right before or after a commit that records outcomes",
    "W13": "crash right before or after the commit that owns a content, with its call unanswered",
    "W16": "crash while a retry waits for its time",
    "W26": "shutdown with deliveries claimed",
    "W27": "crash by a poisonous message",
}
LEAST = 50
"""How often each window must be hit in a run of 2,000 seeds."""


def leased(keeper: apsw.Connection) -> list[tuple[DeliveryKey, int]]:
    """Deliveries whose claim has no outcome, with the tries they had before."""
    rows = keeper.execute("SELECT tenant, notification_id, endpoint_id, tries FROM deliveries WHERE state = 1").fetchall()
    return [(DeliveryKey(*row[:3]), row[3]) for row in rows]


def windows_of_crash(
    *,
    keeper: apsw.Connection,
    asks: Iterable[Ask],
    where: str,
    now: Instant,
    in_flight: int,
    provider: Provider,
    is_unannounced: bool,
) -> Counter[str]:
    """`in_flight`: what the provider took and the store does not know."""
    hit: Counter[str] = Counter()
    kept = {row[0] for row in keeper.execute("SELECT digest_key FROM batches")}
    waiting = [ask for ask in asks if ask.outstanding and not ask.is_answered]
    hit["W1"] = any(ask.name not in kept for ask in waiting)
    hit["W2"] = any(ask.name in kept for ask in waiting)
    hit["W4"] = is_unannounced and _has(keeper, "state = 0 AND fence = 0")
    handed = {(one.attempt.key, one.attempt.number) for one in provider.handed}
    hit["W10"] = any((key, tries + 1) not in handed for key, tries in leased(keeper))
    hit["W11"] = in_flight > 0
    hit["W12"] = where.startswith("commit.settle.")
    hit["W13"] = where.startswith("commit.accept.") and bool(waiting)
    hit["W16"] = _has(keeper, f"state = 0 AND tries > 0 AND due_at > {now}")
    hit["W27"] = where.startswith("poison")
    return +hit


def _has(keeper: apsw.Connection, condition: str) -> bool:
    found = keeper.execute(f"SELECT EXISTS (SELECT 1 FROM deliveries WHERE {condition})").get  # noqa: S608 - ours
    return bool(found)
