"""What holds an account's lanes back: breaker, rests, pace, pauses, and courtesy to higher lanes."""

import asyncio
from collections.abc import Sequence

import pytest
from dispatch_cast import NOW, PUSH, ScriptedChannel, Stage, a_claim, a_key, answering, put, seconds, started

from noroshi.domain.deliveries import Attempt, Verdict
from noroshi.domain.instants import plus
from noroshi.domain.lanes import Lane
from noroshi.domain.outcomes import Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.priorities import Priority
from noroshi.domain.records import PauseKind
from noroshi.flow.dispatch.settings import DispatchSettings

pytestmark = pytest.mark.asyncio

LOW = PUSH._replace(priority=Priority.LOW)
CRITICAL = PUSH._replace(priority=Priority.CRITICAL)


async def test_low_goes_on_the_moment_the_higher_lane_runs_empty() -> None:  # N5.3
    stage = await started(Stage(settings=DispatchSettings(workers={"push.normal": 1})))
    stage.queue.put(a_claim(99, lane=LOW))
    stage.dispatcher.announce([LOW])
    await put(stage, *range(1, 31))
    await stage.clock.settle()
    assert stage.queue.verdicts() == [Verdict.SENT] * 31 and stage.clock.now() == NOW
    assert stage.queue.takes[0][0] is not LOW
    await stage.stopped()


async def test_a_trial_whose_message_needs_no_send_is_given_to_the_next() -> None:  # N6.4
    stage = await started(Stage(ScriptedChannel(max_batch=5)))
    stage.channel.answer = answering(Retry("BUSY"))
    await put(stage, *range(1, 6))
    stage.channel.answer = None
    stage.queue.put(a_claim(6, expires_at=plus(NOW, seconds(30))))
    await stage.clock.advance(seconds(61))
    assert stage.queue.verdicts().count(Verdict.SUPPRESSED) == 1
    assert stage.queue.verdicts().count(Verdict.SENT) == 5
    await stage.stopped()


async def test_a_trial_for_a_lane_that_turns_out_empty_is_given_to_the_next() -> None:  # N6.4
    stage = await started(Stage())
    stage.channel.answer = answering(Retry("BUSY", after=seconds(62)))
    await put(stage, *range(1, 6))
    stage.channel.answer = None
    stage.dispatcher.announce([CRITICAL])
    await stage.clock.advance(seconds(61))
    assert [lane for lane, _ in stage.queue.takes] == [PUSH, CRITICAL]
    await stage.clock.advance(seconds(2))
    assert stage.queue.verdicts().count(Verdict.SENT) == 5
    await stage.stopped()


async def test_five_failures_stop_the_account_and_one_trial_starts_it_again() -> None:  # N6.4
    stage = await started(Stage())
    stage.channel.answer = answering(Retry("BUSY"))
    await put(stage, *range(1, 11))
    await put(stage, *range(11, 31))
    assert len(stage.channel.calls) == 1
    await stage.clock.advance(seconds(59))
    assert len(stage.channel.calls) == 1
    stage.channel.answer = None
    await stage.clock.advance(seconds(2))
    assert len(stage.channel.calls[1]) == 1
    await stage.clock.until(lambda: stage.queue.verdicts().count(Verdict.SENT) == 30)
    assert stage.queue.verdicts().count(Verdict.RETRY) == 10
    await stage.stopped()


