"""Attachments: kept once for all recipients, read by nobody who does not ask, and forgotten with their batch (N1.4)."""

from datetime import timedelta
from typing import Any

import pytest

from noroshi.domain.attachments import Attachment
from noroshi.domain.deliveries import Verdict
from noroshi.domain.ids import BatchId
from noroshi.storage.batches import StoredBatches
from noroshi.storage.queue import StoredQueue
from tests.cast import HANAKO, MALLORY, TARO
from tests.conformance.ground import ELSEWHERE, HERE, Ground

DAY = timedelta(days=1)
EVERY_BYTE = bytes(range(256)) * 3_000
FILES = {"請求書.pdf": EVERY_BYTE, "empty.txt": b""}
TOLD = (Attachment("請求書.pdf", "text/plain", len(EVERY_BYTE)), Attachment("empty.txt", "text/plain", 0))


@pytest.fixture
async def ground(ground: Ground) -> Ground:
    await ground.meet(HANAKO, TARO)
    await ground.write()
    return ground


async def kept(ground: Ground, batch_id: BatchId) -> list[bytes]:
    return await ground.store.attachments.contents(HERE, batch_id)


async def test_every_byte_is_kept_in_order_and_claims_tell_only_of_it(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO, TARO, files=FILES)
    assert await kept(ground, batch_id) == list(FILES.values())
    claims = (await ground.take()).claims
    assert [claim.attachments for claim in claims] == [TOLD, TOLD]
    assert claims[0].attachments is claims[1].attachments
    view = await ground.store.batches.find(HERE, batch_id)
    assert view is not None and view.attachments == TOLD


async def test_a_batch_without_any_has_none_beside_one_that_has(ground: Ground) -> None:
    bare = await ground.accept(HANAKO)
    await ground.accept(TARO, files=FILES)
    assert await kept(ground, bare) == []
    told = {claim.recipient.user_id: claim.attachments for claim in (await ground.take()).claims}
    assert told == {"hanako": (), "taro": TOLD}
    view = await ground.store.batches.find(HERE, bare)
    assert view is not None and view.attachments == ()


async def test_they_lie_there_once_however_many_people_get_them(ground: Ground) -> None:
    people = await ground.crowd(50)
    batch_id = await ground.accept(*people, files=FILES)
    assert len((await ground.take()).claims) == 50
    assert len(await kept(ground, batch_id)) == 2


async def test_what_lost_its_key_leaves_nothing_behind(ground: Ground) -> None:
    first, second = (ground.batch("hanako", key="k", files=FILES) for _ in range(2))
    await ground.keep(first)
    await ground.keep(second)
    assert await kept(ground, first.head.batch_id) == list(FILES.values())
    assert await kept(ground, second.head.batch_id) == []


async def test_another_tenant_cannot_read_them(ground: Ground) -> None:
    await ground.meet(MALLORY, tenant=ELSEWHERE)
    batch_id = await ground.accept(HANAKO, files=FILES)
    assert await ground.store.attachments.contents(ELSEWHERE, batch_id) == []


async def test_they_are_kept_as_long_as_anything_may_be_sent_again_and_forgotten_with_the_batch(ground: Ground) -> None:
    batch_id = await ground.accept(HANAKO, TARO, files=FILES)
    first, second = (await ground.take()).claims
    await ground.settle(first, Verdict.SENT)
    ground.clock.move(DAY)
    await ground.store.history.forget_before(ground.now, 100)
    assert len(await kept(ground, batch_id)) == 2
    await ground.settle(second, Verdict.SENT)
    while await ground.store.history.forget_before(ground.now, 100):
        pass
    assert await ground.store.batches.find(HERE, batch_id) is None
    assert await kept(ground, batch_id) == []


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the statements that keeping and loading run, wherever a store runs them."""
    names: list[str] = []

    def watching(kind: type, method: str) -> None:
        inner = getattr(kind, method)

        async def watched(self: Any, statements: Any, *parts: Any, **more: Any) -> Any:
            return await inner(self, _Watched(statements, names), *parts, **more)

        monkeypatch.setattr(kind, method, watched)

    watching(StoredBatches, "_keep")
    watching(StoredQueue, "_load")
    return names


class _Watched:
    """A turn or a reading that notes every statement that has something to do."""

    def __init__(self, inner: Any, names: list[str]) -> None:
        self._inner = inner
        self._names = names

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._inner, name)
        if name not in {"change_many", "run", "run_many", "rows", "rows_for", "one", "has_changed"}:
            return member

        def call(statement: str, *parameters: Any) -> Any:
            if parameters != ([],):
                self._names.append(statement)
            return member(statement, *parameters)

        return call


async def test_a_batch_without_attachments_costs_no_statement_more(ground: Ground, counted: list[str]) -> None:
    await ground.accept(HANAKO)
    await ground.take()
    counted.clear()  # the template was read, and is remembered
    await ground.accept(HANAKO)
    await ground.take()
    bare = list(counted)
    counted.clear()
    await ground.accept(TARO, files=FILES)
    await ground.take()
    assert "insert_batch_body" in bare and "bodies_of_batches" in bare
    assert sorted(counted) == sorted([*bare, "insert_attachment"])
