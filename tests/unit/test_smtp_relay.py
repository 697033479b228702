"""E-mail over SMTP to a relay that somebody else wrote: what arrives, over which connection, and who may log in."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from dispatch_cast import NOW, HandClock
from smtp_cast import Mailroom, an_attempt, certificate, channel_to, mailroom, named

from noroshi.domain.outcomes import Gone, Misconfigured, Rejected, Sent
from noroshi.domain.templates import Content

pytestmark = pytest.mark.asyncio

RICH = Content("Hello Hanako", subject="Greetings", metadata={"html_body": "<p>Hello <b>Hanako</b></p>"})


async def test_a_message_arrives_as_it_was_composed() -> None:  # N1.4
    clock = HandClock()
    async with (
        mailroom() as (room, port),
        channel_to(port, clock=clock, reply_to="Help <help@noroshi.example>") as channel,
    ):
        [outcome] = await channel.send([an_attempt(content=RICH)])
    [taken] = room.taken
    message = taken.message
    assert (taken.sender, taken.recipients) == ("shop@noroshi.example", ["person-1@example.com"])
    assert isinstance(outcome, Sent) and message["Message-ID"] == f"<{outcome.message_id}>"
    assert message["From"] == "The Shop <shop@noroshi.example>"
    assert message["To"] == "Hanako <person-1@example.com>"
    assert message["Reply-To"] == "Help <help@noroshi.example>"
    assert message["Subject"] == "Greetings"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["X-Noroshi-Category"] == "general" and message["X-Noroshi-Batch"]
    assert parsedate_to_datetime(message["Date"]) == datetime.fromtimestamp(NOW // 1_000_000, UTC)
    text, html = message.iter_parts()
    assert (text.get_content_type(), text.get_content().strip()) == ("text/plain", "Hello Hanako")
    assert (html.get_content_type(), html.get_content().strip()) == ("text/html", "<p>Hello <b>Hanako</b></p>")


async def test_the_message_id_is_the_same_on_every_try_and_another_for_another_delivery() -> None:
    async with mailroom() as (room, port), channel_to(port) as channel:
        await channel.send([an_attempt(1), an_attempt(1, number=2), an_attempt(2)])
    first, again, other = (taken.message["Message-ID"] for taken in room.taken)
    assert first == again != other


@pytest.mark.parametrize("extensions", [("PIPELINING",), ()])
async def test_many_messages_go_over_few_connections_and_each_arrives_once(extensions: tuple[str, ...]) -> None:
    async with mailroom(Mailroom(extensions)) as (room, port), channel_to(port, connections="3") as channel:
        for _ in range(2):
            outcomes = await channel.send([an_attempt(n) for n in range(1, 101)])
            assert all(isinstance(outcome, Sent) for outcome in outcomes)
            assert len({outcome.message_id for outcome in outcomes if isinstance(outcome, Sent)}) == 100
    assert Counter(t.recipients[0] for t in room.taken) == {f"person-{n}@example.com": 2 for n in range(1, 101)}
    assert room.sessions <= 3


async def test_a_refused_recipient_costs_no_neighbour_anything() -> None:
    room = Mailroom()
    room.refuse["person-2@example.com"] = "550 5.1.1 <person-2@example.com>: no such user"
    async with mailroom(room) as (_, port), channel_to(port) as channel:
        first, second, third = await channel.send([an_attempt(n) for n in (1, 2, 3)])
    assert isinstance(first, Sent) and isinstance(third, Sent)
    assert second == Gone("SMTP_550_5.1.1", "(address): no such user")
    assert room.sessions == 1


async def test_starttls_and_both_ways_to_log_in(tmp_path: Path) -> None:
    ca, context = certificate(tmp_path, "127.0.0.1")
    url = "smtp://hanako%40shop:p%3Ass%2Fw%C3%B6rd@127.0.0.1?starttls=required"
    for left_out in ([], ["PLAIN"]):
        how: dict[str, Any] = {
            "tls_context": context,
            "require_starttls": True,
            "auth_required": True,
            "auth_exclude_mechanism": left_out,
        }
        async with mailroom(**how) as (room, port), channel_to(port, url, ca=str(ca)) as channel:
            [outcome] = await channel.send([an_attempt()])
        assert isinstance(outcome, Sent), outcome
        assert room.logins == [("hanako@shop", "p:ss/wörd")]


async def test_tls_from_the_first_byte(tmp_path: Path) -> None:
    ca, context = certificate(tmp_path, "127.0.0.1")
    async with (
        mailroom(tls_at_once=context) as (room, port),
        channel_to(port, "smtps://127.0.0.1", ca=str(ca)) as channel,
    ):
        [outcome] = await channel.send([an_attempt()])
        await asyncio.sleep(0)
    assert isinstance(outcome, Sent) and len(room.taken) == 1


@pytest.mark.parametrize("url", ["smtps://127.0.0.1", "smtp://127.0.0.1?starttls=required"])
async def test_a_certificate_for_another_name_stops_the_account_before_anything_is_said(
    tmp_path: Path, url: str
) -> None:
    ca, context = certificate(tmp_path, "other.example")
    at_once = context if url.startswith("smtps") else None
    how: dict[str, Any] = {} if at_once else {"tls_context": context}
    async with mailroom(tls_at_once=at_once, **how) as (room, port), channel_to(port, url, ca=str(ca)) as channel:
        [outcome] = await channel.send([an_attempt()])
    assert isinstance(outcome, Misconfigured) and outcome.code == "TLS_CERTIFICATE"
    assert room.taken == []


async def test_a_wrong_password_stops_the_account_and_is_told_to_nobody(tmp_path: Path) -> None:
    ca, context = certificate(tmp_path, "127.0.0.1")
    how: dict[str, Any] = {"tls_context": context, "require_starttls": True, "auth_required": True}
    url = "smtp://hanako%40shop:Sesam-99@127.0.0.1?starttls=required"
    async with mailroom(**how) as (_, port), channel_to(port, url, ca=str(ca)) as channel:
        outcomes = await channel.send([an_attempt(1), an_attempt(2)])
    assert [o.code for o in outcomes if isinstance(o, Misconfigured)] == ["SMTP_535_5.7.8"] * 2
    assert "Sesam-99" not in repr(outcomes) + repr(channel._settings)


async def test_addresses_outside_ascii() -> None:
    people = ["hanako@日本.example", "花子@example.com"]
    attempts = [an_attempt(n, address=address) for n, address in enumerate(people, 1)]
    async with mailroom() as (room, port), channel_to(port) as channel:
        outcomes = await channel.send(attempts)
    assert [type(o) for o in outcomes] == [Sent, Sent]
    domain, local = room.taken
    assert domain.recipients == ["hanako@xn--wgv71a.example"] and not domain.utf8
    assert local.recipients == ["花子@example.com"] and local.utf8
    assert "花子@example.com".encode() in local.raw


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "a@b>\r\nRCPT TO:<c@d",
        "a b@example.com",
        "a@b@c",
        "a\0@b.example",
        '"a b"@b.example',
        "a@-b.example",
        "a\ud800@b.example",
    ],
)
async def test_what_is_no_plain_address_is_rejected_and_nothing_is_said(address: str) -> None:
    async with mailroom() as (room, port), channel_to(port) as channel:
        bad, good = await channel.send([an_attempt(1, address=address), an_attempt(2)])
        assert channel.validate_target(address) is not None
    assert isinstance(bad, Rejected) and bad.code == "INVALID_ADDRESS"
    assert isinstance(good, Sent) and [t.recipients for t in room.taken] == [["person-2@example.com"]]


async def test_a_message_over_the_relays_size_is_rejected_before_it_is_sent() -> None:
    async with mailroom(data_size_limit=2_000) as (room, port), channel_to(port) as channel:
        big, small = await channel.send([an_attempt(1, Content("x" * 3_000)), an_attempt(2)])
    assert isinstance(big, Rejected) and big.code == "MESSAGE_TOO_BIG"
    assert isinstance(small, Sent) and len(room.taken) == 1


async def test_an_idle_connection_is_closed_and_a_new_one_opened_when_it_is_needed() -> None:
    clock = HandClock()
    async with mailroom() as (room, port), channel_to(port, clock=clock) as channel:
        await channel.send([an_attempt(1)])
        await channel.send([an_attempt(2)])
        assert room.sessions == 1
        await clock.advance(timedelta(seconds=25))
        await channel.send([an_attempt(3, recipient=named("Taro"))])
    assert (room.sessions, len(room.taken)) == (2, 3)
