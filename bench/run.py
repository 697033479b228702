"""One run of the benchmarks: how large it is, where it works, and the population it copies."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.population import Population, build_population
from bench.probe import durable_call_ms


class Run:
    """Given to every scenario. P1 is built when it is first asked for. `cluster` is where the last PostgreSQL was."""

    def __init__(self, folder: Path, *, is_full: bool) -> None:
        self.folder = folder
        self.is_full = is_full
        self.cluster = folder
        self.pairs = 5 if is_full else 2
        self._population: Population | None = None
        self._copies = count(1)

    def pick(self, quick: float, full: float) -> float:
        """A length or a number, by the size of the run."""
        return full if self.is_full else quick

    @property
    def population(self) -> Population:
        if self._population is None:
            self._population = build_population(self.folder / "p1")
        return self._population

    @contextmanager
    def copy_of(self, population: Population | None = None) -> Iterator[Population]:
        """A population to be used up."""
        copied = (population or self.population).copy(self.folder / f"copy-{next(self._copies)}")
        try:
            yield copied
        finally:
            copied.remove()

    def probe(self) -> float:
        return durable_call_ms(self.folder)
