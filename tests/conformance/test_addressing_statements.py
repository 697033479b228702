"""Addressing is set-based on every store: as many statements for 500 people as for one (N5.1)."""

import asyncio
from typing import Any

import pytest

from noroshi.domain.people import Preferences, QuietHours
from noroshi.ports.batches import Turn as TurnResult
from noroshi.storage import batches
from noroshi.storage.batches import StoredBatches
from tests.cast import Person
from tests.conformance.ground import Ground

MANY = 500
MOST = 25
CHANNELS = ("email", "push", "in_app")
ASLEEP = Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00"))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements each turn of keeping and deciding has taken."""
    seen: list[int] = []
    keep = StoredBatches._keep

    async def counted(self: StoredBatches, turn: Any, *parts: Any, **more: Any) -> TurnResult:
        result = await keep(self, turn, *parts, **more)
        seen.append(turn.count)
        return result

    monkeypatch.setattr(StoredBatches, "_keep", counted)
    return seen


@pytest.fixture
async def guests(ground: Ground) -> list[Person]:
    """Each with an address and a device; every tenth is asleep."""
    people = [
        Person(f"guest-{n}", f"Guest {n}", email=f"{n}@example.com", devices=(f"device-{n}",)) for n in range(MANY)
    ]
    await asyncio.gather(*(ground.meet(person) for person in people))
    await asyncio.gather(*(ground.wish(person, ASLEEP) for person in people[1::10]))
    await ground.write("welcome", *CHANNELS)
    return people


async def test_addressing_takes_as_many_statements_for_500_people_as_for_one(
    ground: Ground, guests: list[Person], counts: list[int]
) -> None:
    await ground.accept(guests[0], channels=CHANNELS)
    await ground.accept(*(guest for number, guest in enumerate(guests) if number % 10 != 1), channels=CHANNELS)
    await ground.accept(*guests[:2], channels=CHANNELS)
    await ground.accept(*guests, channels=CHANNELS)
    for_one, for_many, for_both_kinds, for_all = counts
    assert (for_many, for_all) == (for_one, for_both_kinds)
    assert for_one < MOST


async def test_a_statement_for_each_person_would_be_found(
    ground: Ground, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""
    people = await ground.crowd(20)
    await ground.write()
    read = batches.read_facts

    async def read_one_by_one(turn: Any, candidates: Any) -> Any:
        for candidate in candidates:
            await read(turn, [candidate])
        return await read(turn, candidates)

    monkeypatch.setattr(batches, "read_facts", read_one_by_one)
    await ground.accept(*people[:2])
    await ground.accept(*people)
    assert counts[1] > counts[0] + 18
