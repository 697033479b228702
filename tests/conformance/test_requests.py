"""Enqueued requests: found by their state, and taken in the commit that keeps their batches (DESIGN 7.1, W6)."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from noroshi.domain.addressing import SliceChanges, SliceFacts
from noroshi.domain.batches import Earlier
from noroshi.domain.enqueued import EnqueuedView, RequestState
from noroshi.domain.ids import BatchId, RequestId, new_batch_id, read
from noroshi.domain.instants import Instant, plus
from noroshi.domain.priorities import Priority
from noroshi.domain.requests import Caller, NotificationRequest
from noroshi.flow.accept.enqueued import preparing
from noroshi.flow.accept.prepare import prepare
from noroshi.ports.batches import Turn
from noroshi.storage import requests as stored
from tests.callers import ForeignCaller
from tests.cast import HANAKO, TARO
from tests.conformance.ground import ACCOUNTS, ELSEWHERE, EMAIL, HERE, Ground, decide

FAR = Instant(4_000_000_000_000_000)
"""Later than any clock of a test."""


@pytest.fixture(autouse=True)
async def people_and_a_template(ground: Ground) -> None:
    await ground.meet(HANAKO, TARO)
    await ground.write("welcome", "email", "push")


async def take(ground: Ground, *served: str) -> Turn:
    """One turn of the intake."""
    return await ground.store.batches.keep((), 500, decide, prepare=preparing(frozenset(served or ACCOUNTS)))


def ask(caller: ForeignCaller, **fields: Any) -> RequestId:
    wanted = {"user_ids": ["hanako"], "template_id": "welcome", "channels": ["email"], **fields}
    raw = read(caller.enqueue(**wanted))
    caller.commit()
    assert raw is not None
    return RequestId(raw)


async def find(ground: Ground, request_id: RequestId) -> EnqueuedView:
    view = await ground.store.requests.find(HERE, request_id)
    assert view is not None
    return view


def accepted(ground: Ground, key: str, **fields: Any) -> Any:
    """The batch that the API would make of the same request."""
    request = NotificationRequest(["hanako"], "welcome", ["email"], idempotency_key=key, **fields)
    caller = Caller(HERE, "key", "key", frozenset())
    batch_id = new_batch_id(ground.now // 1000, 77)
    return prepare(caller, request, key, ("email", "push"), ACCOUNTS, ground.now, batch_id)


# taking


async def test_a_request_becomes_a_batch_that_is_decided_in_the_same_turn(
    ground: Ground, caller: ForeignCaller
) -> None:
    request_id = ask(caller, data={"n": 1}, priority="high", created_by="shop", idempotency_key="order-17")
    assert (await find(ground, request_id)).state is RequestState.WAITING
    turn = await take(ground)
    assert (len(turn.enqueued), turn.refused, turn.decided, turn.has_more_enqueued) == (1, {}, 1, False)
    view = await find(ground, request_id)
    assert (view.state, view.code, view.idempotency_key) == (RequestState.TAKEN, None, "order-17")
    assert view.batch_id is not None
    batch = await ground.store.batches.find(HERE, view.batch_id)
    assert batch is not None
    assert (batch.head.created_by, batch.head.priority, batch.data) == ("shop", Priority.HIGH, {"n": 1})
    assert (batch.progress.accepted, batch.progress.undecided) == (1, 0)


async def test_what_was_taken_is_not_taken_again(ground: Ground, caller: ForeignCaller) -> None:
    ask(caller)
    assert len((await take(ground)).enqueued) == 1
    assert (await take(ground)).enqueued == []
    assert len((await ground.take(EMAIL)).claims) == 1


async def test_what_is_rolled_back_was_never_asked_for(ground: Ground, caller: ForeignCaller) -> None:
    caller.enqueue(user_ids=["hanako"], template_id="welcome")
    caller.rollback()
    assert await ground.store.requests.oldest_waiting() is None
    assert (await take(ground)).enqueued == []
    assert await ground.store.requests.list_requests(HERE, None, None, 10) == []


async def test_what_is_not_committed_is_not_seen(ground: Ground, caller: ForeignCaller) -> None:
    caller.enqueue(user_ids=["hanako"], template_id="welcome")
    assert await ground.store.requests.oldest_waiting() is None
    caller.commit()
    assert await ground.store.requests.oldest_waiting() is not None
    assert len((await take(ground)).enqueued) == 1
    assert await ground.store.requests.oldest_waiting() is None


async def test_without_being_asked_to_a_turn_takes_none(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller)
    await ground.keep(ground.batch("taro"))
    assert (await find(ground, request_id)).state is RequestState.WAITING


async def test_of_many_each_is_taken_once_over_several_turns(
    ground: Ground, caller: ForeignCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "REQUESTS_A_TURN", 4)
    for number in range(10):
        ask(caller, data={"n": number})
    turns = [await take(ground) for _ in range(3)]
    assert [(len(turn.enqueued), turn.has_more_enqueued) for turn in turns] == [(4, True), (4, True), (2, False)]
    assert len({batch.head.batch_id for turn in turns for batch in turn.enqueued}) == 10


async def test_of_large_requests_a_turn_takes_few_and_at_least_one(ground: Ground, caller: ForeignCaller) -> None:
    for size in (400_000, 100_000, 100_000, 100_000):
        ask(caller, data={"text": "x" * size})
    turns = [await take(ground) for _ in range(3)]
    assert [(len(turn.enqueued), turn.has_more_enqueued) for turn in turns] == [(1, True), (2, True), (1, False)]


async def test_a_turn_that_fails_leaves_the_request_waiting(ground: Ground, caller: ForeignCaller) -> None:
    def stumble(_facts: SliceFacts) -> SliceChanges:
        raise RuntimeError("a bug")

    request_id = ask(caller)
    with pytest.raises(RuntimeError):
        await ground.store.batches.keep((), 500, stumble, prepare=preparing(ACCOUNTS))
    assert (await find(ground, request_id)).state is RequestState.WAITING
    assert len((await take(ground)).enqueued) == 1


async def test_a_scheduled_request_waits_as_a_batch(ground: Ground, caller: ForeignCaller) -> None:
    later = plus(ground.now, timedelta(hours=1))
    request_id = ask(caller, scheduled_at="2026-03-02T10:00:00Z")
    turn = await take(ground)
    assert (turn.decided, turn.next_due_at) == (0, later)
    assert (await find(ground, request_id)).state is RequestState.TAKEN


# dying


async def test_a_request_without_a_template_is_dead_and_says_why(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller, template_id="no-such", idempotency_key="order-17")
    turn = await take(ground)
    assert (turn.enqueued, turn.refused) == ([], {"unknown_template": 1})
    view = await find(ground, request_id)
    assert (view.state, view.batch_id, view.code) == (RequestState.DEAD, None, "unknown_template")
    assert view.error == "template_id: no template no-such"
    assert (await take(ground)).refused == {}


async def test_a_dead_request_is_taken_after_a_retry(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller, template_id="later", idempotency_key="order-17")
    await take(ground)
    await ground.write("later")
    assert await ground.store.requests.retry(HERE, request_id)
    assert (await find(ground, request_id)).state is RequestState.WAITING
    assert len((await take(ground)).enqueued) == 1
    view = await find(ground, request_id)
    assert (view.state, view.code, view.error) == (RequestState.TAKEN, None, None)


async def test_only_a_dead_request_can_be_retried(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller)
    assert not await ground.store.requests.retry(HERE, request_id)
    await take(ground)
    assert not await ground.store.requests.retry(HERE, request_id)
    assert not await ground.store.requests.retry(HERE, RequestId(b"x" * 16))


async def test_a_channel_that_nobody_serves_is_deadly(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller, channels=["email"])
    assert (await take(ground, "push")).refused == {"channel_not_configured": 1}
    assert (await find(ground, request_id)).code == "channel_not_configured"


UNKNOWN = b'{"user_ids":["a"],"template_id":"t","x":1}'


@pytest.mark.parametrize(
    ("body", "code"), [(b"{", "bad_json"), (b"", "bad_json"), (b"{}", "bad_field"), (UNKNOWN, "unknown_field")]
)
async def test_whatever_somebody_wrote_by_hand_is_judged(
    ground: Ground, caller: ForeignCaller, body: bytes, code: str
) -> None:
    ask(caller, template_id="to be spoilt")
    caller.spoil(body)
    caller.commit()
    fine = ask(caller)
    assert (await take(ground)).refused == {code: 1}
    assert (await find(ground, fine)).state is RequestState.TAKEN


# keys


async def test_a_repeated_key_is_one_request(ground: Ground, caller: ForeignCaller) -> None:
    first = ask(caller, idempotency_key="order-17")
    assert ask(caller, idempotency_key="order-17") == first
    await take(ground)
    assert ask(caller, idempotency_key="order-17", data={"other": 1}) == first
    assert (await take(ground)).enqueued == []


async def test_a_key_that_the_api_has_used_leads_to_its_batch(ground: Ground, caller: ForeignCaller) -> None:
    batch = accepted(ground, "order-17", data={"n": 1})
    await ground.keep(batch)
    request_id = ask(caller, idempotency_key="order-17", data={"n": 1})
    turn = await take(ground)
    assert (turn.enqueued, turn.refused) == ([], {})
    view = await find(ground, request_id)
    assert (view.state, view.batch_id) == (RequestState.TAKEN, batch.head.batch_id)


async def test_a_key_that_the_api_has_used_for_something_else_is_deadly(ground: Ground, caller: ForeignCaller) -> None:
    await ground.keep(accepted(ground, "order-17", data={"n": 1}))
    request_id = ask(caller, idempotency_key="order-17", data={"n": 2})
    assert (await take(ground)).refused == {"idempotency_key_reused": 1}
    assert (await find(ground, request_id)).code == "idempotency_key_reused"


async def test_the_api_is_told_of_the_batch_of_an_enqueued_request(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller, idempotency_key="order-17", data={"n": 1})
    await take(ground)
    batch_id = (await find(ground, request_id)).batch_id
    assert batch_id is not None
    again = await ground.keep(accepted(ground, "order-17", data={"n": 1}))
    assert again.earlier == [Earlier(BatchId(batch_id), is_same=True)]


async def test_a_key_is_free_again_when_it_has_grown_old(ground: Ground, caller: ForeignCaller) -> None:
    first = ask(caller, idempotency_key="order-17")
    assert await ground.store.requests.forget(FAR, Instant(0), 10) == 0, "it still waits"
    await take(ground)
    assert await ground.store.requests.forget(Instant(0), Instant(0), 10) == 0
    assert await ground.store.requests.forget(FAR, Instant(0), 10) == 1
    assert (await find(ground, first)).idempotency_key is None
    assert ask(caller, idempotency_key="order-17") != first


async def test_old_requests_are_forgotten_unless_they_wait(ground: Ground, caller: ForeignCaller) -> None:
    ask(caller, template_id="no-such")
    ask(caller)
    await take(ground)
    waiting = ask(caller)
    assert await ground.store.requests.forget(Instant(0), FAR, 1) == 1
    assert await ground.store.requests.forget(Instant(0), FAR, 10) == 1
    assert await ground.store.requests.forget(Instant(0), FAR, 10) == 0
    assert [view.request_id for view in await ground.store.requests.list_requests(HERE, None, None, 10)] == [waiting]


# who sees what


async def test_requests_are_listed_newest_first_by_state_and_in_pages(ground: Ground, caller: ForeignCaller) -> None:
    dead = [ask(caller, template_id="no-such", data={"n": number}) for number in range(3)]
    await take(ground)
    waiting = ask(caller)
    listing = ground.store.requests.list_requests
    everything = sorted([*dead, waiting], reverse=True)
    assert [view.request_id for view in await listing(HERE, None, None, 10)] == everything
    assert [view.request_id for view in await listing(HERE, None, everything[1], 10)] == everything[2:]
    assert [view.request_id for view in await listing(HERE, RequestState.DEAD, None, 2)] == sorted(dead)[:0:-1]
    assert [view.request_id for view in await listing(HERE, RequestState.WAITING, None, 10)] == [waiting]
    assert await listing(HERE, RequestState.TAKEN, None, 10) == []


async def test_another_tenant_sees_and_touches_nothing(ground: Ground, caller: ForeignCaller) -> None:
    request_id = ask(caller, template_id="no-such")
    await take(ground)
    requests = ground.store.requests
    assert await requests.find(ELSEWHERE, request_id) is None
    assert await requests.list_requests(ELSEWHERE, None, None, 10) == []
    assert not await requests.retry(ELSEWHERE, request_id)
    assert (await find(ground, request_id)).state is RequestState.DEAD


async def test_the_body_is_left_to_the_batch(ground: Ground, caller: ForeignCaller) -> None:
    ask(caller, data={"text": "x" * 10_000})
    dead = ask(caller, template_id="no-such")
    await take(ground)
    bodies = dict(caller.rows("SELECT request_id, body FROM requests"))
    assert sorted(bool(body) for body in bodies.values()) == [False, True]
    assert msgspec.json.decode(bodies[dead])["template_id"] == "no-such"
