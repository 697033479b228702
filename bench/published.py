"""What is published: the rows of a run in; the page and the chart of all runs, each row with the run it is from, out.

    python -m bench.published

draws both anew from `published.json`, without measuring anything.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.chart import chart
from bench.figures import Row
from bench.table import page

ROOT = Path(__file__).parent.parent
KEPT = Path("bench/published.json")
PAGE = Path("docs/benchmarks.md")
CHART = Path("docs/pictures/benchmarks.svg")


class Published(Struct, frozen=True):
    """The rows of one scenario, with the day and the circumstances of the run that they are from."""

    scenario: str
    day: str
    run: str
    rows: list[Row]


def merge(known: Sequence[Published], fresh: Published, order: Sequence[str]) -> list[Published]:
    """A scenario that was run replaces its own rows, the others stay; one that is no longer in `order` falls out."""
    by_name = {one.scenario: one for one in (*known, fresh)}
    return [by_name[name] for name in order if name in by_name]


def publish(fresh: Published, order: Sequence[str], root: Path = ROOT) -> None:
    """After each scenario: a run that ends before its time has not been for nothing."""
    kept = msgspec.json.encode(merge(read(root), fresh, order))
    (root / KEPT).write_bytes(msgspec.json.format(kept, indent=1) + b"\n")
    draw(root)


def read(root: Path = ROOT) -> list[Published]:
    path = root / KEPT
    return msgspec.json.decode(path.read_bytes(), type=list[Published]) if path.exists() else []


def draw(root: Path = ROOT) -> None:
    published = read(root)
    for path, text in ((PAGE, page(published)), (CHART, chart(published))):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    draw()
