"""LINE as a channel, over a network that does as it is told: payloads, keys, limits of its own, rests."""

from datetime import timedelta
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
from dispatch_cast import FixedDice, HandClock, a_key
from line_cast import ToldOutgoing, a_channel, an_attempt, answered, keys_of
from msgspec.structs import replace
from tests.stand_ins.line.conduct import TOO_FAST, USED_UP
from tests.stand_ins.line.process import TOKEN, user_id

from noroshi.domain.line import LineAnswer
from noroshi.domain.outcomes import Misconfigured, Outcome, Rejected, Retry, Scope, Sent
from noroshi.domain.outgoing import NoAnswer, NotSent, OutgoingReply
from noroshi.domain.templates import Content
from noroshi.flow.send.line.messaging.channel import LineChannel, open_line, open_messaging
from noroshi.flow.send.line.messaging.payload import length_of, retry_key
from noroshi.flow.send.parts import Off, Parts
from noroshi.ports.attachments import Attachments
from noroshi.ports.caught import Caught
from noroshi.ports.channel import RepeatingChannel, ReportingChannel

SENT = answered(200, {"sentMessages": [{"id": "1"}]})
TOO_MANY = answered(429, {"message": TOO_FAST})
PAYLOAD = Path(__file__).parents[1] / "payloads/line/push.json"


async def sent(content: Content, **changes: object) -> tuple[Outcome, ToldOutgoing]:
    outgoing = ToldOutgoing(SENT)
    (outcome,) = await a_channel(outgoing).send([an_attempt(content=content, **changes)])
    return outcome, outgoing


async def test_a_push_is_what_line_documents() -> None:  # N1.8
    outgoing = ToldOutgoing(SENT)
    assert await a_channel(outgoing).send([an_attempt()]) == [Sent("1")]
    (call,) = outgoing.calls
    assert (call.method, call.url) == ("POST", "https://api.line.me/v2/bot/message/push")
    assert call.headers["Authorization"] == f"Bearer {TOKEN}"
    assert call.headers["Content-Type"] == "application/json"
    assert call.body == PAYLOAD.read_bytes().strip()
    assert not call.is_foreign


async def test_a_path_before_the_api_is_kept() -> None:
    outgoing = ToldOutgoing(SENT)
    await a_channel(outgoing, url="https://proxy.example/line").send([an_attempt()])
    assert outgoing.calls[0].url == "https://proxy.example/line/v2/bot/message/push"


async def test_a_delivery_has_one_retry_key_on_every_try_and_no_other_has_it() -> None:  # L10, I3
    outgoing = ToldOutgoing(SENT)
    channel, again = a_channel(outgoing), a_channel(outgoing)
    first = an_attempt(1)
    await channel.send([first, an_attempt(2)])
    await again.send([replace(first, number=2)])
    one, other, second_try = keys_of(outgoing.calls)
    assert one == second_try != other
    assert UUID(one).version == 5


def test_a_retry_key_stays_the_same_from_release_to_release() -> None:
    assert str(retry_key(a_key(1))) == "04fcd9e5-6943-5f38-8808-75d872defb31"


async def test_without_a_title_the_body_stands_alone() -> None:
    _, outgoing = await sent(Content("Hello"))
    assert b'"text":"Hello"' in outgoing.calls[0].body


@pytest.mark.parametrize(
    ("text", "length"),
    [("a" * 5_000, 5_000), ("🍚" * 2_500, 5_000), ("米" * 5_000, 5_000), ("🍚" * 2_499 + "é", 4_999)],
)
async def test_a_text_may_have_5000_utf_16_units(text: str, length: int) -> None:
    assert length_of(text) == length
    outcome, _ = await sent(Content(text))
    assert isinstance(outcome, Sent)


@pytest.mark.parametrize("text", ["a" * 5_001, "🍚" * 2_501, "🍚" * 2_500 + "a"])
async def test_a_longer_text_is_refused_and_never_cut(text: str) -> None:
    outcome, outgoing = await sent(Content(text))
    assert isinstance(outcome, Rejected) and outcome.code == "TEXT_TOO_LONG"
    assert outgoing.calls == []


async def test_title_and_body_count_together() -> None:
    outcome, _ = await sent(Content("a" * 4_990, title="a" * 9))
    assert isinstance(outcome, Rejected) and "5,001" in outcome.error


@pytest.mark.parametrize("content", [Content(""), Content(" \n\t"), Content("", title=" ")])
async def test_an_empty_text_is_refused(content: Content) -> None:
    outcome, outgoing = await sent(content)
    assert isinstance(outcome, Rejected) and outcome.code == "TEXT_EMPTY"
    assert outgoing.calls == []


