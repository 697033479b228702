"""`noroshi` whose streams are told of a round of entries at once, when all of them are committed; prints when that was.

    BENCH_STREAMS=2000 python -m bench.held_streams serve --port 8000

What is measured from then on is the fan-out alone: neither accepting nor committing takes part.
"""

import os
import sys
import time
from collections.abc import Iterable, Sequence

from noroshi.domain.inbox import News, Owner
from noroshi.entrypoints.cli.main import app
from noroshi.flow.send.in_app.inbox.live import LiveStreams


def hold_rounds(count: int) -> None:
    """A round is so many entries, one for each stream. Nobody looks for lost hints meanwhile: in one process there are
    none, and a look would find, and hand over, entries that are held."""
    hand_over = LiveStreams.hand_over
    held: list[News] = []

    def hold(self: LiveStreams, news: Sequence[News]) -> None:
        held.extend(one for one in news if one.entries)
        if without := [one for one in news if not one.entries]:
            hand_over(self, without)
        if len(held) < count:
            return
        began = time.monotonic()
        hand_over(self, held)
        held.clear()
        print(began, flush=True)

    def look_nowhere(_self: LiveStreams, _owners: Iterable[Owner]) -> None:
        return

    LiveStreams.hand_over = hold  # type: ignore[method-assign]
    LiveStreams.look_into = look_nowhere  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    if streams := int(os.environ.get("BENCH_STREAMS", "0")):
        hold_rounds(streams)
    app(prog_name="noroshi", args=sys.argv[1:])
