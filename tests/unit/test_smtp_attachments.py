"""Attachments in a letter: every byte arrives under its own name, nothing is held twice, nothing becomes a header."""

import asyncio
from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from dispatch_cast import NOW
from hypothesis import example, given
from hypothesis import strategies as st
from smtp_cast import Caller, Drawer, Mailroom, ScriptedRelay, an_attempt, channel_to, mailroom

from noroshi.domain.attachments import Attachment
from noroshi.domain.deliveries import Attempt
from noroshi.domain.ids import BatchId, TenantId
from noroshi.domain.outcomes import Rejected, Retry, Scope, Sent, Unknown
from noroshi.domain.templates import Content
from noroshi.flow.send.email.smtp.addresses import Address, Mailbox
from noroshi.flow.send.email.smtp.enclosures import Enclosures
from noroshi.flow.send.email.smtp.payload import Letter, Letterhead
from noroshi.flow.send.email.smtp.shelf import PORTION, ROOM, portions
from noroshi.flow.send.email.smtp.wire import Wire

SENDER = Mailbox("The Shop", Address("shop", "noroshi.example"))
HERE = BatchId(bytes(16))
ELSEWHERE = 1 << 24
"""The first person of the batch after HERE."""

PLAIN = Content("Hello", subject="Hi")
RICH = Content("Hello", subject="Hi", metadata={"html_body": '<p>Hello <img src="cid:logo"></p>'})
EVERY_BYTE = bytes(range(256)) * 300 + b"\r\n.\r\n--=_noroshi--\r\n"


def attached(content: bytes, filename: str = "a.bin", **more: Any) -> tuple[Attachment, bytes]:
    values = {"content_type": "application/octet-stream", **more}
    return Attachment(filename, size=len(content), **values), content


def letter(content: Content, *files: tuple[Attachment, bytes], person: int = 1) -> Letter:
    told, contents = zip(*files, strict=True)
    made = Letterhead(SENDER, None, NOW).letter(
        0, an_attempt(person, content, attachments=told), Enclosures(told, contents)
    )
    assert isinstance(made, Letter), made
    return made


def parsed(made: Letter) -> EmailMessage:
    whole = b"".join(made.pieces)
    assert whole.endswith(b"\r\n.\r\n") and made.size == len(whole) - 3
    return message_from_bytes(whole[:-3].replace(b"\r\n..", b"\r\n."), policy=policy.default)


def shape(part: Any) -> Any:
    """The types of a message's parts, as deep as they go."""
    kind = part.get_content_type()
    return (kind, *map(shape, part.iter_parts())) if part.is_multipart() else kind


LOGO = attached(b"\x89PNG", "logo.png", content_type="image/png", content_id="logo")
INVOICE = attached(EVERY_BYTE, "invoice.pdf", content_type="application/pdf")
TEXTS = "text/plain"
RELATED = ("multipart/related", "text/html", "image/png")


@pytest.mark.parametrize(
    ("content", "files", "expected"),
    [
        (PLAIN, [INVOICE], ("multipart/mixed", TEXTS, "application/pdf")),
        (PLAIN, [LOGO], ("multipart/mixed", TEXTS, "image/png")),
        (RICH, [LOGO], ("multipart/alternative", TEXTS, RELATED)),
        (RICH, [INVOICE, LOGO], ("multipart/mixed", ("multipart/alternative", TEXTS, RELATED), "application/pdf")),
        (RICH, [INVOICE], ("multipart/mixed", ("multipart/alternative", TEXTS, "text/html"), "application/pdf")),
    ],
)
def test_files_stand_beside_the_text_and_pictures_in_it(
    content: Content, files: list[tuple[Attachment, bytes]], expected: Any
) -> None:  # N1.4
    message = parsed(letter(content, *files))
    assert shape(message) == expected
    assert not [part.defects for part in message.walk() if part.defects]
    found = {part.get_filename(): part for part in message.walk() if part.get_filename()}
    for told, raw in files:
        assert found[told.filename].get_payload(decode=True) == raw
    body = message.get_body(("plain",))
    assert body is not None and body.get_content().strip() == "Hello"


def test_a_picture_is_inline_under_its_id_only_where_the_html_names_it() -> None:
    named, unnamed = (
        next(part for part in parsed(letter(content, LOGO)).walk() if part.get_filename())
        for content in (RICH, Content("Hello", metadata={"html_body": "<p>Hello</p>"}))
    )
    assert (named["Content-ID"], named.get_content_disposition()) == ("<logo>", "inline")
    assert unnamed.get_content_disposition() == "attachment"


