"""What dispatch shares with other processes: the pace of an account, its breaker, and who serves which lane."""

from datetime import timedelta

from dispatch_cast import NOW, PUSH, ScriptedChannel, Stage, answering, put, seconds, started

from noroshi.domain.accounts import FREE, OPEN_FOR, BreakerState, Terms
from noroshi.domain.deliveries import Taken, Verdict
from noroshi.domain.instants import Instant, plus
from noroshi.domain.outcomes import Retry, Scope
from noroshi.domain.priorities import Priority
from noroshi.flow.dispatch.breaker import Breaker
from noroshi.flow.dispatch.settings import DispatchSettings

CRITICAL = PUSH._replace(priority=Priority.CRITICAL)


def a_paced_stage(per_second: int = 10) -> Stage:
    channel = ScriptedChannel()
    channel.per_second = per_second
    return Stage(channel)


def refusing(wait: timedelta = timedelta(0), breaker: BreakerState | None = None) -> Taken:
    return Taken([], None, has_more=True, wait=wait, breaker=breaker)


# the pace


async def test_an_account_without_limit_and_trouble_is_never_asked_for() -> None:  # B3
    stage = await started(Stage())
    await put(stage, 1, 2)
    assert set(stage.queue.terms) == {FREE}
    await stage.stopped()


async def test_a_paced_account_is_asked_for_with_its_rate() -> None:  # N8.4
    stage = await started(a_paced_stage(10))
    await put(stage, 1)
    assert stage.queue.terms == [Terms(epoch=0, per_second=10)]
    await stage.stopped()


async def test_a_lane_whose_account_others_have_used_up_waits_as_long_as_it_is_told() -> None:  # N8.4
    stage = await started(a_paced_stage())
    stage.queue.refusals = [refusing(seconds(3))]
    await put(stage, 1)
    await stage.clock.advance(seconds(2.9))
    assert stage.channel.calls == [] and len(stage.queue.takes) == 1
    await stage.clock.advance(seconds(0.2))
    assert stage.queue.verdicts() == [Verdict.SENT]
    await stage.stopped()


async def test_what_is_granted_for_later_is_sent_later() -> None:  # N8.4
    stage = await started(a_paced_stage())
    stage.queue.grant_wait = seconds(2)
    await put(stage, 1)
    await stage.clock.advance(seconds(1.9))
    assert stage.channel.calls == []
    await stage.clock.advance(seconds(0.2))
    assert len(stage.channel.calls) == 1
    await stage.stopped()


# the breaker


async def test_a_breaker_that_opens_and_closes_is_written_down_and_others_are_told() -> None:  # N6.4
    stage = await started(Stage(ScriptedChannel(max_batch=5)))
    stage.channel.answer = answering(Retry("BUSY"))
    await put(stage, *range(1, 6))
    assert stage.accounts.breakers_as == {"apns": (1, plus(NOW, OPEN_FOR))}
    assert stage.told == 1
    stage.channel.answer = None
    await stage.clock.advance(seconds(61))
    assert stage.accounts.breakers_as == {"apns": (2, None)}
    assert stage.told == 2
    await stage.stopped()


async def test_a_rest_is_told_to_others() -> None:  # F13
    stage = await started(Stage())
    stage.channel.answer = answering(Retry("SLOW_DOWN", after=seconds(10), scope=Scope.ACCOUNT))
    await put(stage, 1)
    assert stage.told == 1
    await stage.stopped()


async def test_what_another_process_broke_is_left_alone_here_and_used_when_it_is_mended() -> None:  # N6.4
    stage = await started(Stage())
    stage.accounts.breakers_as["apns"] = 1, plus(NOW, OPEN_FOR)
    await stage.clock.advance(seconds(2.1))
    await put(stage, 1)
    await stage.clock.advance(seconds(20))
    assert stage.queue.takes == []
    stage.accounts.breakers_as["apns"] = 2, None
    await stage.clock.advance(seconds(2.1))
    assert stage.queue.verdicts() == [Verdict.SENT]
    assert stage.meter.gauges["provider_breaker_open", (("provider", "apns"),)] == 0.0
    await stage.stopped()


async def test_an_open_breaker_outlives_a_restart() -> None:  # N6.4
    stage = Stage()
    stage.accounts.breakers_as["apns"] = 7, plus(NOW, seconds(30))
    await started(stage)
    await put(stage, 1)
    await stage.clock.advance(seconds(29))
    assert stage.queue.takes == []
    await stage.clock.advance(seconds(2))
    assert stage.queue.terms[0] == Terms(epoch=7, is_trial=True)
    assert stage.accounts.breakers_as == {"apns": (8, None)}
    await stage.stopped()


