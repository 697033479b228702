"""Relays that misbehave (F17): what each letter's outcome is, and that no neighbour pays for another's trouble."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from dispatch_cast import HandClock, seconds
from smtp_cast import EMAIL, Caller, Script, ScriptedRelay, an_attempt, certificate, channel_to

from noroshi.domain.outcomes import Gone, Misconfigured, Outcome, Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.priorities import Priority

pytestmark = pytest.mark.asyncio

PIPELINING = "PIPELINING"


def kinds(outcomes: Sequence[Outcome]) -> list[type[Outcome]]:
    return [type(outcome) for outcome in outcomes]


def take(count: int, *, then: str = "") -> Script:
    """A relay that takes so many letters and then says something or nothing and hangs up."""

    async def script(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        for _ in range(count):
            await caller.take_one()
        if then:
            caller.say(then)
        else:
            await caller.end()

    return script


async def test_a_drop_after_the_content_leaves_one_letter_in_doubt_and_the_rest_goes_on() -> None:  # F17, W11
    async def drops(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.take_one()
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok", "354 go")
        await caller.hear_content()

    async with ScriptedRelay(drops, take(1)).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in (1, 2, 3)])
        await channel.close()
    assert kinds(outcomes) == [Sent, Unknown, Sent]
    assert isinstance(outcomes[1], Unknown) and outcomes[1].code == "CONNECTION_LOST"


async def test_half_a_pipeline_of_answers_begins_nothing_and_the_letter_goes_over_the_next_connection() -> None:  # F17
    async def half(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.take_one()
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok")

    async with ScriptedRelay(half, take(1)).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(1), an_attempt(2)])
        await channel.close()
    assert kinds(outcomes) == [Sent, Sent]


async def test_a_letter_at_which_fresh_connections_break_is_retried_by_itself_and_the_rest_by_the_account() -> (
    None
):  # F17
    async def drops(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.hear("MAIL", "RCPT", "DATA")

    async with ScriptedRelay(drops, drops).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in (1, 2, 3, 4)])
    assert kinds(outcomes) == [Retry] * 4
    scopes = [outcome.scope for outcome in outcomes if isinstance(outcome, Retry)]
    assert scopes == [Scope.MESSAGE, Scope.MESSAGE, Scope.ACCOUNT, Scope.ACCOUNT]


async def test_a_relay_that_drops_every_content_is_not_given_the_whole_batch() -> None:  # F17
    async def drops(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok", "354 go")
        await caller.hear_content()

    async with ScriptedRelay(drops, drops).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in range(1, 10)])
    assert kinds(outcomes) == [Unknown, Unknown] + [Retry] * 7
    assert all(o.scope is Scope.ACCOUNT for o in outcomes if isinstance(o, Retry))


async def test_421_in_the_middle_sends_the_rest_over_a_new_connection() -> None:  # F17
    async def goodbye(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.take_one()
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("421 4.7.0 too many messages in this session")

    async with ScriptedRelay(goodbye, take(2)).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in (1, 2, 3)])
        await channel.close()
    assert kinds(outcomes) == [Sent] * 3


async def test_421_to_every_first_letter_rests_the_account_and_begins_nothing() -> None:  # F17
    async def goodbye(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("421 4.3.2 shutting down")

    async with ScriptedRelay(goodbye, goodbye).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(1), an_attempt(2)])
    assert outcomes == [Retry("SMTP_421_4.3.2", "shutting down", scope=Scope.ACCOUNT)] * 2


async def test_421_after_the_content_is_an_answer_and_not_a_doubt() -> None:  # F17
    async def goodbye(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.take_one("421 4.4.2 bye")

    async with ScriptedRelay(goodbye).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(1)])
    assert outcomes == [Retry("SMTP_421_4.4.2", "bye", scope=Scope.ACCOUNT)]


async def test_a_refusal_after_the_content_concerns_that_letter_alone() -> None:  # F17: 451 and 552 after DATA
    async def picky(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.take_one("451 4.3.0 try later")
        await caller.take_one("552 5.3.4 too big")
        await caller.take_one()
        await caller.end()

    async with ScriptedRelay(picky).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in (1, 2, 3)])
        await channel.close()
    assert kinds(outcomes) == [Retry, Rejected, Sent]


async def test_greylisting_waits_some_minutes() -> None:  # F17
    async def grey(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "450 4.7.1 greylisted", "503 5.5.1 no recipients")
        await caller.hear("RSET")
        caller.say("250 ok")
        await caller.end()

    async with ScriptedRelay(grey).open() as relay, channel_to(relay.port) as channel:
        outcomes = await channel.send([an_attempt(1)])
        await channel.close()
    assert outcomes == [Retry("SMTP_450_4.7.1", "greylisted", timedelta(minutes=5), Scope.RECIPIENT)]


async def test_a_relay_that_wants_content_for_nobody_gets_none() -> None:  # RFC 2920 3.1
    async def eager(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "550 5.1.1 unknown", "354 go")
        await caller.hear(".")
        caller.say("554 5.5.1 no valid recipients")
        await caller.hear("RSET")
        caller.say("250 ok")
        await caller.take_one()
        await caller.end()

    async with ScriptedRelay(eager).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(1), an_attempt(2)])
        await channel.close()
    assert kinds(outcomes) == [Gone, Sent]


async def test_an_answer_for_the_whole_account_stops_the_batch() -> None:
    async def closed(caller: Caller) -> None:
        await caller.greet()
        await caller.hear("MAIL")
        caller.say("530 5.7.0 authentication required")
        await caller.hear("RSET")
        caller.say("250 ok")
        await caller.end()

    async with ScriptedRelay(closed).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in range(1, 20)])
        await channel.close()
    assert outcomes == [Misconfigured("SMTP_530_5.7.0", "authentication required")] * 19


async def test_refusals_by_policy_in_a_row_are_taken_for_our_own_fault() -> None:
    async def blocked(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        for _ in range(5):
            await caller.hear("MAIL", "RCPT", "DATA")
            caller.say("250 ok", "550 5.7.1 blocked", "503 no")
            await caller.hear("RSET")
            caller.say("250 ok")
        await caller.end()

    async with ScriptedRelay(blocked).open() as relay, channel_to(relay.port, connections="1") as channel:
        outcomes = await channel.send([an_attempt(n) for n in range(1, 10)])
        await channel.close()
    assert kinds(outcomes) == [Rejected] * 4 + [Misconfigured] * 5


async def test_a_stale_connection_of_the_pool_costs_no_letter_a_try() -> None:
    stale = take(1, then="421 4.4.2 idle too long")
    async with ScriptedRelay(stale, take(1)).open() as relay, channel_to(relay.port) as channel:
        [first] = await channel.send([an_attempt(1)])
        while not relay.callers[0].writer.is_closing():
            await asyncio.sleep(0.01)
        [second] = await channel.send([an_attempt(2)])
    assert kinds([first, second]) == [Sent, Sent]


async def test_a_relay_that_is_not_there_rests_the_account() -> None:
    async with ScriptedRelay().open() as relay:
        port = relay.port
    async with channel_to(port) as channel:
        outcomes = await channel.send([an_attempt(1), an_attempt(2)])
    assert outcomes == [Retry("CONNECTION_FAILED", "ConnectionRefusedError", scope=Scope.ACCOUNT)] * 2


@pytest.mark.parametrize(
    ("greeting", "outcome"),
    [
        ("421 4.7.0 too many connections", Retry("SMTP_421_4.7.0", "too many connections", scope=Scope.ACCOUNT)),
        ("554 5.7.1 you are on a list", Misconfigured("SMTP_554_5.7.1", "you are on a list")),
        ("HTTP/1.1 400 Bad Request", Retry("CONNECTION_LOST", "a line without a reply code", scope=Scope.ACCOUNT)),
    ],
)
async def test_a_relay_that_does_not_want_us(greeting: str, outcome: Outcome) -> None:
    async def unfriendly(caller: Caller) -> None:
        caller.say(greeting)

    async with ScriptedRelay(unfriendly).open() as relay, channel_to(relay.port) as channel:
        assert await channel.send([an_attempt(1)]) == [outcome]


async def test_time_that_is_up_tells_what_was_in_doubt_from_what_was_not_begun() -> None:
    async def silent(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.take_one()
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok", "354 go")
        await caller.hear_content()
        heard.set()
        await caller.end()

    heard, clock = asyncio.Event(), HandClock()
    async with ScriptedRelay(silent).open() as relay, channel_to(relay.port, clock=clock) as channel:
        sending = asyncio.create_task(channel.send([an_attempt(n) for n in (1, 2, 3)]))
        await heard.wait()
        await clock.advance(seconds(53))
        assert not sending.done()
        await clock.advance(seconds(2))
        outcomes = await sending
    assert kinds(outcomes) == [Sent, Unknown, Retry]
    assert isinstance(outcomes[2], Retry) and outcomes[2].scope is Scope.ACCOUNT


async def test_a_slow_greeting_begins_nothing() -> None:
    async def sleepy(caller: Caller) -> None:
        reached.set()
        await caller.end()

    reached, clock = asyncio.Event(), HandClock()
    async with ScriptedRelay(sleepy).open() as relay, channel_to(relay.port, clock=clock) as channel:
        sending = asyncio.create_task(channel.send([an_attempt(1), an_attempt(2)]))
        await reached.wait()
        await clock.advance(seconds(54))
        outcomes = await sending
    assert kinds(outcomes) == [Retry, Retry]
    assert all(o.code == "TIMEOUT" and o.scope is Scope.ACCOUNT for o in outcomes if isinstance(o, Retry))


LOGIN = "smtp://hanako:Sesam-99@127.0.0.1?starttls=required"


async def test_starttls_that_was_stripped_means_that_nothing_is_said() -> None:  # F17: no plaintext downgrade
    async def stripped(caller: Caller) -> None:
        await caller.greet(PIPELINING, "AUTH PLAIN LOGIN")
        assert not await caller.reader.read()

    async with ScriptedRelay(stripped).open() as relay, channel_to(relay.port, LOGIN) as channel:
        [outcome] = await channel.send([an_attempt(1)])
    assert isinstance(outcome, Misconfigured) and outcome.code == "STARTTLS_MISSING"


async def test_starttls_that_is_refused_means_that_nothing_is_said() -> None:  # F17
    async def refusing(caller: Caller) -> None:
        await caller.greet("STARTTLS", "AUTH PLAIN")
        await caller.hear("STARTTLS")
        caller.say("454 4.7.0 not now")
        assert not await caller.reader.read()

    async with ScriptedRelay(refusing).open() as relay, channel_to(relay.port, LOGIN) as channel:
        [outcome] = await channel.send([an_attempt(1)])
    assert outcome == Retry("SMTP_454_4.7.0", "not now", scope=Scope.ACCOUNT)


@pytest.mark.parametrize("is_late", [False, True])
async def test_what_was_said_before_tls_is_not_believed_after_it(
    tmp_path: Path, is_late: bool
) -> None:  # CVE-2011-0411
    ca, _ = certificate(tmp_path, "127.0.0.1")

    async def injecting(caller: Caller) -> None:
        await caller.greet("STARTTLS")
        await caller.hear("STARTTLS")
        if is_late:
            caller.say("220 go")
            await asyncio.sleep(0)
            caller.say("250-relay.example", "250 AUTH PLAIN")
        else:
            caller.say("220 go", "250-relay.example", "250 AUTH PLAIN")
        heard.append(await caller.reader.read())

    heard: list[bytes] = []
    async with ScriptedRelay(injecting).open() as relay, channel_to(relay.port, LOGIN, ca=str(ca)) as channel:
        [outcome] = await channel.send([an_attempt(1)])
    assert isinstance(outcome, Misconfigured | Retry)
    assert b"AUTH" not in heard[0] and b"EHLO" not in heard[0]
    if isinstance(outcome, Misconfigured):
        assert outcome.code == "STARTTLS_INJECTION"


async def test_the_password_is_not_sent_to_a_relay_that_offers_no_known_way_to_log_in() -> None:
    async def odd(caller: Caller) -> None:
        await caller.greet("AUTH GSSAPI")
        assert not await caller.reader.read()

    url = "smtp://hanako:Sesam-99@127.0.0.1"
    async with ScriptedRelay(odd).open() as relay, channel_to(relay.port, url) as channel:
        [outcome] = await channel.send([an_attempt(1)])
    assert isinstance(outcome, Misconfigured) and outcome.code == "AUTH_MISSING"


async def test_a_relay_that_knows_no_ehlo_is_greeted_the_old_way() -> None:
    async def old(caller: Caller) -> None:
        caller.say("220 relay.example")
        await caller.hear("EHLO")
        caller.say("502 what?")
        await caller.hear("HELO [127.0.0.1]" if "." not in caller.heard[0].split("EHLO ")[1] else "HELO")
        caller.say("250 hello")
        for command, reply in (("MAIL", "250 ok"), ("RCPT", "250 ok"), ("DATA", "354 go")):
            await caller.hear(command)
            caller.say(reply)
        await caller.hear_content()
        caller.say("250 ok")
        await caller.end()

    async with ScriptedRelay(old).open() as relay, channel_to(relay.port) as channel:
        assert kinds(await channel.send([an_attempt(1)])) == [Sent]
        await channel.close()


async def test_a_critical_message_waits_for_one_letter_of_a_large_batch_at_most() -> None:  # DESIGN 5.7
    async def steady(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok", "354 go")
        await caller.hear_content()
        reached.set()
        await urgent_waits.wait()
        caller.say("250 ok")
        for _ in range(10):
            await caller.take_one()
        await caller.end()

    reached, urgent_waits = asyncio.Event(), asyncio.Event()
    async with ScriptedRelay(steady).open() as relay, channel_to(relay.port, connections="1") as channel:
        bulk = asyncio.create_task(channel.send([an_attempt(n) for n in range(1, 11)]))
        await reached.wait()
        lane = EMAIL._replace(priority=Priority.CRITICAL)
        urgent = asyncio.create_task(channel.send([an_attempt(99, lane=lane)]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        urgent_waits.set()
        assert kinds(await urgent) == [Sent]
        assert kinds(await bulk) == [Sent] * 10
        await channel.close()
        [caller] = relay.callers
    people = [line for line in caller.heard if line.startswith("RCPT")]
    assert people.index("RCPT TO:<person-99@example.com>") <= 2


async def test_a_relay_that_takes_no_more_connections_is_served_over_those_it_has() -> None:
    async def taking(caller: Caller) -> None:
        await caller.greet(PIPELINING)
        for _ in range(60):
            await caller.take_one()
        await caller.end()

    async def full(caller: Caller) -> None:
        caller.say("421 4.7.0 too many connections")

    async with ScriptedRelay(taking, full).open() as relay, channel_to(relay.port, connections="2") as channel:
        outcomes = await channel.send([an_attempt(n) for n in range(1, 61)])
        await channel.close()
    assert kinds(outcomes) == [Sent] * 60
