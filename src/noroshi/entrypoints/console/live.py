"""Live: what is new since the last look in, rows already drawn as HTML out, twice a second.

It asks the API as the pages do, so it sees what any process has done, and ends when the key does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec

from noroshi.client import NoroshiError
from noroshi.entrypoints.console import activity, catcher
from noroshi.entrypoints.console.calls import Call
from noroshi.entrypoints.console.replies import Stream

EVERY = timedelta(seconds=0.5)
_STANDING_EVERY = 10
_SIGN_OF_LIFE_EVERY = 30
_IN_TROUBLE = 5
_RETRY = b"retry: 1000\n\n"
_SIGN_OF_LIFE = b": here\n\n"

Look = Callable[[int], Awaitable[bytes]]
"""The number of the look in, events out."""


def event(name: str, html: str, number: str = "") -> bytes:
    head = f"id: {number}\n" if number else ""
    # As JSON: a line break would end the event.
    return f"{head}event: {name}\ndata: {msgspec.json.encode(html).decode()}\n\n".encode()


async def watch_activity(call: Call) -> Stream:
    """Rows that are new or have changed since this stream sent them, oldest first."""
    sent: list[dict[str, Any]] = []
    standing: dict[str, Any] = {}

    async def look(number: int) -> bytes:
        nonlocal sent, standing
        rows = (await activity.newest(call))["rows"]
        events = [event("row", call.text("_batch.html", row=row)) for row in reversed(rows) if row not in sent]
        sent = rows
        if number % _STANDING_EVERY == 0:
            found = await activity.look_around(call)
            if found != standing:
                events.append(event("standing", call.text("_standing.html", **found)))
            standing = found
        return b"".join(events)

    return Stream(_events(call, look))


async def watch_caught(call: Call) -> Stream:
    """Messages caught after the page was made, or after the last that the browser saw."""
    seen = call.asked.headers.get("last-event-id") or call.query.get("after", "0")
    last = int(seen) if seen.isdecimal() and len(seen) < 19 else 0

    async def look(_number: int) -> bytes:
        nonlocal last
        events = b""
        for message in reversed(await catcher.caught_after(call, last)):
            last = message.caught_id
            html = call.text("_caught.html", message=message, chosen=None, filters=catcher.filters_of(call))
            events += event("row", html, str(last))
        return events

    return Stream(_events(call, look))


async def _events(call: Call, look: Look) -> AsyncIterator[bytes]:
    yield _RETRY
    number = 0
    while not call.is_closing():
        wait = EVERY
        try:
            yield await look(number)
        except NoroshiError as error:
            if error.status in {401, 403}:
                yield event("ended", "")
                return
            wait = timedelta(seconds=error.retry_after or _IN_TROUBLE)
        number += 1
        if number % _SIGN_OF_LIFE_EVERY == 0:
            yield _SIGN_OF_LIFE
        await call.clock.sleep(wait)
