"""The dispatcher's loops: what people rely on while messages go out."""

import asyncio
from collections.abc import Sequence

import pytest
from dispatch_cast import NOW, PUSH, ScriptedChannel, Stage, a_claim, a_key, answering, put, seconds, started

from noroshi.domain.deliveries import Attempt, Verdict
from noroshi.domain.instants import plus
from noroshi.domain.lanes import Lane
from noroshi.domain.outcomes import Outcome, Retry, Sent
from noroshi.domain.priorities import Priority
from noroshi.flow.dispatch.settings import DispatchSettings

pytestmark = pytest.mark.asyncio


async def test_what_is_announced_is_sent_without_any_time_passing() -> None:  # B10
    stage = await started(Stage())
    await put(stage, 1, 2, 3)
    assert stage.queue.verdicts() == [Verdict.SENT] * 3
    assert stage.clock.now() == NOW
    assert stage.crash_points.reached == ["send.apns.before", "send.apns.after"]
    assert stage.meter.counts["notification_sent_total"] == stage.meter.counts["notification_delivery_latency"] == 3
    assert stage.dispatcher.claimed == stage.dispatcher.sending == 0
    await stage.stopped()


async def test_an_announcement_that_was_lost_is_made_good_by_the_next_look() -> None:
    stage = await started(Stage())
    stage.queue.put(a_claim())
    await stage.clock.advance(seconds(1.5))
    assert stage.queue.verdicts() == [Verdict.SENT]
    await stage.stopped()


async def test_a_delivery_that_falls_due_later_goes_at_that_moment_and_never_early() -> None:  # N5.5
    stage = await started(Stage())
    stage.queue.put(a_claim(), due_at=plus(NOW, seconds(90.25)))
    await stage.clock.advance(seconds(90.2))
    assert stage.queue.verdicts() == []
    await stage.clock.advance(seconds(0.05))
    assert stage.queue.settlements[0].at == plus(NOW, seconds(90.25))
    await stage.stopped()


async def test_idle_lanes_ask_the_queue_for_nothing() -> None:
    stage = await started(Stage())
    await stage.clock.advance(seconds(30))
    assert stage.queue.takes == []
    await stage.stopped()


async def test_a_retry_waits_in_the_queue_and_not_in_a_worker() -> None:  # N6.2, W16
    stage = await started(Stage())
    stage.channel.answer = answering(Retry("BUSY"))
    await put(stage, 1)
    assert stage.queue.verdicts() == [Verdict.RETRY] and stage.dispatcher.claimed == 0
    stage.channel.answer = None
    await stage.clock.advance(seconds(1))
    assert stage.queue.verdicts() == [Verdict.RETRY, Verdict.SENT]
    await stage.stopped()


async def test_a_lane_knows_by_itself_when_its_retries_fall_due() -> None:
    stage = await started(Stage(settings=DispatchSettings(look_every=seconds(3_600))))
    stage.channel.answer = answering(Retry("BUSY"))
    await put(stage, 1)
    stage.channel.answer = None
    await stage.clock.advance(seconds(1))
    assert stage.queue.verdicts() == [Verdict.RETRY, Verdict.SENT]
    await stage.stopped()