@pytest.mark.parametrize("address", ["", "hanako", "u" + "0" * 32, "U" + "0" * 31, "U" + "0" * 33, "C" + "0" * 32])
async def test_what_is_no_user_id_is_refused_before_anything_is_sent(address: str) -> None:  # N1.13
    outgoing = ToldOutgoing(SENT)
    channel = a_channel(outgoing)
    assert channel.validate_target(address) is not None
    (outcome,) = await channel.send([an_attempt(address=address)])
    assert isinstance(outcome, Rejected) and outcome.code == "INVALID_TOKEN"
    assert outgoing.calls == []


def test_a_user_id_is_a_target() -> None:
    assert a_channel(ToldOutgoing(SENT)).validate_target(user_id(7)) is None


async def test_answers_stand_in_the_order_of_the_attempts() -> None:
    outgoing = ToldOutgoing(SENT, answered(400), NoAnswer("TIMEOUT"), answered(429, {"message": USED_UP}))
    outcomes = await a_channel(outgoing).send([an_attempt(person) for person in range(4)])
    assert [type(outcome).__name__ for outcome in outcomes] == ["Sent", "Rejected", "Unknown", "Misconfigured"]
    assert isinstance(outcomes[3], Misconfigured)


async def test_the_rest_doubles_until_line_takes_something_again() -> None:
    outgoing = ToldOutgoing(TOO_MANY)
    channel = a_channel(outgoing)
    rests: list[timedelta | None] = []
    for _ in range(8):
        (outcome,) = await channel.send([an_attempt()])
        assert isinstance(outcome, Retry) and outcome.scope is Scope.ACCOUNT
        rests.append(outcome.after)
    assert rests == [timedelta(seconds=span) for span in (1, 2, 4, 8, 16, 32, 60, 60)]
    outgoing._replies = [SENT, TOO_MANY]
    await channel.send([an_attempt()])
    (outcome,) = await channel.send([an_attempt()])
    assert isinstance(outcome, Retry) and outcome.after == timedelta(seconds=1)


async def test_a_push_gives_up_before_dispatch_does() -> None:
    outgoing = ToldOutgoing(SENT)
    channel = a_channel(outgoing)
    await channel.send([an_attempt()])
    assert outgoing.calls[0].timeout < channel.attempt_timeout == timedelta(seconds=10)


def test_line_knows_a_delivery_again_for_almost_a_day_and_reports_who_leaves() -> None:
    channel = a_channel(ToldOutgoing(SENT))
    assert isinstance(channel, RepeatingChannel) and isinstance(channel, ReportingChannel)
    assert timedelta(hours=23) < channel.repeats_within < timedelta(hours=24)


# as the reservations reach it


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (answered(200, b"{}", x_line_request_id="r-1"), LineAnswer(200, "{}", "r-1")),
        (answered(409, b"{}", x_line_request_id="r-2", x_line_accepted_request_id="r-1"), LineAnswer(409, "{}", "r-1")),
        (answered(429, {"message": USED_UP}), LineAnswer(429, f'{{"message":"{USED_UP}"}}')),
        (NotSent("NO_CONNECTION", "Connection refused"), LineAnswer(None, "NO_CONNECTION Connection refused")),
        (NoAnswer("TIMEOUT"), LineAnswer(None, "TIMEOUT")),
    ],
)
async def test_a_reservations_push_is_answered_with_what_line_said(
    reply: OutgoingReply, answer: LineAnswer
) -> None:  # L8, L10
    outgoing = ToldOutgoing(reply)
    line = open_line({"NOROSHI_LINE_CHANNEL_ACCESS_TOKEN": TOKEN}, outgoing)
    assert line is not None
    key = UUID(int=7)
    assert await line.push(user_id(1), "Hello", key) == answer
    assert keys_of(outgoing.calls) == [str(key)]
    assert answer.is_sent == (answer.status in {200, 409})


def test_without_a_token_there_is_no_line() -> None:
    outgoing = ToldOutgoing(SENT)
    assert open_line({}, outgoing) is None
    off = open_messaging(Parts(HandClock(), FixedDice(), cast(Attachments, None), cast(Caught, None), outgoing, {}))
    assert isinstance(off, Off) and "LINE_MESSAGING_CHANNEL_ACCESS_TOKEN" in off.why
    values = {"NOROSHI_LINE_CHANNEL_ACCESS_TOKEN": TOKEN}
    assert isinstance(
        open_messaging(Parts(HandClock(), FixedDice(), cast(Attachments, None), cast(Caught, None), outgoing, values)),
        LineChannel,
    )
