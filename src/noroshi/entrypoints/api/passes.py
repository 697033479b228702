"""Passes over the API: a person in, a token for that person's own routes or a ticket for one stream out (N17.1)."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct

from noroshi.domain.instants import iso
from noroshi.domain.passes import TOKEN_LIVES
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.wire import Moment

_LONGEST = int(TOKEN_LIVES.total_seconds())

Seconds = Annotated[int, Meta(ge=1, le=_LONGEST, description="How long it is to be valid.")]


class TokenBody(Struct, frozen=True, forbid_unknown_fields=True):
    expires_in: Seconds = _LONGEST


class TokenAnswer(Struct, frozen=True):
    """Opens the inbox and the preferences of this person and nothing else, until it expires or the key that asked for
    it is revoked."""

    user_id: str
    token: str
    expires_at: Moment


class TicketAnswer(Struct, frozen=True):
    """Opens one stream or socket of this person, once: `?ticket=...`, for browsers cannot send a header there."""

    ticket: str
    expires_at: Moment


async def add_token(desk: Desk, call: Call[NoQuery, TokenBody]) -> TokenAnswer:
    if await desk.inbox.head(call.owner) is None:
        raise missing("user")
    lives = timedelta(seconds=call.body.expires_in)
    token, expires_at = desk.passes.issue_token(call.caller, call.user_id, lives)
    return TokenAnswer(call.user_id, token, iso(expires_at))


async def add_ticket(desk: Desk, call: Call[NoQuery, None]) -> TicketAnswer:
    if await desk.inbox.head(call.owner) is None:
        raise missing("user")
    ticket, expires_at = desk.passes.issue_ticket(call.caller, call.user_id)
    return TicketAnswer(ticket, iso(expires_at))
