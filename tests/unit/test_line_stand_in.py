"""The channel against LINE's stand-in over a real socket: every outcome, and the stand-in's own word on each."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from line_cast import an_attempt
from msgspec.structs import replace
from tests.stand_ins.line import conduct as like
from tests.stand_ins.line.conduct import Conduct
from tests.stand_ins.line.process import TOKEN, LineStandIn, user_id

from noroshi.care.quotas import examine_quotas
from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.quotas import Quota
from noroshi.domain.templates import Content
from noroshi.flow.send.line.messaging.channel import LineChannel, LinePusher
from noroshi.flow.send.line.messaging.payload import retry_key
from noroshi.flow.send.line.messaging.settings import LineSettings
from noroshi.machine.outgoing.client import ReqwestOutgoing
from noroshi.settings import read_settings


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineStandIn]:
    with LineStandIn(tmp_path_factory.mktemp("line") / "ledger") as started:
        yield started


@pytest.fixture
def line(stand_in: LineStandIn) -> LineStandIn:
    stand_in.behave(like.GOOD)
    return stand_in


@pytest.fixture
async def outgoing() -> AsyncIterator[ReqwestOutgoing]:
    opened = ReqwestOutgoing()
    yield opened
    await opened.close()


@pytest.fixture
def channel(line: LineStandIn, outgoing: ReqwestOutgoing) -> LineChannel:
    return LineChannel(LineSettings(TOKEN, url=line.url, timeout=timedelta(seconds=1)), outgoing)


people = iter(range(1_000_000, 2_000_000))
"""Nobody is told twice: the retry keys of one test are not those of another."""


async def push(channel: LineChannel, person: int | None = None) -> Outcome:
    (outcome,) = await channel.send([an_attempt(next(people) if person is None else person)])
    return outcome


def takings(line: LineStandIn, person: int) -> int:
    return sum(pushed.to == user_id(person) for pushed in line.pushed())


async def test_what_is_sent_is_in_the_ledger_word_for_word(line: LineStandIn, channel: LineChannel) -> None:  # N1.8
    person = next(people)
    outcome = await push(channel, person)
    (pushed,) = [pushed for pushed in line.pushed() if pushed.to == user_id(person)]
    assert outcome == Sent(pushed.message_id)
    assert pushed.texts == ("Pick-up tomorrow\n\nYour rice is ready.",)
    assert pushed.retry_key == str(retry_key(an_attempt(person).key))


async def test_fifty_go_out_at_once(line: LineStandIn, channel: LineChannel) -> None:
    line.behave(Conduct(delay=0.3))
    attempts = [an_attempt(next(people)) for _ in range(channel.max_batch)]
    outcomes = await channel.send(attempts)
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert len({outcome.message_id for outcome in outcomes if isinstance(outcome, Sent)}) == 50


async def test_the_same_delivery_is_taken_once_and_sent_twice(line: LineStandIn, channel: LineChannel) -> None:  # L10
    person = next(people)
    first, second = await push(channel, person), await push(channel, person)
    assert isinstance(first, Sent) and isinstance(second, Sent)
    assert takings(line, person) == 1
    (pushed,) = [pushed for pushed in line.pushed() if pushed.to == user_id(person)]
    assert second.message_id == pushed.request_id


async def test_a_retry_key_outlasts_a_restart_of_line(line: LineStandIn, channel: LineChannel) -> None:
    person = next(people)
    await push(channel, person)
    line.kill()
    line.start()
    assert isinstance(await push(channel, person), Sent)
    assert takings(line, person) == 1


async def test_after_a_day_line_no_longer_knows_the_delivery(line: LineStandIn, channel: LineChannel) -> None:
    person = next(people)
    await push(channel, person)
    almost, later = timedelta(hours=23, minutes=59).total_seconds(), timedelta(hours=24, seconds=1).total_seconds()
    line.behave(Conduct(ahead=almost))
    await push(channel, person)
    assert takings(line, person) == 1
    line.behave(Conduct(ahead=later))
    await push(channel, person)
    assert takings(line, person) == 2


@pytest.mark.parametrize(
    ("conduct", "kind", "code"),
    [
        (like.RATE_LIMITED, Retry, "LINE_RATE_LIMITED"),
        (like.MONTHLY_LIMIT, Misconfigured, "LINE_MONTHLY_LIMIT"),
        (like.FAILING, Retry, "LINE_500"),
        (Conduct(status=503), Retry, "LINE_503"),
        (like.REFUSING, Rejected, "LINE_400"),
        (like.UNKNOWN_USER, Gone, "LINE_400_TO"),
        (like.UNAUTHORISED, Misconfigured, "LINE_401"),
        (like.FORBIDDEN, Misconfigured, "LINE_403"),
        (like.HANGING, Unknown, "TIMEOUT"),
        (like.DROPPING, Unknown, "CONNECTION_LOST"),
        (Conduct(is_dropping=True), Unknown, "CONNECTION_LOST"),
        (Conduct(delay=0.4), Sent, None),
    ],
)
async def test_every_way_to_misbehave_has_its_outcome(
    line: LineStandIn, channel: LineChannel, conduct: Conduct, kind: type, code: str | None
) -> None:  # N1.9
    line.behave(conduct)
    outcome = await push(channel)
    assert type(outcome) is kind
    assert getattr(outcome, "code", None) == code


async def test_a_wrong_token_stops_the_account(line: LineStandIn, outgoing: ReqwestOutgoing) -> None:
    outcome = await push(LineChannel(LineSettings("another", url=line.url), outgoing))
    assert isinstance(outcome, Misconfigured) and outcome.code == "LINE_401"


async def test_where_nobody_listens_the_account_rests(line: LineStandIn, channel: LineChannel) -> None:
    line.kill()
    outcome = await push(channel)
    line.start()
    assert isinstance(outcome, Retry) and (outcome.code, outcome.scope) == ("NO_CONNECTION", Scope.ACCOUNT)


@pytest.mark.parametrize(
    "conduct", [like.DROPPING, replace(like.FAILING, is_taking=True), replace(like.HANGING, is_taking=True)]
)
async def test_what_was_taken_and_not_answered_is_sent_by_the_next_try_and_taken_once(
    line: LineStandIn, channel: LineChannel, conduct: Conduct
) -> None:  # L10, W11
    person = next(people)
    line.behave(replace(conduct, requests=1))
    assert not isinstance(await push(channel, person), Sent)
    assert isinstance(await push(channel, person), Sent)
    assert takings(line, person) == 1


async def test_in_the_middle_of_a_batch_the_plan_runs_out(line: LineStandIn, channel: LineChannel) -> None:
    line.behave(Conduct(monthly=len(line.pushed()) + 20))
    outcomes = await channel.send([an_attempt(next(people)) for _ in range(50)])
    assert sum(isinstance(outcome, Sent) for outcome in outcomes) == 20
    assert sum(isinstance(outcome, Misconfigured) for outcome in outcomes) == 30


async def test_line_counts_as_we_do(line: LineStandIn, outgoing: ReqwestOutgoing) -> None:
    pusher = LinePusher(LineSettings(TOKEN, url=line.url), outgoing)
    keys = [retry_key(an_attempt(next(people)).key) for _ in range(3)]
    assert (await pusher.push(user_id(1), "🍚" * 2_500, keys[0])).status == 200
    assert (await pusher.push(user_id(1), "🍚" * 2_500 + "a", keys[1])).status == 400
    assert (await pusher.push(user_id(1), "", keys[2])).status == 400


async def test_line_says_what_is_left_of_the_plan(line: LineStandIn, channel: LineChannel) -> None:
    assert await channel.quota() == Quota(len(line.pushed()))
    line.behave(Conduct(monthly=7))
    assert await channel.quota() == Quota(len(line.pushed()), 7)
    line.kill()
    silent = await channel.quota()
    line.start()
    assert silent is None


async def test_the_doctor_shows_what_is_left_of_the_plan(line: LineStandIn, tmp_path: Path) -> None:
    used = len(line.pushed())
    shown: list[tuple[str, str]] = []
    for monthly in (None, used * 10, used + 1, used):
        line.behave(Conduct(monthly=monthly))
        (found,) = await examine_quotas(read_settings(line.environment, {"data": str(tmp_path)}))
        assert found.subject == "quota of line"
        shown.append((found.level, found.text))
    assert [level for level, _ in shown] == ["ok", "ok", "warning", "problem"]
    assert shown[3][1] == f"{used} of {used} messages this month"
    assert await examine_quotas(read_settings({}, {"data": str(tmp_path)})) == []


async def test_text_of_any_language_arrives(line: LineStandIn, channel: LineChannel) -> None:
    person = next(people)
    text = '受け取りは明日です。\n🍚 5kg × 2 \u2028 \\ " </script>'
    await channel.send([an_attempt(person, Content(text))])
    (pushed,) = [pushed for pushed in line.pushed() if pushed.to == user_id(person)]
    assert pushed.texts == (text,)
