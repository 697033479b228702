"""A letter's bytes: whatever text goes in comes out again, and nothing anyone writes becomes a header or a command."""

import re
import time
from collections import Counter
from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from pathlib import Path
from typing import Any

import pytest
from dispatch_cast import NOW
from hypothesis import given
from hypothesis import strategies as st
from smtp_cast import Mailroom, an_attempt, channel_to, mailroom, named

from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import batch_of
from noroshi.domain.outcomes import Rejected, Sent
from noroshi.domain.templates import Content
from noroshi.flow.send.email.smtp import payload
from noroshi.flow.send.email.smtp.addresses import Address, Mailbox, read_mailbox
from noroshi.flow.send.email.smtp.payload import Letter, Letterhead
from noroshi.flow.send.email.smtp.plain_text import text_of

PAYLOADS = Path(__file__).parents[1] / "payloads" / "smtp"
SENDER = Mailbox("The Shop", Address("shop", "noroshi.example"))
HEADERS = {
    *("date", "from", "mime-version", "auto-submitted", "x-noroshi-batch", "x-noroshi-category", "to", "subject"),
    *("message-id", "content-type", "content-transfer-encoding", "reply-to"),
}


def letter(attempt: Attempt) -> Letter:
    made = Letterhead(SENDER, None, NOW).letter(0, attempt)
    assert isinstance(made, Letter), made
    return made


def unstuffed(made: Letter) -> bytes:
    """As a relay keeps it."""
    whole = b"".join(made.pieces)
    assert whole.endswith(b"\r\n.\r\n")
    return whole[:-3].replace(b"\r\n..", b"\r\n.")


def parsed(attempt: Attempt) -> EmailMessage:
    return message_from_bytes(unstuffed(letter(attempt)), policy=policy.default)


def decoded(part: Message) -> str:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content.decode()


def shown(text: str) -> list[str]:
    """The lines of a text, whatever ends them."""
    return re.split("\r\n|\r|\n", text.rstrip("\r\n"))


safe_line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=300)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=2_000)
ascii_text = st.text(st.characters(max_codepoint=127), max_size=2_000)


@given(safe_line)
def test_any_subject_is_read_back_as_it_was(subject: str) -> None:
    assert parsed(an_attempt(content=Content("x", subject=subject)))["Subject"] == subject


@given(safe_line.filter(lambda name: name.strip()))
def test_any_name_is_read_back_as_it_was(name: str) -> None:
    [to] = parsed(an_attempt(recipient=named(name)))["To"].addresses
    assert to.addr_spec == "person-1@example.com"
    # Python's reader adds a space before an encoded word that holds white space alone.
    assert "".join(to.display_name.split()) == "".join(name.split())


@given(any_text | ascii_text, any_text | ascii_text)
def test_any_body_is_read_back_as_it_was_but_for_its_line_ends(text: str, html: str) -> None:
    message = parsed(an_attempt(content=Content(f"a{text}", metadata={"html_body": f"<p>{html}</p>"})))
    plain, rich = message.iter_parts()
    assert shown(decoded(plain)) == shown(f"a{text}")
    assert shown(decoded(rich)) == shown(f"<p>{html}</p>")


@given(any_text | ascii_text, safe_line, safe_line)
def test_no_text_can_end_the_message_or_make_a_line_too_long(
    text: str, subject: str, name: str
) -> None:  # RELIABILITY 5.6
    whole = letter(an_attempt(content=Content(text, subject=subject), recipient=named(name))).pieces[0]
    assert whole.count(b"\r\n.\r\n") == 1
    assert not re.search(rb"(?<!\r)\n|\r(?!\n)|\0", whole), "a bare CR or LF"
    assert not re.search(rb"\n\.(?!\.|\r\n\Z)", whole), "a dot that is not doubled"
    head, _, body = whole.partition(b"\r\n\r\n")
    assert max(map(len, head.split(b"\r\n"))) <= 78
    assert max(map(len, body.split(b"\r\n"))) <= 999
    assert whole.isascii()


SMUGGLED = ["\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", "\n.\n", "\r.\r", "\n.\r\n", "\r\n.\n", ".", "..", "\x1a.\r\n"]