def test_people_whose_html_differs_get_each_what_theirs_names() -> None:
    enclosures = Enclosures([LOGO[0]], [LOGO[1]])
    assert enclosures.around("cid:logo") is enclosures.around("and cid:logo again")
    assert enclosures.around("cid:logo").pictures and not enclosures.around("").pictures


names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="/\\"), min_size=1, max_size=255
)


@given(names)
@example("請求書 2026年11月分（株式会社のろし）.pdf")
@example("長" * 251 + ".pdf")
@example('in"voice"; filename=evil.exe')
@example("=?utf-8?B?aGk=?=.pdf")
@example("it's 100%.txt")
@example("x" * 255)
@example(" spaces .pdf ")
def test_any_file_name_is_read_back_as_it_was(name: str) -> None:
    made = letter(PLAIN, attached(b"x", name))
    [part] = [part for part in parsed(made).iter_parts() if part.get_content_disposition() == "attachment"]
    assert part.get_filename() == name.strip()  # Python's reader leaves out spaces at the ends
    assert set(part.keys()) == {"Content-Type", "Content-Transfer-Encoding", "Content-Disposition"}
    head = b"".join(made.pieces).partition(b"Content-Disposition")[2].partition(b"\r\n\r\n")[0]
    assert max(map(len, head.split(b"\r\n")[1:])) <= 78


@pytest.mark.parametrize(
    "spoilt",
    [
        {"filename": "a\r\nBcc: mallory@example.com"},
        {"content_type": "text/csv\r\nBcc: mallory@example.com"},
        {"content_id": "a>\r\nBcc: mallory@example.com"},
    ],
)
def test_what_could_become_a_header_is_refused_even_if_it_came_so_far(spoilt: dict[str, Any]) -> None:
    file = attached(b"x", **{"content_id": "logo", **spoilt})
    rich = Content("Hello", metadata={"html_body": f"cid:{spoilt.get('content_id', 'logo')}"})
    attempt = an_attempt(1, rich, attachments=(file[0],))
    refused = Letterhead(SENDER, None, NOW).letter(0, attempt, Enclosures([file[0]], [file[1]]))
    assert isinstance(refused, Rejected) and refused.code == "UNSAFE_HEADER"


def test_letters_share_the_encoded_file() -> None:
    told, raw = INVOICE
    head, enclosures = Letterhead(SENDER, None, NOW), Enclosures([told], [raw])
    letters = [head.letter(n, an_attempt(n, RICH, attachments=(told,)), enclosures) for n in (1, 2)]
    first, second = (max(one.pieces, key=len) for one in letters if isinstance(one, Letter))
    assert len(first) > len(raw)
    assert first is second


def sized(person: int, size: int) -> Attempt:
    return an_attempt(person, attachments=(Attachment("a", "b/c", size),))


