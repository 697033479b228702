"""Batches: the facts that the decision of a slice is given."""

from datetime import timedelta
from typing import Unpack

import pytest

from noroshi.domain.addressing import SliceChanges, SliceFacts
from noroshi.domain.people import Preferences, QuietHours
from tests.cast import ALICE, HANAKO, JIRO, SAKURA, STRANGER, TARO
from tests.conformance.ground import (
    HERE,
    HOUR,
    MINUTE,
    SECOND,
    BatchWords,
    Ground,
    decide,
)

DAY = timedelta(days=1)
ASLEEP = Preferences(quiet_hours=QuietHours(enabled=True, start="17:00", end="19:00"))
"""Left alone from 17:00 to 19:00 Tokyo time: the tests begin at 18:00."""


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO, ALICE, JIRO, SAKURA)
    await ground.write("welcome", "email", "push")


SEEN: list[SliceFacts] = []


def look(facts: SliceFacts) -> SliceChanges:
    SEEN.append(facts)
    return decide(facts)


async def facts_of(ground: Ground, *user_ids: str, **words: Unpack[BatchWords]) -> SliceFacts:
    """What the decision of a batch for these people is given."""
    await ground.store.batches.keep([ground.batch(*user_ids, **words)], 500, look)
    return SEEN.pop()


async def test_the_facts_name_every_known_person_with_wishes_and_endpoints(ground: Ground) -> None:
    await ground.wish(TARO, ASLEEP)
    facts = await facts_of(ground, "hanako", "taro", "sakura", STRANGER)
    assert facts.now == ground.now
    assert [c.user_id for c in facts.candidates] == ["hanako", "taro", "sakura", STRANGER]
    assert set(facts.people) == {(HERE, "hanako"), (HERE, "taro"), (HERE, "sakura")}
    hanako, taro = facts.people[HERE, "hanako"], facts.people[HERE, "taro"]
    assert (hanako.locale, hanako.timezone, hanako.preferences) == ("ja", "Asia/Tokyo", None)
    assert taro.preferences == ASLEEP
    assert {(e.kind, e.is_active, e.is_suppressed) for e in hanako.endpoints} == {
        ("email", True, False),
        ("phone", True, False),
        ("push", True, False),
    }
    assert facts.people[HERE, "sakura"].endpoints == ()


async def test_the_facts_count_what_each_person_had_in_the_last_hour_and_day(ground: Ground) -> None:  # N8.1
    first = ground.now
    await ground.accept(HANAKO)
    ground.clock.move(HOUR - SECOND)
    second = ground.now
    await ground.accept(HANAKO)
    assert (await facts_of(ground, "hanako")).usage[HERE, "hanako", "email"] == (2, 2, first, first)
    ground.clock.move(SECOND)
    assert (await facts_of(ground, "hanako", content=78)).usage[HERE, "hanako", "email"][:3] == (2, 3, second)
    ground.clock.move(DAY)
    assert (HERE, "hanako", "email") not in (await facts_of(ground, "hanako", content=79)).usage


async def test_the_facts_know_the_content_a_person_got_within_five_minutes(ground: Ground) -> None:  # N9.1
    await ground.accept(HANAKO, content=77)
    assert len((await facts_of(ground, "hanako", "taro", content=77)).duplicates) == 1
    assert (await facts_of(ground, "hanako", content=78)).duplicates == set()
    assert (await facts_of(ground, "hanako", content=77, channels=("push",))).duplicates == set()
    ground.clock.move(5 * MINUTE)
    assert (await facts_of(ground, "hanako", content=77)).duplicates == set()


async def test_the_facts_name_the_newest_active_version_of_each_template(ground: Ground) -> None:  # N2.2
    (old,) = await ground.write("news", "email", locale="ja")
    (new,) = await ground.write("news", "email", locale="ja")
    (push,) = await ground.write("news", "push", locale="en")

    async def rows() -> set[int]:
        facts = await facts_of(ground, "hanako", template_id="news")
        return {choice.row for choice in facts.templates[HERE, "news"]}

    assert await rows() == {new.row, push.row}
    await ground.store.templates.rollback(HERE, "news", "email", "ja", "", old.version)
    assert await rows() == {old.row, push.row}
