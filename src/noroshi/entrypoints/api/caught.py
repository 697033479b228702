"""The catcher over the API: what it kept out; how it shall misbehave in, in development only."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from noroshi.domain.ids import batch_of, show
from noroshi.domain.instants import iso
from noroshi.domain.misbehaviour import Misbehaviour
from noroshi.domain.records import CaughtMessage
from noroshi.domain.requests import NameText, UserIdText
from noroshi.entrypoints.api.calls import LARGEST_NUMBER, Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import AttachmentItem, IdText, Moment, known_channel, show_attachments

CaughtNumber = Annotated[int, Meta(ge=0, le=2**63 - 1, description="Only what has a greater `caught_id`.")]


class CaughtQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    channel: NameText | None = None
    user_id: UserIdText | None = None
    after: CaughtNumber = 0


class CaughtItem(Struct, frozen=True):
    """A message as the recipient would have got it; the address is masked."""

    caught_id: int
    channel: str
    user_id: str
    notification_id: IdText
    address: str
    subject: str | None
    title: str | None
    body: str
    metadata: dict[str, Any]
    attachments: list[AttachmentItem]
    caught_at: Moment


async def list_caught(desk: Desk, call: Call[CaughtQuery, None]) -> Page[CaughtItem]:
    query = call.query
    before = place_in(query.cursor, RowNumber)
    messages = await desk.caught.list_caught(
        call.tenant, query.channel, query.user_id, before, query.limit + 1, after=query.after
    )
    return page_of(messages, query, lambda message: message.caught_id, _show)


async def show_caught(desk: Desk, call: Call[NoQuery, None]) -> CaughtItem:
    return _show(await _find(desk, call))


async def show_caught_attachment(desk: Desk, call: Call[NoQuery, None]) -> bytes:
    message, position = await _find(desk, call), call.number("position", "attachment")
    if position >= len(message.attachments):
        raise missing("attachment")
    contents = await desk.attachments.contents(call.tenant, batch_of(message.notification_id))
    if position >= len(contents):  # the catcher has kept what it told for longer than the batch was
        raise missing("attachment")
    return contents[position]


async def _find(desk: Desk, call: Call[NoQuery, None]) -> CaughtMessage:
    number = call.number("caught_id", "message")
    messages = await desk.caught.list_caught(call.tenant, None, None, min(number + 1, LARGEST_NUMBER), 1)
    if not messages or messages[0].caught_id != number:
        raise missing("message")
    return messages[0]


async def put_misbehaviour(desk: Desk, call: Call[NoQuery, Misbehaviour]) -> Misbehaviour:
    if call.body.channel is not None:
        known_channel(call.body.channel, "channel")
    if not desk.misbehave(call.body):
        raise missing("catcher")
    return call.body


async def remove_misbehaviour(desk: Desk, _call: Call[NoQuery, None]) -> None:
    if not desk.misbehave(None):
        raise missing("catcher")


def _show(message: CaughtMessage) -> CaughtItem:
    return CaughtItem(
        caught_id=message.caught_id,
        channel=message.channel,
        user_id=message.user_id,
        notification_id=show(message.notification_id),
        address=message.address,
        subject=message.subject,
        title=message.title,
        body=message.body,
        metadata=message.metadata,
        attachments=show_attachments(message.attachments),
        caught_at=iso(message.caught_at),
    )
