"""Beside a run: waits until the process that began it is gone, then sweeps what that has left."""

import sys
from pathlib import Path

from tests.services.runs import locked, sweep


def main(run: Path) -> None:
    try:
        with locked(run / "alive"):
            sweep(run)
    except FileNotFoundError:
        return  # it was swept in time


if __name__ == "__main__":
    main(Path(sys.argv[1]))
