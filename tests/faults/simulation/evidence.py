"""The evidence of a world that is over: what its callers heard, what its store holds, what its provider saw."""

from collections.abc import Sequence

from msgspec import Struct

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.ids import show
from tests.faults.simulation.asks import Ask
from tests.faults.simulation.callers import PausedSpan
from tests.faults.simulation.facts import Facts, NotificationFacts
from tests.faults.simulation.provider import Provider


class Violation(Struct, frozen=True):
    invariant: str
    text: str


class Evidence(Struct):
    """Everything there is to judge. `alone`: the lives in which one process at a time was at work, undisturbed."""

    facts: Facts
    asks: Sequence[Ask]
    provider: Provider
    per_second: int | None
    alone: set[int]
    paused: Sequence[PausedSpan]


def name_of(one: NotificationFacts) -> str:
    return f"{one.batch.name} {one.user_id} {one.channel} ({show(one.notification_id)[-6:]})"


def place_of(key: DeliveryKey) -> str:
    return f"{show(key.notification_id)}/{key.endpoint_id}"
