"""The provider that does nothing: attempts in, every one taken and noted, outcomes out.

What it took and when stands in the file that NOROSHI_BENCH_TALLY names, so that a benchmark can say afterwards that
nothing was lost or sent twice, and how long a message was on its way.
"""

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from struct import Struct as Layout

from noroshi.domain.deliveries import Attempt
from noroshi.domain.outcomes import Outcome, Sent
from noroshi.flow.send.parts import Parts
from noroshi.ports.clock import Clock

TALLY = "NOROSHI_BENCH_TALLY"
ACCOUNT = "noop"

_HEAD = Layout("<qI")
_ID_BYTES = 16


class NoopProvider:
    """Serves e-mail, a hundred at a time and as fast as it is asked."""

    account = ACCOUNT
    channels = frozenset({"email"})
    max_batch = 100
    attempt_timeout = timedelta(seconds=10)
    per_second = None

    def __init__(self, tally: Path) -> None:
        self._tally = os.open(tally, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        ids = [attempt.key.notification_id for attempt in attempts]
        os.write(self._tally, _HEAD.pack(time.monotonic_ns(), len(ids)) + b"".join(ids))
        return [Sent(f"noop-{one.hex()}") for one in ids]

    def validate_target(self, address: str) -> str | None:  # noqa: ARG002 - every address will do
        return None


class SlowProvider(NoopProvider):
    """Answers one message after 50 ms."""

    max_batch = 1

    def __init__(self, tally: Path, clock: Clock) -> None:
        super().__init__(tally)
        self._clock = clock

    async def send(self, attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await self._clock.sleep(timedelta(milliseconds=50))
        return await super().send(attempts)


def factory(_parts: Parts) -> NoopProvider:
    return NoopProvider(Path(os.environ[TALLY]))


def slow_factory(parts: Parts) -> SlowProvider:
    return SlowProvider(Path(os.environ[TALLY]), parts.clock)


def read_tally(path: Path) -> list[tuple[bytes, float]]:
    """(notification, seconds of the monotonic clock) of everything taken, in its order."""
    taken: list[tuple[bytes, float]] = []
    content = path.read_bytes() if path.exists() else b""
    place = 0
    while place < len(content):
        nanoseconds, count = _HEAD.unpack_from(content, place)
        place += _HEAD.size
        for _ in range(count):
            taken.append((content[place : place + _ID_BYTES], nanoseconds / 1e9))
            place += _ID_BYTES
    return taken


class TallyCount:
    """How many were taken so far, read on from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._count = 0

    def count(self) -> int:
        if not self._path.exists():
            return 0
        with self._path.open("rb") as file:
            file.seek(self._place)
            content = file.read()
        place = 0
        while place + _HEAD.size <= len(content):
            _, count = _HEAD.unpack_from(content, place)
            end = place + _HEAD.size + count * _ID_BYTES
            if end > len(content):  # is just being written
                break
            place = end
            self._count += count
        self._place += place
        return self._count
