"""The provider's ledger as a file of JSON lines: what was taken, when it was asked, and questions to both."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.instants import Instant, plus

T = TypeVar("T", bound=Struct)

_SECOND = 1_000_000


class TakenMessage(Struct, frozen=True):
    """A message the provider took and answers for."""

    at: Instant
    key: DeliveryKey
    user_id: str
    channel: str
    content_hash: str
    number: int
    sender: str = ""


class SeenRequest(Struct, frozen=True):
    """A request that reached the provider, whatever became of it. `wait_until`: it was answered 429 at
    `answered_at` with a Retry-After that ends then."""

    at: Instant
    messages: int
    answered_at: Instant | None = None
    wait_until: Instant | None = None


def requests_path(ledger: Path) -> Path:
    """Where the requests are noted, beside the ledger."""
    return ledger.with_name(ledger.name + ".requests")


def read_taken(ledger: Path) -> list[TakenMessage]:
    return _read(ledger, TakenMessage)


def read_requests(ledger: Path) -> list[SeenRequest]:
    """In the order in which they were dealt with, not quite that of their arrival."""
    return _read(requests_path(ledger), SeenRequest)


def drop_torn_line(path: Path) -> None:
    """Cuts off a last line that a killed provider did not finish: it was never answered."""
    with path.open("a+b") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        os.fsync(file.fileno())


def within_waits(requests: Sequence[SeenRequest], longest: timedelta, grace: timedelta) -> list[SeenRequest]:
    """The requests that came while a Retry-After was running (F13: there must be none).

    `longest` is how much of an absurd wait the product honours; `grace` forgives what was already on its way
    when the 429 was answered."""
    waits = [
        (plus(request.answered_at, grace), min(request.wait_until, plus(request.answered_at, longest)))
        for request in requests
        if request.wait_until is not None and request.answered_at is not None
    ]
    return [request for request in requests if any(begin < request.at < end for begin, end in waits)]


def largest_second(taken: Iterable[TakenMessage]) -> int:
    """The most that were taken in any window of one second (I9)."""
    moments = sorted(entry.at for entry in taken)
    return max((bisect_left(moments, moment + _SECOND) - first for first, moment in enumerate(moments)), default=0)


def copies(taken: Iterable[TakenMessage]) -> dict[DeliveryKey, list[TakenMessage]]:
    """Every delivery with all the times it was taken, in order."""
    by_key: dict[DeliveryKey, list[TakenMessage]] = {}
    for entry in taken:
        by_key.setdefault(entry.key, []).append(entry)
    return by_key


def _read(path: Path, kind: type[T]) -> list[T]:
    decoder = msgspec.json.Decoder(kind)
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [decoder.decode(line) for line in whole.splitlines()]
