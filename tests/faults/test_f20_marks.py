"""F20, its in-app part: what people's pages say of their inboxes comes ten times over, out of order, days late, of
entries that are not there and with another tenant's key: it ends as if each had come once."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from noroshi.domain.ids import TenantId
from noroshi.domain.inbox import Marked, Owner
from noroshi.storage import inbox
from noroshi.storage.turns import Turn
from tests.cast import HANAKO
from tests.faults.machinery.kept_store import Stores
from tests.faults.machinery.report import publish, section
from tests.stories.conftest import take_rounds_away
from tests.stories.world import World, kinds

INBOX = "/api/v1/users/hanako/inbox"
ENTRIES = 8
MARKS = [f"{number}/read" for number in (1, 2, 3, 4)] + [f"{number}/archive" for number in (3, 4, 5, 6)]
NOT_THERE = ["0/read", "99/read", "99/archive", "x/read"]
TIMES = 10
LATE = timedelta(days=3)
ELSEWHERE = TenantId(2)


class End(Struct, frozen=True):
    """What is left: what each entry is, how many are unread, and what the history says."""

    entries: list[tuple[int, bool, bool]]
    unread: int
    trails: list[tuple[str, list[str]]]


@contextmanager
def a_world(folder: Path, store: Stores) -> Iterator[World]:
    with store.opened(folder) as kept:
        world = World(folder, inbox="on", **({} if store.kind == "sqlite" else {"store": kept.place}))
        world.meet(HANAKO)
        world.write("welcome", "in_app", body="{{ n }}")
        try:
            yield world
        finally:
            world.stop()


def lived(folder: Path, store: Stores, *, times: int, late: timedelta, order: random.Random | None = None) -> End:
    """Entries are told, then marked so often and so late."""
    with a_world(folder, store) as world:
        batches = [world.tell(HANAKO, channels=["in_app"], data={"n": n}) for n in range(ENTRIES)]
        world.advance(late)
        marks = MARKS * times
        if order is not None:
            marks += NOT_THERE
            order.shuffle(marks)
            stranger = world.client(tenant=ELSEWHERE)
            assert {world.call("POST", f"{INBOX}/{mark}", client=stranger).status for mark in MARKS} == {404}
        for mark in marks:
            status = world.call("POST", f"{INBOX}/{mark}").status
            assert status == (404 if mark in NOT_THERE else 200), (mark, status)
        return end_of(world, batches)


def end_of(world: World, batches: list[str]) -> End:
    listed = [*world.listed(INBOX), *world.listed(f"{INBOX}?archived=true")]
    told = [world.notification(batch_id) for batch_id in batches]
    return End(
        sorted((one["entry_id"], one["read_at"] is not None, one["archived_at"] is not None) for one in listed),
        world.get(f"{INBOX}/unread-count")["unread"],
        [(one["status"], kinds(one)) for one in told],
    )


async def _mark_anew(self: inbox.StoredInbox, owner: Owner, number: int, *, is_archived: bool) -> Marked | None:
    """A bug: every mark is taken for the first."""

    async def work(turn: Turn) -> Marked | None:
        held = await turn.one("hold_inbox", *owner)
        found: Any = None if held is None else await turn.one("find_entry", *owner, number)
        if found is None:
            return None
        entry = (*found[:2], None, None)
        head = await (inbox._archive if is_archived else inbox._read)(turn, owner, [entry])
        return Marked(number, turn.now, None, head)

    return await self._turns.turn("mark_inbox", work)


def test_marks_ten_times_over_and_three_days_late_end_as_if_each_came_once(
    tmp_path: Path, store: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:  # F20, I10, I4
    take_rounds_away(monkeypatch)
    once = lived(tmp_path / "once", store, times=1, late=timedelta(0))
    often = lived(tmp_path / "often", store, times=TIMES, late=LATE, order=random.Random("F20"))
    monkeypatch.setattr(inbox.StoredInbox, "mark", _mark_anew)
    control = lived(tmp_path / "control", store, times=TIMES, late=LATE, order=random.Random("F20"))
    rows = [
        f"| {name} | {end.unread} | {'the same' if end == once else 'not the same'} |"
        for name, end in (("each once", once), (f"each {TIMES} times, 3 days late", often), ("control", control))
    ]
    publish(section("F20", store.kind), "\n".join(["| marks | unread | end |", "|---|--:|---|", *rows]))
    assert once.unread == 2
    assert [status for status, _ in once.trails] == ["OPENED"] * 4 + ["DELIVERED"] * 4
    assert often == once
    assert control != once, "marks that count again went unnoticed"


def test_a_mark_that_comes_before_its_entry_marks_nothing(
    tmp_path: Path, store: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:  # F20
    take_rounds_away(monkeypatch)
    with a_world(tmp_path, store) as world:
        assert world.call("POST", f"{INBOX}/1/read").status == 404
        batch_id = world.tell(HANAKO, channels=["in_app"], data={"n": 0})
        assert end_of(world, [batch_id]) == End([(1, False, False)], 1, [("DELIVERED", ["queued", "delivered"])])
