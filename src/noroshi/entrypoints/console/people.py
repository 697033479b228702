"""People: an id or its beginning in; who they are, what they wish and what they got out, no address shown whole."""

import asyncio

from noroshi.entrypoints.console.calls import Call
from noroshi.entrypoints.console.replies import Reply
from noroshi.entrypoints.console.words import masked

PER_PAGE = 50
_HISTORY = 25


async def show(call: Call) -> Reply:
    prefix = call.query.get("prefix", "").strip()
    page = await call.api.users(prefix=prefix or None, limit=PER_PAGE, cursor=call.query.get("cursor"))
    return call.page("people.html", people=page.items, next_cursor=page.next_cursor, prefix=prefix)


async def show_one(call: Call) -> Reply:
    user_id = call.path["user_id"]
    person, devices, wishes, limits, history = await asyncio.gather(
        call.api.user(user_id),
        call.api.devices(user_id),
        call.api.preferences(user_id),
        call.api.rate_limits(user_id),
        call.api.history(user_id, limit=_HISTORY, cursor=call.query.get("cursor")),
    )
    return call.page(
        "person.html",
        person=person,
        email=masked(person.email),
        phone=masked(person.phone),
        devices=devices.items,
        wishes=wishes,
        # Only where something was counted: the rest would say the same in every row.
        limits={name: each for name, each in limits.channels.items() if each.day.remaining < each.day.limit},
        history=history.items,
        next_cursor=history.next_cursor,
        zone=person.timezone,
    )
