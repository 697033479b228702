"""`noroshi move` that ends itself with SIGKILL at its n-th step: data folder, from, to and n in."""

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

from noroshi.care.move import move
from noroshi.settings import read_settings
from noroshi.storage import tables


def main(data: str, source: str, target: str, last_step: int) -> None:
    steps = count(1)

    def tell(_table: str, _done: int, _whole: int) -> None:
        if next(steps) == last_step:
            os.kill(os.getpid(), signal.SIGKILL)

    tables.PAGE_ROWS = 40
    old, new = (read_settings({}, {"data": str(Path(data)), "store": url}) for url in (source, target))
    asyncio.run(move(old, new, tell))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