@pytest.mark.parametrize("text", SMUGGLED)
async def test_nothing_is_smuggled_past_the_end_of_the_content(text: str) -> None:  # RELIABILITY 5.6
    attempts = [an_attempt(1, Content(f"before{text}after")), an_attempt(2, Content(text))]
    async with mailroom() as (room, port), channel_to(port, connections="1") as channel:
        outcomes = await channel.send(attempts)
    assert [type(outcome) for outcome in outcomes] == [Sent, Sent]
    assert [taken.recipients for taken in room.taken] == [["person-1@example.com"], ["person-2@example.com"]]
    assert shown(decoded(room.taken[0].message)) == shown(f"before{text}after")


INJECTIONS = [
    *("x\r\nBcc: evil@example.com", "x\nBcc: evil@example.com", "x\rBcc: evil@example.com", "x\r\n\r\n<script>"),
    *("x\r\n Bcc: evil@example.com", "x\n\tBcc: evil@example.com", "\r\nBcc: evil@example.com", "x\n", "\r", "x\0y"),
    *("x\x0bBcc: e@e", "x\x0cBcc: e@e", "x\x1cBcc: e@e", "x\x1dBcc: e@e", "x\x1eBcc: e@e", "x\x7fy", "x\x1by"),
    *("x\x85Bcc: e@e", "x\u2028Bcc: e@e", "x\u2029Bcc: e@e", "x\ty"),
]
HARMLESS = [
    *(
        "=?utf-8?Q?x=0D=0ABcc:_evil@example.com?=",
        "=?utf-8?B?eA0KQmNjOiBlQGU=?=",
        "x%0d%0aBcc: e@e",
        'x" <evil@example.com>',
    ),
    *("x, evil@example.com", "x; evil@example.com:", "(comment) x", "\\", '"', "x\\r\\nBcc: e@e", "嗊嘊Bcc: e@e"),
]


def places(value: str) -> dict[str, Attempt]:
    """The value in every field that ends in a header."""
    return {
        "subject": an_attempt(content=Content("x", subject=value)),
        "title": an_attempt(content=Content("x", title=value)),
        "name": an_attempt(recipient=named(value)),
        "address": an_attempt(address=value),
        "address, its local part": an_attempt(address=f"{value}@example.com"),
        "address, its domain": an_attempt(address=f"hanako@{value}"),
        "category": an_attempt(category=value),
        "reply to": an_attempt(content=Content("x", metadata={"reply_to": value})),
        "reply to, its name": an_attempt(content=Content("x", metadata={"reply_to": f"{value} <a@b.example>"})),
    }


@pytest.mark.parametrize("place", places("x"))
async def test_a_value_that_could_become_a_header_is_refused_and_nothing_is_sent(place: str) -> None:
    # RELIABILITY 5.6
    async with mailroom() as (room, port), channel_to(port) as channel:
        outcomes = await channel.send([places(value)[place] for value in INJECTIONS])
    for outcome in outcomes:
        assert isinstance(outcome, Rejected) and outcome.code in {"UNSAFE_HEADER", "INVALID_ADDRESS"}
        assert "evil" not in outcome.error and "Bcc" not in outcome.error
    assert (room.taken, room.sessions) == ([], 0)


@pytest.mark.parametrize("value", HARMLESS)
async def test_a_value_that_only_looks_like_a_header_adds_none(value: str) -> None:  # RELIABILITY 5.6
    attempts = list(places(value).values())
    room = Mailroom()
    async with mailroom(room) as (_, port), channel_to(port) as channel:
        outcomes = await channel.send(attempts)
    assert len(room.taken) == sum(isinstance(outcome, Sent) for outcome in outcomes) >= 4
    for taken in room.taken:
        message = taken.message
        assert len(message.keys()) == len(set(message.keys())) and {k.lower() for k in message} <= HEADERS
        assert len(message["To"].addresses) == 1 and len(taken.recipients) == 1
        assert not message["To"].defects


def test_a_mail_without_html_is_plain_text() -> None:  # N1.4
    message = parsed(an_attempt(content=Content("Hello", subject="Hi")))
    assert message.get_content_type() == "text/plain" and not message.is_multipart()


def test_a_text_is_encoded_once_for_letters_in_a_row_and_never_mistaken_for_another() -> None:
    head = Letterhead(SENDER, None, NOW)
    texts = ["one", "one", "two", "花", "one", ""]
    letters = [head.letter(n, an_attempt(n, Content(text))) for n, text in enumerate(texts)]
    messages = [message_from_bytes(unstuffed(one), policy=policy.default) for one in letters if isinstance(one, Letter)]
    assert [message.get_content().strip() for message in messages] == texts


