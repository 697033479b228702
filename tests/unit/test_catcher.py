"""The catcher: keeps what it gets, and misbehaves when it is told to."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from dispatch_cast import NOW, PUSH, HandClock, a_claim, seconds

from noroshi.domain.deliveries import Attempt
from noroshi.domain.instants import plus
from noroshi.domain.lanes import Lane
from noroshi.domain.misbehaviour import Fault, Misbehaviour
from noroshi.domain.outcomes import Gone, Outcome, Retry, Scope, Sent, Unknown
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content
from noroshi.flow.send.catcher.channel import Catcher

pytestmark = pytest.mark.asyncio

EMAIL = Lane("email", "catcher", Priority.NORMAL)


class KeptInMemory:
    def __init__(self) -> None:
        self.kept: list[Attempt] = []

    async def keep_caught(self, attempts: Sequence[Attempt]) -> None:
        self.kept.extend(attempts)

    async def list_caught(self, *_: Any, **__: Any) -> Any: ...


def an_attempt(number: int = 1, lane: Lane = PUSH, attempt: int = 1) -> Attempt:
    claim = a_claim(number, lane=lane)
    return Attempt(claim.key, lane, "general", claim.recipient, "token", Content("Hello"), attempt, None)


class Cage:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.caught = KeptInMemory()
        self.catcher = Catcher(self.caught, self.clock, frozenset({"push", "email"}))

    async def send(self, *attempts: Attempt) -> Sequence[Outcome]:
        return await self.catcher.send(attempts)


async def test_it_keeps_every_message_and_says_sent() -> None:
    cage = Cage()
    attempts = [an_attempt(1), an_attempt(2), an_attempt(2, attempt=2)]
    outcomes = await cage.send(*attempts)
    assert cage.caught.kept == attempts
    names = [o.message_id for o in outcomes if isinstance(o, Sent)]
    assert len(set(names)) == 3 and all(n.startswith("caught-") for n in names)


@pytest.mark.parametrize(
    ("order", "outcome", "is_kept"),
    [
        (Misbehaviour(Fault.ERROR), Retry("SERVER_ERROR", "503 by order"), False),
        (Misbehaviour(Fault.GONE), Gone("UNREGISTERED", "gone by order"), False),
        (Misbehaviour(Fault.DROP_ANSWER), Unknown("CONNECTION_LOST", "the answer was dropped by order"), True),
    ],
)
async def test_it_answers_badly_by_order(order: Misbehaviour, outcome: Outcome, is_kept: bool) -> None:
    cage = Cage()
    cage.catcher.misbehave(order)
    assert await cage.send(an_attempt()) == [outcome]
    assert bool(cage.caught.kept) is is_kept


@pytest.mark.parametrize("after", [None, 7.0, 1e9, -30.0])
async def test_too_many_requests_rests_the_account_however_odd_its_retry_after(after: float | None) -> None:  # F13
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.TOO_MANY, retry_after=after))
    (outcome,) = await cage.send(an_attempt())
    assert isinstance(outcome, Retry) and outcome.scope is Scope.ACCOUNT
    assert outcome.after == (None if after is None else timedelta(seconds=after))
    assert cage.caught.kept == []


async def test_a_dropped_answer_is_kept_before_it_is_dropped() -> None:  # F12
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.DROP_ANSWER, count=1))
    first, second = await cage.send(an_attempt(1), an_attempt(2))
    assert isinstance(first, Unknown) and isinstance(second, Sent)
    assert len(cage.caught.kept) == 2


async def test_slow_is_as_slow_as_it_was_told() -> None:
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.SLOW, seconds=5))
    sending = asyncio.create_task(cage.send(an_attempt()))
    await cage.clock.advance(seconds(4.9))
    assert not sending.done() and cage.caught.kept == []
    await cage.clock.advance(seconds(0.1))
    assert isinstance((await sending)[0], Sent) and cage.clock.now() == plus(NOW, seconds(5))


async def test_hanging_never_answers_and_keeps_nothing() -> None:
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.HANG))
    sending = asyncio.create_task(cage.send(an_attempt()))
    await cage.clock.advance(seconds(3_600))
    assert not sending.done() and cage.caught.kept == []
    sending.cancel()


async def test_a_count_is_used_up_message_by_message() -> None:
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.ERROR, count=3))
    outcomes = [*await cage.send(an_attempt(1), an_attempt(2)), *await cage.send(an_attempt(3), an_attempt(4))]
    assert [isinstance(o, Retry) for o in outcomes] == [True, True, True, False]
    assert cage.catcher.misbehaviours.in_force() == []


async def test_one_channel_misbehaves_and_the_other_does_not() -> None:
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.GONE, channel="email"))
    assert isinstance((await cage.send(an_attempt()))[0], Sent)
    assert isinstance((await cage.send(an_attempt(lane=EMAIL)))[0], Gone)


async def test_an_order_for_a_channel_goes_before_one_for_all() -> None:
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.ERROR))
    cage.catcher.misbehave(Misbehaviour(Fault.GONE, channel="email", count=1))
    outcomes = [(await cage.send(an_attempt(lane=EMAIL)))[0] for _ in range(2)]
    assert isinstance(outcomes[0], Gone) and isinstance(outcomes[1], Retry)


@pytest.mark.parametrize("channel", ["email", None])
async def test_it_behaves_again_when_told(channel: str | None) -> None:
    cage = Cage()
    cage.catcher.misbehave(Misbehaviour(Fault.GONE, channel="email"))
    cage.catcher.behave(channel)
    assert isinstance((await cage.send(an_attempt(lane=EMAIL)))[0], Sent)


async def test_an_order_is_read_from_json_and_nonsense_is_refused() -> None:
    order = msgspec.json.decode(b'{"fault": "too_many", "channel": "push", "retry_after": 3}', type=Misbehaviour)
    assert order == Misbehaviour(Fault.TOO_MANY, "push", retry_after=3)
    for bad in (b'{"fault": "rude"}', b'{"fault": "slow", "count": 0}', b'{"fault": "slow", "x": 1}', b"{}"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(bad, type=Misbehaviour)
