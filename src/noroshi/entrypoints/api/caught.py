"""The catcher over the API: what it kept out; how it shall misbehave in, in development only."""

from typing import Any

from msgspec import Struct

from noroshi.domain.ids import show
from noroshi.domain.instants import iso
from noroshi.domain.misbehaviour import Misbehaviour
from noroshi.domain.records import CaughtMessage
from noroshi.domain.requests import NameText, UserIdText
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import IdText, Moment, known_channel


class CaughtQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    channel: NameText | None = None
    user_id: UserIdText | None = None


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
    caught_at: Moment


async def list_caught(desk: Desk, call: Call[CaughtQuery, None]) -> Page[CaughtItem]:
    query = call.query
    before = place_in(query.cursor, RowNumber)
    messages = await desk.caught.list_caught(call.tenant, query.channel, query.user_id, before, query.limit + 1)
    return page_of(messages, query, lambda message: message.caught_id, _show)


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
        caught_at=iso(message.caught_at),
    )
