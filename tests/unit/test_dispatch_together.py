"""What workers do together: one takes for all that are idle, one composes, and settlements that wait share a commit."""

import asyncio
from collections.abc import Sequence

import pytest
from dispatch_cast import NOW, PUSH, ScriptedChannel, Stage, a_key, put, seconds, started

from noroshi.domain.deliveries import Attempt, Settlement, Verdict
from noroshi.domain.outcomes import Outcome, Sent
from noroshi.domain.records import Alert
from noroshi.flow.dispatch.alarms import Judged
from noroshi.flow.dispatch.settings import DispatchSettings
from noroshi.flow.dispatch.sharing import MOST_TOGETHER, Sharing

FIVE_WORKERS = DispatchSettings(workers={"push.normal": 5})


def one_by_one() -> Stage:
    """A channel that takes one message at a time and answers after three seconds; five workers."""
    stage = Stage(ScriptedChannel(max_batch=1), settings=FIVE_WORKERS)

    async def slow(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await stage.clock.sleep(seconds(3))
        return [Sent("m")] * len(attempts)

    stage.channel.answer = slow
    return stage


async def test_one_take_and_one_compose_serve_all_idle_workers() -> None:
    stage = await started(one_by_one())
    await put(stage, *range(1, 8))
    assert stage.queue.takes == [(PUSH, 5)]
    assert stage.compose_calls == 1
    assert [len(call) for call in stage.channel.calls] == [1] * 5
    assert {call[0].key for call in stage.channel.calls} == {a_key(n) for n in range(1, 6)}
    await stage.clock.advance(seconds(3))
    assert sorted(stage.queue.settlements, key=lambda s: s.key)[4].key == a_key(5)
    await stage.stopped()


async def test_who_takes_leaves_to_others_what_is_being_taken_for() -> None:
    """Workers that come back one after the other take for themselves, not again for those under way."""
    stage = await started(one_by_one())
    await put(stage, 1, 2, 3)
    await put(stage, *range(4, 10))
    assert [limit for _, limit in stage.queue.takes] == [5, 2]
    assert stage.dispatcher.claimed == 5
    await stage.stopped()


async def test_who_comes_back_waits_a_moment_for_others_to_take_for() -> None:
    """But only while more is due than all can carry, and far less long than a send takes."""
    stage = one_by_one()
    delays = iter([3.0, 3.001, 3.002, 3.003, 3.1])

    async def one_after_the_other(_attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await stage.clock.sleep(seconds(next(delays, 3.0)))
        return [Sent("m")]

    stage.channel.answer = one_after_the_other
    await started(stage)
    await put(stage, *range(1, 21))
    await stage.clock.advance(seconds(3.02))
    assert [limit for _, limit in stage.queue.takes] == [5, 4]
    await stage.stopped()


async def test_a_take_that_could_not_be_composed_is_judged_flight_by_flight() -> None:
    stage = one_by_one()
    stage.compose_errors.append(RuntimeError("broken"))
    await started(stage)
    await put(stage, 1, 2, 3)
    assert stage.queue.verdicts() == [Verdict.RESEND] * 3
    assert stage.meter.counts["dispatch_errors_total"] == 1
    assert not stage.channel.calls
    await stage.stopped()


class Commits:
    """Commits that end when they are let go; those with a poisoned delivery fail."""

    def __init__(self, poisoned: int = 0) -> None:
        self.written: list[list[int]] = []
        self.go_on = asyncio.Event()
        self._poisoned = poisoned

    async def write(self, judged: Sequence[Judged], _alerts: Sequence[Alert]) -> None:
        numbers = [j.settlement.key.notification_id[-1] for j in judged]
        await self.go_on.wait()
        self.written.append(numbers)
        if self._poisoned in numbers:
            raise ValueError("poisoned")


def judged(*numbers: int) -> list[Judged]:
    return [Judged(Settlement(a_key(n), 1, Verdict.SENT, NOW, NOW), PUSH, 0, None) for n in numbers]


async def all_written(sharing: Sharing, *parts: list[Judged]) -> list["asyncio.Task[None]"]:
    tasks = []
    for part in parts:
        tasks.append(asyncio.create_task(sharing.write(part, [])))
        await asyncio.sleep(0)
    return tasks


async def test_what_waits_shares_the_next_commit() -> None:
    commits = Commits()
    tasks = await all_written(Sharing(commits.write), judged(1), judged(2), judged(3, 4))
    assert not any(task.done() for task in tasks)
    commits.go_on.set()
    await asyncio.gather(*tasks)
    assert commits.written == [[1], [2, 3, 4]]


async def test_who_comes_right_after_a_commit_is_written() -> None:
    commits = Commits()
    commits.go_on.set()
    sharing = Sharing(commits.write)
    for number in (1, 2, 3):
        await asyncio.wait_for(sharing.write(judged(number), []), 5)
    assert commits.written == [[1], [2], [3]]


async def test_what_cannot_be_written_fails_alone() -> None:
    commits = Commits(poisoned=3)
    tasks = await all_written(Sharing(commits.write), judged(1), judged(2), judged(3), judged(4))
    commits.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), type(None), ValueError, type(None)]
    assert commits.written == [[1], [2, 3, 4], [2], [3], [4]]


async def test_two_results_of_one_delivery_never_share_a_commit() -> None:
    commits = Commits()
    tasks = await all_written(Sharing(commits.write), judged(1), judged(2), judged(3), judged(2, 5))
    commits.go_on.set()
    await asyncio.gather(*tasks)
    assert commits.written == [[1], [2, 3], [2, 5]]


@pytest.mark.parametrize("count", [MOST_TOGETHER, MOST_TOGETHER + 1])
async def test_a_large_flight_waits_for_nobody(count: int) -> None:
    commits = Commits()
    large = judged(9) * count
    tasks = await all_written(Sharing(commits.write), judged(1), large)
    commits.go_on.set()
    await asyncio.gather(*tasks)
    assert sorted(map(len, commits.written)) == [1, count]