async def test_a_hanging_provider_makes_every_message_of_the_call_unknown() -> None:  # F12
    async def hang(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await asyncio.Event().wait()
        return []

    stage = await started(Stage())
    stage.channel.answer = hang
    await put(stage, 1, 2)
    assert stage.dispatcher.sending == 2
    await stage.clock.advance(seconds(9.9))
    assert stage.queue.settlements == []
    await stage.clock.advance(seconds(0.2))
    assert [(s.verdict, s.code) for s in stage.queue.settlements] == [(Verdict.RETRY, "TIMEOUT")] * 2
    await stage.stopped()


async def test_an_exception_of_the_channel_is_unknown_for_all_and_names_no_address(
    capsys: pytest.CaptureFixture[str],
) -> None:  # I12
    async def explode(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        raise RuntimeError("cannot reach hanako@example.com")

    stage = await started(Stage())
    stage.channel.answer = explode
    await put(stage, 1, 2)
    assert [(s.verdict, s.code) for s in stage.queue.settlements] == [(Verdict.RETRY, "PROVIDER_ERROR")] * 2
    assert all("hanako@" not in s.error for s in stage.queue.settlements)
    written = capsys.readouterr()
    assert "send_failed" in written.out + written.err and "hanako@" not in written.out + written.err
    await stage.stopped()


async def test_messages_a_channel_forgot_to_answer_are_unknown() -> None:
    async def forgetful(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        return [Sent("m1")]

    stage = await started(Stage())
    stage.channel.answer = forgetful
    await put(stage, 1, 2)
    assert stage.queue.verdicts() == [Verdict.SENT, Verdict.RETRY]
    assert stage.queue.settlements[1].code == "NO_ANSWER"
    await stage.stopped()


async def test_cancelled_expired_and_unrenderable_deliveries_are_settled_without_a_send() -> None:  # N2.5
    stage = await started(Stage())
    stage.queue.put(
        a_claim(1, is_cancelled=True),
        a_claim(2, expires_at=NOW),
        a_claim(3, data={"is_broken": True}),
        a_claim(4),
    )
    await put(stage, 5)
    assert {s.key: s.verdict for s in stage.queue.settlements} == {
        a_key(1): Verdict.CANCELLED,
        a_key(2): Verdict.SUPPRESSED,
        a_key(3): Verdict.DEAD,
        a_key(4): Verdict.SENT,
        a_key(5): Verdict.SENT,
    }
    assert [a.key for call in stage.channel.calls for a in call] == [a_key(4), a_key(5)]
    assert stage.composed == 3
    await stage.stopped()


async def test_a_worker_survives_whatever_breaks_around_a_send() -> None:
    stage = Stage(settings=DispatchSettings(workers={"push.normal": 1}))
    reach = stage.crash_points.reach
    broken = iter([True, True])

    def break_twice(name: str) -> None:
        if name.endswith("before") and next(broken, False):
            raise RuntimeError("broken")
        reach(name)

    stage.crash_points.reach = break_twice  # type: ignore[method-assign]
    await started(stage)
    for number in (1, 2, 3):
        await put(stage, number)
        await stage.clock.advance(seconds(1))
    assert [s.key for s in stage.queue.settlements] == [a_key(3)]
    assert stage.meter.counts["dispatch_errors_total"] == 2
    assert stage.dispatcher.claimed == stage.dispatcher.sending == 0
    await stage.stopped()


async def test_an_outcome_is_kept_until_the_store_takes_it() -> None:  # I3
    stage = await started(Stage())
    stage.queue.settle_failures = [OSError("disk full")] * 8
    await put(stage, 1)
    await stage.clock.until(lambda: stage.queue.verdicts() == [Verdict.SENT])
    assert len(stage.channel.calls) == 1
    await stage.stopped()


async def test_composing_that_breaks_down_sends_nothing_and_is_tried_again() -> None:  # W27
    stage = await started(Stage())
    stage.compose_errors = [RuntimeError("the child is gone")]
    await put(stage, 1, 2)
    assert stage.queue.verdicts() == [Verdict.RESEND] * 2
    await stage.clock.until(lambda: stage.queue.verdicts().count(Verdict.SENT) == 2)
    await stage.stopped()


async def test_leases_are_renewed_while_a_provider_takes_its_time() -> None:  # DESIGN 5.3
    stage = Stage()
    stage.channel.attempt_timeout = seconds(60)
    stage = Stage(stage.channel)

    async def slow(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await stage.clock.sleep(seconds(59))
        return [Sent("m")]

    stage.channel.answer = slow
    await started(stage)
    await put(stage, 1)
    await stage.clock.advance(seconds(58))
    assert stage.queue.renewals == 1
    await stage.clock.advance(seconds(2))
    assert stage.queue.verdicts() == [Verdict.SENT]
    await stage.stopped()


async def test_nothing_is_sent_after_the_lease_is_over() -> None:  # W9, F10
    stage = await started(Stage())
    frozen = stage.hold_compose(1)
    await put(stage, 1)
    stage.clock.jump(seconds(80))
    frozen.set()
    await stage.clock.settle()
    assert stage.queue.settlements[0].verdict is Verdict.RELEASE
    assert stage.queue.settlements[0].code == "lease_over"
    await stage.clock.until(lambda: len(stage.channel.calls) == 1)
    await stage.stopped()


async def test_what_another_has_claimed_meanwhile_is_neither_sent_nor_settled() -> None:  # W9
    stage = await started(Stage())
    composing = stage.hold_compose(1)
    await put(stage, 1, 2)
    stage.queue.lost = {a_key(1)}
    await stage.clock.advance(seconds(15))
    composing.set()
    await stage.clock.settle()
    assert [s.key for s in stage.queue.settlements] == [a_key(2)]
    assert [a.key for call in stage.channel.calls for a in call] == [a_key(2)]
    await stage.stopped()


async def test_stop_finishes_what_is_being_sent_and_releases_what_is_not() -> None:  # W26
    stage = Stage(ScriptedChannel(max_batch=2))

    async def slow(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await stage.clock.sleep(seconds(3))
        return [Sent("m")] * len(attempts)

    stage.channel.answer = slow
    composing = stage.hold_compose(2)
    await started(stage)
    await put(stage, 1, 2)
    await put(stage, *range(3, 7))
    assert stage.dispatcher.sending == 2 and stage.dispatcher.claimed == 4
    stopping = asyncio.create_task(stage.dispatcher.stop())
    await stage.clock.settle()
    composing.set()
    await stage.clock.advance(seconds(2.9))
    assert not stopping.done()
    await stage.clock.advance(seconds(0.2))
    assert stopping.done()
    assert sorted(stage.queue.verdicts()) == [Verdict.SENT] * 2 + [Verdict.RELEASE] * 2
    assert len(stage.queue.takes) == 2 and len(stage.queue.ready[PUSH]) == 4
    assert stage.dispatcher.claimed == 0


async def test_stop_does_not_wait_for_a_provider_longer_than_its_time_out() -> None:  # W26
    async def hang(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await asyncio.Event().wait()
        return []

    stage = await started(Stage())
    stage.channel.answer = hang
    await put(stage, 1)
    stopping = asyncio.create_task(stage.dispatcher.stop())
    await stage.clock.advance(seconds(10.5))
    assert stopping.done() and stage.queue.verdicts() == [Verdict.RETRY]


async def test_stop_ends_even_if_the_store_no_longer_commits() -> None:  # W26
    stage = await started(Stage())
    stage.queue.settle_failures = [OSError("disk full")] * 1_000
    await put(stage, 1)
    await stage.stopped()
    assert stage.queue.settlements == []


async def test_lanes_of_accounts_nobody_knows_are_left_alone() -> None:
    stage = await started(Stage())
    stranger = Lane("push", "retired", Priority.NORMAL)
    await put(stage, 1, lane=stranger)
    await stage.clock.advance(seconds(5))
    assert stage.queue.takes == [] and len(stage.queue.ready[stranger]) == 1
    await stage.stopped()