async def test_what_was_claimed_when_the_breaker_opened_goes_back_with_nothing_used_up() -> None:  # N6.4
    stage = await started(Stage(ScriptedChannel(max_batch=5)))
    let_go = asyncio.Event()

    async def fail_later(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        await let_go.wait()
        return [Retry("BUSY")] * len(attempts)

    stage.channel.answer = fail_later
    composing = stage.hold_compose(2)
    await put(stage, *range(1, 6))
    await put(stage, *range(6, 11))
    let_go.set()
    await stage.clock.settle()
    composing.set()
    await stage.clock.settle()
    assert len(stage.channel.calls) == 1
    assert stage.queue.verdicts().count(Verdict.RELEASE) == 5
    await stage.stopped()


async def test_rejections_do_not_open_the_breaker() -> None:
    stage = await started(Stage())
    stage.channel.answer = answering(Rejected("TOO_BIG"))
    await put(stage, *range(1, 11))
    await put(stage, *range(11, 21))
    assert len(stage.channel.calls) == 2
    await stage.stopped()


@pytest.mark.parametrize(
    ("outcome", "rest"),
    [(Retry("SLOW_DOWN", after=seconds(120), scope=Scope.ACCOUNT), 120), (Misconfigured("BAD_KEY"), 300)],
)
async def test_nothing_is_sent_while_the_account_must_rest(outcome: Outcome, rest: int) -> None:  # F13, I9
    stage = await started(Stage())
    stage.channel.answer = answering(outcome)
    await put(stage, 1)
    await put(stage, 2, 3)
    await put(stage, 4, lane=CRITICAL)
    assert stage.queue.verdicts() == [Verdict.RELEASE]
    assert stage.accounts.blocks == {"apns": plus(NOW, seconds(rest))}
    stage.channel.answer = None
    await stage.clock.advance(seconds(rest - 0.5))
    assert len(stage.channel.calls) == 1
    await stage.clock.advance(seconds(1))
    assert stage.queue.verdicts().count(Verdict.SENT) == 4
    await stage.stopped()


async def test_a_batch_told_to_slow_down_is_one_failure_and_rests_no_longer_than_it_was_told() -> None:  # N6.4, F13
    stage = await started(Stage())
    stage.channel.answer = answering(Retry("SLOW_DOWN", after=seconds(1), scope=Scope.ACCOUNT))
    await put(stage, *range(1, 11))
    assert len(stage.channel.calls[0]) == 10
    stage.channel.answer = None
    await stage.clock.advance(seconds(1.5))
    assert stage.queue.verdicts().count(Verdict.SENT) == 10
    await stage.stopped()


async def test_one_connection_lost_under_a_batch_is_one_failure() -> None:  # N6.4, F12
    stage = await started(Stage())
    stage.channel.answer = answering(Unknown())
    await put(stage, *range(1, 11))
    stage.channel.answer = None
    await put(stage, 11)
    assert [len(call) for call in stage.channel.calls] == [10, 1]
    await stage.stopped()


async def test_a_rest_outlives_a_restart() -> None:  # F13
    stage = Stage()
    stage.accounts.blocks["apns"] = plus(NOW, seconds(100))
    await started(stage)
    await put(stage, 1)
    await stage.clock.advance(seconds(99))
    assert stage.channel.calls == []
    await stage.clock.advance(seconds(1.5))
    assert len(stage.channel.calls) == 1
    await stage.stopped()


async def test_wrong_credentials_raise_an_alert() -> None:
    stage = await started(Stage())
    stage.channel.answer = answering(Misconfigured("BAD_KEY"))
    await put(stage, 1)
    assert [(a.kind, a.subject) for a in stage.queue.alerts] == [("account_misconfigured", "apns:BAD_KEY")]
    await stage.stopped()


async def test_one_accounts_outage_does_not_touch_another() -> None:  # N5.2, I7
    apns, fcm = ScriptedChannel("apns"), ScriptedChannel("fcm")
    stage = await started(Stage(apns, fcm))
    apns.answer = answering(Unknown())
    await put(stage, *range(1, 11))
    await put(stage, *range(11, 31), lane=Lane("push", "fcm", Priority.NORMAL))
    assert sum(map(len, fcm.calls)) == 20
    await stage.stopped()


async def test_the_provider_never_sees_more_than_its_rate() -> None:  # N8.4, I9
    stage = Stage(ScriptedChannel())
    stage.channel.per_second = 20
    stage = Stage(stage.channel)
    moments: list[int] = []

    async def note(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        moments.extend([stage.clock.now()] * len(attempts))
        return [Sent("m")] * len(attempts)

    stage.channel.answer = note
    await started(stage)
    await put(stage, *range(1, 71))
    await stage.clock.until(lambda: len(moments) == 70)
    assert all(sum(m <= other < m + 1_000_000 for other in moments) <= 20 for m in moments)
    assert stage.clock.now() < plus(NOW, seconds(5))
    await stage.stopped()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PauseKind.ACCOUNT, "apns"),
        (PauseKind.CHANNEL, "push"),
        (PauseKind.EVERYTHING, None),
        (PauseKind.CATEGORY, "general"),
    ],
)
async def test_a_pause_holds_within_five_seconds_and_a_resume_sends_what_waited(
    kind: PauseKind, name: str | None
) -> None:  # N4.7
    stage = await started(Stage())
    stage.pauses.pause(kind, name)
    await stage.clock.advance(seconds(5))
    await put(stage, 1)
    await stage.clock.advance(seconds(60))
    assert stage.channel.calls == []
    stage.pauses.pauses.clear()
    await stage.dispatcher.refresh_pauses()
    await stage.clock.settle()
    assert stage.queue.verdicts() == [Verdict.SENT]
    await stage.stopped()


async def test_a_pause_of_a_category_covers_those_below_it() -> None:  # N4.7
    stage = Stage()
    stage.pauses.pause(PauseKind.CATEGORY, "social")
    await started(stage)
    await put(stage, 1, category="like")
    await put(stage, 2, category="transaction")
    assert [a.key for call in stage.channel.calls for a in call] == [a_key(2)]
    await stage.stopped()


async def test_low_waits_while_a_higher_lane_has_work_but_never_for_ever() -> None:  # N5.3
    stage = Stage(ScriptedChannel(max_batch=1), settings=DispatchSettings(workers={"push.normal": 1}))
    sent: list[Priority] = []

    async def slow(attempts: Sequence[Attempt]) -> Sequence[Outcome]:
        sent.append(attempts[0].lane.priority)
        await stage.clock.sleep(seconds(0.1))
        return [Sent("m")]

    stage.channel.answer = slow
    stage.queue.put(*(a_claim(n, lane=LOW) for n in range(100, 110)))
    stage.queue.put(*(a_claim(n) for n in range(1, 35)))
    await started(stage)
    await stage.clock.advance(seconds(0.95))
    assert set(sent) == {Priority.NORMAL}
    await stage.clock.until(lambda: sent.count(Priority.NORMAL) == 34)
    assert 1 <= sent.count(Priority.LOW) <= 5
    await stage.clock.until(lambda: len(sent) == 44)
    await stage.stopped()


async def test_low_goes_on_at_once_when_the_higher_lane_is_empty() -> None:  # N5.3
    stage = await started(Stage())
    stage.queue.put(a_claim(9, lane=LOW))
    await put(stage, 1, 2)
    stage.dispatcher.announce([LOW])
    await stage.clock.settle()
    assert stage.queue.verdicts() == [Verdict.SENT] * 3 and stage.clock.now() == NOW
    await stage.stopped()


async def test_a_failing_queue_costs_a_pause_for_breath_and_never_the_lane() -> None:
    stage = await started(Stage())
    stage.queue.failures = [OSError("disk full")] * 6
    await put(stage, 1)
    await stage.clock.until(lambda: stage.queue.verdicts() == [Verdict.SENT])
    assert stage.meter.counts["dispatch_errors_total"] == 6
    await stage.stopped()
