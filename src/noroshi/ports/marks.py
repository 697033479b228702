"""Marks: what a store says of itself, and what nobody may do with it meanwhile."""

from typing import Protocol

from noroshi.domain.marks import Mark


class Marks(Protocol):
    async def read(self) -> dict[Mark, str]: ...

    async def put(self, mark: Mark, value: str) -> None: ...

    async def remove(self, mark: Mark) -> None: ...