async def test_a_trial_that_another_process_has_is_waited_for() -> None:  # N6.4
    stage = Stage()
    stage.accounts.breakers_as["apns"] = 1, NOW
    stage.queue.refusals = [refusing(breaker=BreakerState(1, seconds(40)))]
    await started(stage)
    await put(stage, 1)
    assert len(stage.queue.takes) == 1
    stage.accounts.breakers_as["apns"] = 1, plus(NOW, seconds(40))
    await stage.clock.advance(seconds(39))
    assert len(stage.queue.takes) == 1
    await stage.clock.advance(seconds(2))
    assert stage.queue.verdicts() == [Verdict.SENT]
    await stage.stopped()


async def test_a_claim_that_learns_of_a_break_sends_nothing() -> None:  # N6.4
    stage = await started(a_paced_stage())
    stage.queue.refusals = [refusing(breaker=BreakerState(3, seconds(50)))]
    stage.accounts.breakers_as["apns"] = 3, plus(NOW, seconds(50))
    await put(stage, 1)
    await stage.clock.advance(seconds(49))
    assert stage.channel.calls == []
    await stage.clock.advance(seconds(2))
    assert stage.queue.terms[-1].is_trial or stage.queue.verdicts() == [Verdict.SENT]
    await stage.stopped()


async def test_a_trial_that_needed_no_send_is_given_back_to_all() -> None:  # N6.4
    stage = Stage()
    stage.accounts.breakers_as["apns"] = 4, NOW
    await started(stage)
    await put(stage, 1, expires_at=NOW)
    assert stage.queue.verdicts() == [Verdict.SUPPRESSED]
    assert stage.accounts.ended_trials == [("apns", 4)]
    await stage.stopped()


async def test_a_move_that_could_not_be_written_is_written_at_the_next_round() -> None:
    stage = await started(Stage(ScriptedChannel(max_batch=5)))
    stage.accounts.failures = [OSError("cut off")]
    stage.channel.answer = answering(Retry("BUSY"))
    await put(stage, *range(1, 6))
    assert stage.queue.verdicts() == [Verdict.RETRY] * 5  # whatever broke, each claim has its verdict
    assert stage.accounts.breakers_as == {}
    await stage.clock.advance(seconds(2.1))
    assert stage.accounts.breakers_as["apns"][0] == 1
    await stage.stopped()


def test_the_later_move_is_right_and_of_two_with_one_number_the_one_that_was_written() -> None:
    breaker = Breaker()
    tick = Instant(0)
    assert not breaker.learn(BreakerState(0, None), tick)
    assert breaker.learn(BreakerState(2, seconds(10)), tick) and not breaker.is_closed
    assert not breaker.learn(BreakerState(1, None), tick)
    assert breaker.wait(tick) == seconds(10)
    assert breaker.learn(BreakerState(2, None), tick) and breaker.is_closed
    assert breaker.epoch == 2


def test_a_trial_under_way_here_is_not_ended_by_what_the_row_says_of_it() -> None:
    breaker = Breaker()
    breaker.learn(BreakerState(1, seconds(0)), Instant(0))
    permit = breaker.admit(Instant(0))
    assert permit is not None and permit.is_trial
    assert not breaker.learn(BreakerState(1, seconds(40)), Instant(0))
    assert breaker.wait(Instant(0)) is None
    assert breaker.record(permit, Instant(0), is_failure=False) and breaker.is_closed


# the lanes of a worker


async def test_a_worker_serves_only_the_lanes_it_was_given() -> None:
    settings = DispatchSettings(channels=frozenset({"push"}), priorities=frozenset({Priority.CRITICAL}))
    stage = await started(Stage(ScriptedChannel(channels=("push", "sms")), settings=settings))
    assert stage.dispatcher.lanes == [CRITICAL]
    await put(stage, 1)
    await put(stage, 2, lane=CRITICAL)
    await stage.clock.advance(seconds(3))
    assert [a.lane for call in stage.channel.calls for a in call] == [CRITICAL]
    await stage.stopped()


async def test_a_worker_may_judge_the_leases_of_lanes_that_others_serve() -> None:  # W27
    stage = Stage(ScriptedChannel(channels=("push", "sms")), settings=DispatchSettings(channels=frozenset({"push"})))
    assert stage.dispatcher.served == {("push", "apns"), ("sms", "apns")}