async def test_what_the_letters_of_a_batch_share_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:  # B7
    built: Counter[str] = Counter()

    def counted(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
        def count(*words: Any) -> Any:
            built[name] += 1
            return build(*words)

        return count

    monkeypatch.setattr(payload, "_encode", counted("parts", payload._encode))
    monkeypatch.setattr(payload, "format_datetime", counted("heads", payload.format_datetime))
    monkeypatch.setattr(payload, "show", counted("tags", payload.show))
    content = Content("Grüße", subject="Hello", metadata={"html_body": "<p>Grüße</p>"})
    attempts = [an_attempt(person, content) for person in range(1, 31)]
    async with mailroom() as (room, port), channel_to(port) as channel:
        assert {type(said) for said in await channel.send(attempts)} == {Sent}
    assert len(room.taken) == 30
    assert built == {"parts": 2, "heads": 1, "tags": len({batch_of(one.key.notification_id) for one in attempts})}


def test_the_text_body_of_the_template_goes_before_its_body() -> None:  # N1.4
    content = Content("short", metadata={"text_body": "long", "html_body": "<p>rich</p>"})
    plain, _ = parsed(an_attempt(content=content)).iter_parts()
    assert plain.get_content().strip() == "long"


def test_the_plain_part_of_a_mail_that_has_html_only_is_drawn_from_it() -> None:  # N1.4
    html = '<h1>Hi</h1><p>Your <a href="https://shop.example/o/1?a=1&amp;b=2">order</a> &amp; more</p>'
    plain, _ = parsed(an_attempt(content=Content("", metadata={"html_body": html}))).iter_parts()
    assert plain.get_content().split("\r\n") == ["Hi", "", "Your order (https://shop.example/o/1?a=1&b=2) & more"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<head><title>T</title></head><p>a</p><p>b</p>", "a\n\nb"),
        ("<style>p{color:red}</style><script>alert('<p>')</script>x", "x"),
        ("<ul><li>one</li><li>two</li></ul>", "- one\n- two"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"),
        ('<a title="a>b" href=#top>x</a>', "x"),
        ("1 < 2 <!-- no --> &lt;b&gt;", "1 < 2 <b>"),
        ("cut <b off", "cut"),
        ("<!doctype html>x<!-- never ends", "x"),
    ],
)
def test_html_as_a_person_would_read_it(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize("piece", ["<", "<a ", "<a href='", "<!--", "<style>", "</", "<p>", "<a x=\"'", "&"])
def test_html_made_to_be_hard_takes_no_longer_than_any_other(piece: str) -> None:
    began = time.process_time()
    text_of(piece * (256 * 1024 // len(piece)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "mailbox"),
    [
        ("a@b.example", Mailbox("", Address("a", "b.example"))),
        ("Shop <a@b.example>", Mailbox("Shop", Address("a", "b.example"))),
        ('"Shop, Inc." <a@b.example>', Mailbox("Shop, Inc.", Address("a", "b.example"))),
        ("店 <a@日本.example>", Mailbox("店", Address("a", "xn--wgv71a.example"))),
        ("Shop a@b.example", None),
        ("<a@b.example> <c@d.example>", None),
        ("Shop <>", None),
    ],
)
def test_a_mailbox_is_an_address_or_a_name_with_one(text: str, mailbox: Mailbox | None) -> None:
    assert read_mailbox(text) == mailbox


@pytest.mark.parametrize("name", ["plain", "rich"])
def test_the_bytes_are_those_that_were_kept(name: str) -> None:
    contents = {
        "plain": Content("Hello Hanako,\n.your order is on its way.\n", subject="Order A-1"),
        "rich": Content(
            "花子さん、ご注文を承りました。",
            subject="ご注文 A-1 を承りました",
            metadata={
                "html_body": "<p>花子さん、<b>ご注文</b>を承りました。</p>",
                "reply_to": "Help <help@noroshi.example>",
            },
        ),
    }
    made = letter(an_attempt(content=contents[name], recipient=named("山田 花子" if name == "rich" else "Hanako")))
    assert b"".join(made.pieces) == (PAYLOADS / f"{name}.eml").read_bytes()