def test_a_call_has_no_more_files_at_hand_than_a_portion() -> None:
    same = [sized(n, PORTION) for n in (1, 2, 3)]
    others = [sized(ELSEWHERE * n + 1, PORTION // 2) for n in (1, 2, 3)]
    assert [len(one) for one in portions([*same, an_attempt(4), *others])] == [4, 2, 1]
    assert [len(one) for one in portions([an_attempt(n) for n in range(1, 101)])] == [100]
    assert list(portions([])) == [[]]


def drawer(*files: tuple[Attachment, bytes]) -> Drawer:
    return Drawer({HERE: [raw for _, raw in files]})


def attempts(*people: int, files: Sequence[tuple[Attachment, bytes]]) -> list[Attempt]:
    return [an_attempt(n, RICH, attachments=tuple(told for told, _ in files)) for n in people]


async def test_a_relay_that_somebody_else_wrote_gets_every_byte_and_the_file_is_read_once() -> None:
    large = attached(bytes(range(256)) * 19_000, "large.bin")
    files = [large, LOGO]
    kept = drawer(*files)
    async with mailroom(Mailroom()) as (room, port), channel_to(port, drawer=kept) as channel:
        first = await channel.send([*attempts(*range(1, 4), files=files), an_attempt(9)])
        second = await channel.send(attempts(4, files=files))
    assert [type(one) for one in (*first, *second)] == [Sent] * 5
    assert kept.asked == [HERE]
    for taken in room.taken:
        contents = [p.get_payload(decode=True) for p in taken.message.walk() if p.get_filename()]
        if taken.recipients == ["person-9@example.com"]:
            assert contents == []
        else:
            assert sorted(contents, key=len) == [LOGO[1], large[1]]


async def test_the_shelf_keeps_what_fits() -> None:
    raw = bytes(ROOM // 3)
    kept = Drawer({BatchId(n.to_bytes(13, "big") + bytes(3)): [raw] for n in range(3)})
    many = [sized(ELSEWHERE * n + 1, len(raw)) for n in (0, 1, 2, 2, 0)]
    async with mailroom(Mailroom()) as (_, port), channel_to(port, drawer=kept) as channel:
        for attempt in many:
            assert [type(one) for one in await channel.send([attempt])] == [Sent]
    assert [int.from_bytes(batch[:13], "big") for batch in kept.asked] == [0, 1, 2, 0]


class Jammed(Drawer):
    async def contents(self, tenant: TenantId, batch_id: BatchId) -> list[bytes]:
        raise OSError("disk")


async def test_a_store_that_cannot_read_costs_no_try() -> None:
    async with mailroom(Mailroom()) as (room, port), channel_to(port, drawer=Jammed()) as channel:
        [outcome] = await channel.send(attempts(1, files=[INVOICE]))
    assert isinstance(outcome, Retry) and (outcome.code, outcome.scope) == ("ATTACHMENTS_UNREAD", Scope.ACCOUNT)
    assert room.taken == []


async def test_a_letter_never_goes_without_its_files() -> None:
    async with mailroom(Mailroom()) as (room, port), channel_to(port, drawer=Drawer()) as channel:
        gone, fine = await channel.send([*attempts(1, files=[INVOICE]), an_attempt(2)])
    assert isinstance(gone, Rejected) and gone.code == "ATTACHMENTS_FORGOTTEN"
    assert isinstance(fine, Sent) and len(room.taken) == 1


async def test_an_obstacle_to_the_account_ends_the_later_portions_too() -> None:
    async def refuses(caller: Caller) -> None:
        await caller.greet("PIPELINING")
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("421 4.3.2 closing", "503 no", "503 no")

    kept = Drawer({BatchId(n.to_bytes(13, "big") + bytes(3)): [b"x"] for n in range(2)})
    async with ScriptedRelay(refuses, refuses).open() as relay, channel_to(relay.port, drawer=kept) as channel:
        outcomes = await channel.send([sized(1, PORTION), sized(ELSEWHERE + 1, PORTION)])
    assert [isinstance(one, Retry) and one.scope is Scope.ACCOUNT for one in outcomes] == [True, True]
    assert len(kept.asked) == 1


BIG = attached(bytes(4_000_000), "big.bin")


async def test_a_connection_cut_in_the_middle_of_a_file_leaves_nothing_in_doubt() -> None:  # F17, W11
    """Without the dot at the end a relay keeps nothing: the letter goes over the next connection."""

    async def cuts(caller: Caller) -> None:
        await caller.greet("PIPELINING")
        await caller.take_one()
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok", "354 go")
        await caller.reader.readexactly(100_000)
        caller.writer.transport.abort()

    async def takes(caller: Caller) -> None:
        await caller.greet("PIPELINING")
        await caller.take_one()
        await caller.end()

    one = {"connections": "1"}
    async with ScriptedRelay(cuts, takes).open() as relay, channel_to(relay.port, drawer=drawer(BIG), **one) as channel:
        outcomes = await channel.send([an_attempt(1), *attempts(2, files=[BIG])])
        await channel.close()
    assert [type(one) for one in outcomes] == [Sent, Sent]


async def test_the_end_of_a_file_without_an_answer_is_in_doubt() -> None:
    async def drops(caller: Caller) -> None:
        await caller.greet("PIPELINING")
        await caller.hear("MAIL", "RCPT", "DATA")
        caller.say("250 ok", "250 ok", "354 go")
        await caller.hear_content()

    small = attached(b"x")
    async with ScriptedRelay(drops).open() as relay, channel_to(relay.port, drawer=drawer(small)) as channel:
        [outcome] = await channel.send(attempts(1, files=[small]))
    assert isinstance(outcome, Unknown)


class NarrowPipe(asyncio.Transport):
    """Takes one write at a time, and says so."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire
        self.written: list[int] = []

    def write(self, data: Any) -> None:
        self.written.append(len(data))
        self._wire.pause_writing()


async def test_a_relay_that_reads_slowly_is_not_overrun() -> None:
    wire = Wire()
    pipe = NarrowPipe(wire)
    wire.connection_made(pipe)
    pushing = asyncio.create_task(wire.push(bytes(1_000_000)))
    for number in range(1, 4):
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(pipe.written) == number and max(pipe.written) < 100_000
        wire.resume_writing()
    wire.connection_lost(None)
    await asyncio.wait_for(pushing, 1)
    assert sum(pipe.written) < 1_000_000
