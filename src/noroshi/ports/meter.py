"""Metrics: counted by name and labels; the names are a registry in the meter's own module."""

from typing import Protocol


class Meter(Protocol):
    def count(self, name: str, by: float = 1, **labels: str) -> None: ...

    def observe(self, name: str, value: float, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...
