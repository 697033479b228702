"""The catcher: what was caught in, each message as its recipient would see it out."""

from base64 import b64encode
from typing import Any
from urllib.parse import quote, urlencode

from noroshi.client import NoroshiError
from noroshi.client.answers import Caught
from noroshi.client.calls import each
from noroshi.domain.channels import CHANNELS
from noroshi.entrypoints.console.calls import Call
from noroshi.entrypoints.console.drawing import Drawing, draw, letter_of
from noroshi.entrypoints.console.refusals import nowhere
from noroshi.entrypoints.console.replies import Reply, letter

PER_PAGE = 40
ROWS_OF_A_LIST = 200
"""As many as live.js keeps: what is older than these would leave the list as it came."""
_MOST_AT_ONCE = 100


async def show(call: Call) -> Reply:
    return await _show(call, None)


async def show_one(call: Call) -> Reply:
    return await _show(call, await _find(call))


async def show_letter(call: Call) -> Reply:
    """The HTML of an e-mail by itself, with the pictures it has with it; those from elsewhere only if they are asked
    for."""
    message = await _find(call)
    html = letter_of(message.metadata)
    for position, one in enumerate(message.attachments):
        named = f"cid:{one.content_id}".encode()
        if one.content_id is not None and named in html and one.content_type.startswith("image/"):
            content = await call.api.caught_attachment(message.caught_id, position)
            html = html.replace(named, f"data:{one.content_type};base64,{b64encode(content).decode()}".encode())
    return letter(html, has_images=call.query.get("images") == "1")


async def download(call: Call) -> Reply:
    """A file that was attached: to be kept under its name, never to be shown here."""
    message, position = await _find(call), call.number("position")
    if position >= len(message.attachments):
        raise nowhere()
    content = await call.api.caught_attachment(message.caught_id, position)
    name = quote(message.attachments[position].filename, safe="")
    return Reply(
        content,
        media="application/octet-stream",
        headers=(("content-disposition", f"attachment; filename*=UTF-8''{name}"),),
    )


async def caught_after(call: Call, last: int) -> list[Caught]:
    """Newest first, and none between them left out; at most as many as the list holds."""
    found: list[Caught] = []
    newer = each(lambda cursor: call.api.caught(**_wanted(call), after=last, limit=_MOST_AT_ONCE, cursor=cursor))
    async for message in newer:
        found.append(message)
        if len(found) == ROWS_OF_A_LIST:
            break
    return found


def filters_of(call: Call) -> str:
    """What keeps the list as narrow as it is, for the links in it."""
    return urlencode(_wanted(call))


async def _show(call: Call, chosen: Caught | None) -> Reply:
    page = await call.api.caught(**_wanted(call), limit=PER_PAGE, cursor=call.query.get("cursor"))
    drawn = None
    if chosen is not None:
        zone = await zone_of(call, chosen.user_id)
        drawn = draw(chosen, chosen.caught_at, zone)
    return call.page(
        "catcher.html",
        messages=page.items,
        chosen=chosen,
        drawn=drawn,
        view=_view(call, drawn),
        newest=page.items[0].caught_id if page.items else 0,
        next_cursor=page.next_cursor,
        is_first=call.query.get("cursor") is None,
        channels=list(CHANNELS),
        channel_name=call.query.get("channel", ""),
        user_id=call.query.get("user_id", ""),
        filters=filters_of(call),
        has_images=call.query.get("images") == "1",
    )


async def zone_of(call: Call, user_id: str) -> str | None:
    """A person's own zone; None also for who was erased since."""
    try:
        return (await call.api.user(user_id)).timezone
    except NoroshiError as error:
        if error.status != 404:
            raise
        return None


def _view(call: Call, drawn: Drawing | None) -> str:
    """How an e-mail is looked at."""
    wanted = call.query.get("view", "html")
    if wanted == "html":
        return "html" if drawn is not None and drawn.has_html else "text"
    return wanted if wanted in {"text", "source"} else "text"


async def _find(call: Call) -> Caught:
    return await call.api.caught_one(call.number("caught_id"))


def _wanted(call: Call) -> dict[str, Any]:
    return {name: call.query[name] for name in ("channel", "user_id") if call.query.get(name)}
