"""`noroshi` whose streams are told of a round of entries at once, when all of them are committed; prints when that was.

    BENCH_STREAMS=2000 python -m bench.held_streams serve --port 8000

What is measured from then on is the fan-out alone: neither accepting nor committing takes part.
"""

import os
import sys
import time
from collections.abc import Sequence

from noroshi.domain.inbox import News
from noroshi.entrypoints.cli.main import app
from noroshi.flow.send.in_app.inbox.live import LiveStreams


def hold_rounds(count: int) -> None:
    """A round is so many entries, one for each stream."""
    hand_over = LiveStreams.hand_over
    held: list[Sequence[News]] = []

    def hold(self: LiveStreams, news: Sequence[News]) -> None:
        held.append(news)
        if sum(map(len, held)) < count:
            return
        began = time.monotonic()
        for committed in held:
            hand_over(self, committed)
        held.clear()
        print(began, flush=True)

    LiveStreams.hand_over = hold  # type: ignore[method-assign]


if __name__ == "__main__":
    if streams := int(os.environ.get("BENCH_STREAMS", "0")):
        hold_rounds(streams)
    app(prog_name="noroshi", args=sys.argv[1:])
