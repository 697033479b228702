"""Pace and breaker of an account hold over all processes together: what a claim asks of its row."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noroshi.domain.accounts import OPEN_FOR, BreakerState, Terms
from noroshi.domain.deliveries import Taken, Verdict
from noroshi.domain.instants import plus
from tests.conformance.company import beside
from tests.conformance.ground import EMAIL, LEASE, MINUTE, SECOND, Ground
from tests.conformance.stores import HandClock, Store

TRIAL = Terms(epoch=1, is_trial=True)
NO_SPAN = timedelta(0)


@pytest.fixture
async def other(store: Store, clock: HandClock) -> AsyncIterator[Store]:
    async with beside(store, clock) as another:
        yield another


async def claim(store: Store, terms: Terms, limit: int = 100) -> Taken:
    return await store.queue.take(EMAIL, limit, LEASE, frozenset(), terms)


async def fill(ground: Ground, count: int) -> None:
    await ground.write()
    await ground.accept(*await ground.crowd(count))


# the pace


@pytest.mark.parametrize("per_second", [1, 7, 40])
async def test_grants_of_all_processes_together_never_exceed_the_pace(
    ground: Ground, other: Store, per_second: int
) -> None:  # N8.4, I9
    await fill(ground, 60)
    gone: list[int] = []
    terms = Terms(per_second=per_second)
    for turn in range(120):
        for taken in await asyncio.gather(claim(ground.store, terms, 5), claim(other, terms, 5)):
            gone += [plus(ground.now, taken.wait)] * len(taken.claims)
        ground.clock.move(SECOND / 9 if turn % 3 else SECOND / 50)
    gone.sort()
    most = max(bisect_left(gone, moment + 1_000_000) - first for first, moment in enumerate(gone))
    assert most <= per_second
    assert len(gone) >= min(60, per_second * 8 * 0.6)


async def test_an_account_that_is_used_up_says_how_long_and_claims_nothing(ground: Ground, other: Store) -> None:
    await fill(ground, 3)
    terms = Terms(per_second=1)
    first = await claim(ground.store, terms)
    assert (len(first.claims), first.wait, first.has_more) == (1, NO_SPAN, True)
    second = await claim(other, terms)
    assert (second.claims, second.wait, second.has_more) == ([], SECOND, True)
    ground.clock.move(second.wait)
    assert len((await claim(other, terms)).claims) == 1


async def test_what_is_granted_beyond_the_moment_must_wait_for_it(ground: Ground) -> None:
    await fill(ground, 30)
    terms = Terms(per_second=100)
    assert len((await claim(ground.store, terms, 9)).claims) == 9
    taken = await claim(ground.store, terms, 10)
    assert len(taken.claims) == 10 and NO_SPAN < taken.wait < SECOND / 5


async def test_an_empty_lane_uses_up_nothing_of_the_pace(ground: Ground) -> None:
    await claim(ground.store, Terms(per_second=1))
    await fill(ground, 1)
    assert (await claim(ground.store, Terms(per_second=1))).wait == NO_SPAN


async def test_a_clock_that_jumps_back_does_not_stop_an_account(ground: Ground) -> None:  # W30
    await fill(ground, 2)
    terms = Terms(per_second=1)
    await claim(ground.store, terms, 1)
    ground.clock.move(-MINUTE)
    await ground.accept(*await ground.crowd(2), content=7)
    taken = await claim(ground.store, terms, 1)
    assert taken.wait <= 2 * SECOND


# the breaker


async def test_an_opened_breaker_is_seen_by_every_process(ground: Ground, other: Store) -> None:  # N6.4
    await fill(ground, 3)
    assert await ground.store.accounts.move_breaker("acme", 1, OPEN_FOR) == BreakerState(1, OPEN_FOR)
    assert await other.accounts.breakers() == {"acme": BreakerState(1, OPEN_FOR)}
    refused = await claim(other, Terms(per_second=1000))
    assert (refused.claims, refused.breaker, refused.has_more) == ([], BreakerState(1, OPEN_FOR), True)
    ground.clock.move(SECOND)
    assert (await other.accounts.breakers())["acme"].trial_in == OPEN_FOR - SECOND


async def test_of_many_who_ask_for_the_trial_one_gets_one_message(ground: Ground, other: Store) -> None:  # N6.4
    await fill(ground, 9)
    await ground.store.accounts.move_breaker("acme", 1, OPEN_FOR)
    assert (await claim(other, TRIAL)).claims == []
    ground.clock.move(OPEN_FOR)
    answers = await asyncio.gather(*(claim(one, TRIAL) for one in (ground.store, other) * 4))
    assert [len(taken.claims) for taken in answers if taken.claims] == [1]
    # Who found every message in another's hands has not asked.
    assert {taken.breaker for taken in answers if not taken.claims} <= {BreakerState(1, LEASE), None}
    assert (await claim(other, TRIAL)).breaker == BreakerState(1, LEASE)


async def test_a_trial_whose_process_died_goes_to_another_after_its_lease(ground: Ground, other: Store) -> None:
    await fill(ground, 3)
    await ground.store.accounts.move_breaker("acme", 1, OPEN_FOR)
    ground.clock.move(OPEN_FOR)
    assert (await claim(ground.store, TRIAL)).claims
    ground.clock.move(LEASE - SECOND)
    assert not (await claim(other, TRIAL)).claims
    ground.clock.move(SECOND)
    assert (await claim(other, TRIAL)).claims


async def test_a_trial_that_did_not_come_about_is_given_to_the_next(ground: Ground, other: Store) -> None:
    await fill(ground, 3)
    await ground.store.accounts.move_breaker("acme", 1, OPEN_FOR)
    ground.clock.move(OPEN_FOR)
    (held,) = (await claim(ground.store, TRIAL)).claims
    await ground.settle(held, Verdict.RELEASE)
    await ground.store.accounts.end_trial("acme", 1)
    assert (await claim(other, TRIAL)).claims


async def test_a_trial_that_succeeded_lets_everybody_go_on(ground: Ground, other: Store) -> None:  # N6.4
    await fill(ground, 3)
    await ground.store.accounts.move_breaker("acme", 1, OPEN_FOR)
    ground.clock.move(OPEN_FOR)
    await claim(ground.store, TRIAL)
    assert await ground.store.accounts.move_breaker("acme", 2, None) == BreakerState(2, None)
    told = await claim(other, TRIAL)
    assert (told.claims, told.breaker) == ([], BreakerState(2, None))
    assert len((await claim(other, Terms(epoch=2, per_second=1000))).claims) == 2


async def test_of_two_moves_with_one_number_the_first_stands(ground: Ground, other: Store) -> None:
    moves = await asyncio.gather(
        ground.store.accounts.move_breaker("acme", 1, OPEN_FOR), other.accounts.move_breaker("acme", 1, None)
    )
    assert moves[0] == moves[1]
    assert await other.accounts.breakers() == {"acme": moves[0]}


async def test_a_move_that_was_never_written_is_made_good_by_the_next_claim(ground: Ground) -> None:
    await fill(ground, 2)
    assert len((await claim(ground.store, Terms(epoch=3, is_trial=True))).claims) == 1
    assert (await ground.store.accounts.breakers())["acme"].epoch == 3


async def test_a_block_and_a_breaker_of_an_account_do_not_touch_each_other(ground: Ground) -> None:
    until = plus(ground.now, MINUTE)
    await ground.store.accounts.move_breaker("acme", 1, OPEN_FOR)
    await ground.store.accounts.block("acme", until, "retry_after")
    assert await ground.store.accounts.blocked() == {"acme": until}
    assert (await ground.store.accounts.breakers())["acme"] == BreakerState(1, OPEN_FOR)
