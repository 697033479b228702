"""The ledger provider: what it promises, how it can be told to misbehave, and what its channel makes of that."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from tests.stand_ins.ledger_provider.channel import LedgerChannel, factory, outcome_of
from tests.stand_ins.ledger_provider.ledger import (
    SeenRequest,
    TakenMessage,
    copies,
    drop_torn_line,
    largest_second,
    read_taken,
    within_waits,
)
from tests.stand_ins.ledger_provider.process import LedgerProvider
from tests.stand_ins.ledger_provider.wire import Answer, Conduct, content_hash, wait_of

from noroshi.domain.deliveries import Attempt, DeliveryKey, Recipient
from noroshi.domain.ids import DEFAULT_TENANT, EndpointId, new_batch_id, notification_id
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.priorities import Priority
from noroshi.domain.templates import Content
from noroshi.ports.channel import Channel

LANE = Lane("email", "ledger", Priority.NORMAL)
BATCH = new_batch_id(1_772_442_000_000, 1)
NOON = Instant(1_772_452_800_000_000)


def attempt(position: int = 0, user_id: str = "hanako", number: int = 1, lane: Lane = LANE) -> Attempt:
    return Attempt(
        key=DeliveryKey(DEFAULT_TENANT, notification_id(BATCH, position, 0), EndpointId(7)),
        lane=lane,
        category="general",
        recipient=Recipient(user_id, None, None, None, {}),
        address=f"{user_id}@example.org",
        content=Content(body=f"Hello {user_id}"),
        number=number,
        expires_at=None,
    )


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LedgerProvider]:
    with LedgerProvider(tmp_path / "ledger") as running:
        yield running


def send(provider: LedgerProvider, *calls: Sequence[Attempt]) -> list[Sequence[Outcome]]:
    """The calls one after the other, over one channel."""

    async def send_all() -> list[Sequence[Outcome]]:
        channel = LedgerChannel(provider.port)
        try:
            return [await channel.send(attempts) for attempts in calls]
        finally:
            await channel.close()

    return asyncio.run(send_all())


def test_what_was_answered_is_in_the_ledger_after_a_kill(provider: LedgerProvider) -> None:
    (outcomes,) = send(provider, [attempt(0), attempt(1, "taro")])
    provider.kill()
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    first, second = provider.taken()
    assert (first.key, first.user_id, first.channel, first.number) == (attempt(0).key, "hanako", "email", 1)
    assert first.content_hash == content_hash(attempt(0).content) != second.content_hash
    assert provider.requests()[0].messages == 2


def test_many_callers_at_once_are_all_answered_from_one_ledger(provider: LedgerProvider) -> None:
    async def send_all() -> None:
        channel = LedgerChannel(provider.port)
        calls = [channel.send([attempt(10 * call + one) for one in range(10)]) for call in range(40)]
        outcomes = [outcome for answered in await asyncio.gather(*calls) for outcome in answered]
        assert len({outcome.message_id for outcome in outcomes if isinstance(outcome, Sent)}) == 400
        await channel.close()

    asyncio.run(send_all())
    assert len(copies(provider.taken())) == 400


def test_a_provider_that_starts_again_keeps_its_port_and_ledger(provider: LedgerProvider) -> None:
    send(provider, [attempt(0)])
    port = provider.port
    provider.kill()
    provider.start()
    send(provider, [attempt(0, number=2)])
    assert provider.port == port
    assert [entry.number for entry in provider.taken()] == [1, 2]


def test_a_line_that_was_not_finished_is_no_entry(provider: LedgerProvider, tmp_path: Path) -> None:
    send(provider, [attempt(0)])
    provider.kill()
    with (tmp_path / "ledger").open("ab") as file:
        file.write(b'{"at":17')
    assert len(read_taken(tmp_path / "ledger")) == 1
    drop_torn_line(tmp_path / "ledger")
    assert (tmp_path / "ledger").read_bytes().endswith(b"}\n")


def test_no_connection_means_that_nothing_was_sent(provider: LedgerProvider) -> None:
    provider.kill()
    (outcomes,) = send(provider, [attempt()])
    assert isinstance(outcomes[0], Retry)
    assert (outcomes[0].code, outcomes[0].scope) == ("PROVIDER_ERROR", Scope.MESSAGE)


def test_a_connection_dropped_after_the_request_left_is_unknown_though_it_was_taken(provider: LedgerProvider) -> None:
    # F12
    provider.behave(Conduct(is_dropping=True, requests=1))
    dropped, sent = send(provider, [attempt(0)], [attempt(1)])
    assert isinstance(dropped[0], Unknown)
    assert isinstance(sent[0], Sent)
    assert len(provider.taken()) == 2


def test_a_provider_killed_between_two_calls_is_noticed(provider: LedgerProvider) -> None:
    async def send_twice() -> Sequence[Outcome]:
        channel = LedgerChannel(provider.port)
        await channel.send([attempt(0)])
        provider.kill()
        return await channel.send([attempt(1)])

    assert isinstance(asyncio.run(send_twice())[0], Retry | Unknown)


def test_a_hanging_provider_takes_nothing_and_the_cancelled_call_leaves_no_connection(
    provider: LedgerProvider,
) -> None:
    provider.behave(Conduct(is_hanging=True, requests=1))

    async def give_up() -> Sequence[Outcome]:
        channel = LedgerChannel(provider.port)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(channel.send([attempt(0)]), 0.2)
        assert channel._idle == []
        try:
            return await channel.send([attempt(1)])
        finally:
            await channel.close()

    assert isinstance(asyncio.run(give_up())[0], Sent)
    assert [entry.key for entry in provider.taken()] == [attempt(1).key]
    assert len(provider.requests()) == 2


def test_whoever_waits_until_the_provider_is_alone_sees_all_that_a_vanished_client_sent(
    provider: LedgerProvider,
) -> None:
    provider.behave(Conduct(delay=timedelta(milliseconds=200)))

    async def vanish() -> None:
        sending = asyncio.create_task(LedgerChannel(provider.port).send([attempt()]))
        await asyncio.sleep(0.05)
        sending.cancel()
        await asyncio.wait([sending])

    asyncio.run(vanish())
    assert provider.taken() == []
    provider.await_alone()
    assert [entry.key for entry in provider.taken()] == [attempt().key]


def test_a_slow_provider_answers_later(provider: LedgerProvider) -> None:
    provider.behave(Conduct(delay=timedelta(milliseconds=200)))
    send(provider, [attempt()])
    (request,) = provider.requests()
    assert request.answered_at is not None
    assert request.answered_at - request.at >= 200_000


def test_a_share_of_messages_fails_and_the_ledger_has_the_rest(provider: LedgerProvider) -> None:
    # F11
    provider.behave(Conduct(error_share=0.5))
    (outcomes,) = send(provider, [attempt(position) for position in range(200)])
    sent = sum(isinstance(outcome, Sent) for outcome in outcomes)
    assert 60 < sent < 140
    assert sum(isinstance(outcome, Retry) for outcome in outcomes) == 200 - sent
    assert len(provider.taken()) == sent


def test_one_person_may_be_gone_while_the_others_are_reached(provider: LedgerProvider) -> None:
    provider.behave(Conduct(status=410, users=frozenset({"taro"})))
    (outcomes,) = send(provider, [attempt(0), attempt(1, "taro")])
    assert isinstance(outcomes[0], Sent)
    assert isinstance(outcomes[1], Gone)
    assert [entry.user_id for entry in provider.taken()] == ["hanako"]


@pytest.mark.parametrize(
    ("conduct", "shortest", "longest"),
    [
        (Conduct(is_limiting=True, retry_after="30"), 30, 30),
        (Conduct(is_limiting=True, http_date_in=timedelta(seconds=30)), 30, 31),
        (Conduct(is_limiting=True, retry_after="1000000000"), 10**9, 10**9),
    ],
)
def test_a_retry_after_reaches_the_outcome(
    provider: LedgerProvider, conduct: Conduct, shortest: int, longest: int
) -> None:
    # F13
    provider.behave(conduct)
    (outcomes,) = send(provider, [attempt()])
    (limited,) = outcomes
    assert isinstance(limited, Retry)
    assert limited.scope is Scope.ACCOUNT
    assert limited.after is not None
    assert timedelta(seconds=shortest) <= limited.after <= timedelta(seconds=longest)
    assert provider.taken() == []
    assert provider.requests()[0].wait_until is not None


@pytest.mark.parametrize("retry_after", ["-5", "0", "soon", "", None])
def test_a_useless_retry_after_is_none(provider: LedgerProvider, retry_after: str | None) -> None:
    # F13
    provider.behave(Conduct(is_limiting=True, retry_after=retry_after))
    (outcomes,) = send(provider, [attempt()])
    assert isinstance(outcomes[0], Retry)
    assert outcomes[0].after is None
    assert provider.requests()[0].wait_until is None


def test_a_past_http_date_is_no_wait() -> None:
    assert wait_of("Mon, 02 Mar 2026 11:59:59 GMT", NOON) is None
    assert wait_of("Mon, 02 Mar 2026 12:00:01 GMT", NOON) == timedelta(seconds=1)


def test_requests_within_a_wait_are_found() -> None:
    # F13, I9
    second = 1_000_000
    limited = SeenRequest(Instant(0), 1, answered_at=Instant(second), wait_until=Instant(61 * second))
    on_its_way = SeenRequest(Instant(second + 1000), 1)
    too_early = SeenRequest(Instant(60 * second), 1)
    in_time = SeenRequest(Instant(61 * second), 1)
    seen = [limited, on_its_way, too_early, in_time]
    hour, grace = timedelta(hours=1), timedelta(milliseconds=50)
    assert within_waits(seen, hour, grace) == [too_early]
    assert within_waits(seen, timedelta(seconds=30), grace) == []


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (202, Sent("m")),
        (401, Misconfigured("UNAUTHORISED")),
        (410, Gone("INVALID_TOKEN")),
        (422, Rejected("REJECTED", "422")),
        (500, Retry("PROVIDER_ERROR", "500")),
    ],
)
def test_every_status_has_its_outcome(status: int, outcome: Outcome) -> None:
    assert outcome_of(Answer(status, "m" if status == 202 else ""), NOON) == outcome


def test_the_factory_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_PROVIDER_PORT", "4711")
    monkeypatch.setenv("LEDGER_PROVIDER_MAX_BATCH", "7")
    monkeypatch.setenv("LEDGER_PROVIDER_TIMEOUT", "0.5")
    channel: Channel = factory(None)
    assert (channel.account, channel.channels) == ("ledger", frozenset({"email", "sms"}))
    assert (channel.max_batch, channel.attempt_timeout) == (7, timedelta(milliseconds=500))


def test_the_provider_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    with LedgerProvider(tmp_path / "ledger") as provider:
        child = provider._child
        assert child is not None
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(10) == 0


def test_the_largest_second_is_any_window_not_one_of_the_clock() -> None:  # I9
    def taken(*milliseconds: int) -> list[TakenMessage]:
        key = attempt().key
        return [TakenMessage(Instant(NOON + ms * 1000), key, "hanako", "email", "hash", 1) for ms in milliseconds]

    assert largest_second([]) == 0
    assert largest_second(taken(1500, 600, 700, 1599, 1600, 5000)) == 4


def test_a_flight_is_told_of_while_it_lasts_and_to_nobody_else(provider: LedgerProvider) -> None:
    provider.behave(Conduct(delay=timedelta(seconds=0.5), requests=1))

    async def send_one() -> None:
        channel = LedgerChannel(provider.port, sender="worker 1, life 1")
        flight = asyncio.create_task(channel.send([attempt()]))
        await asyncio.to_thread(provider.await_flight, "worker 1, life 1")
        assert not flight.done()
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(provider.await_flight, "worker 1, life 2", 0.05)
        await flight
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(provider.await_flight, "worker 1, life 1", 0.05)
        await channel.close()

    asyncio.run(send_one())
