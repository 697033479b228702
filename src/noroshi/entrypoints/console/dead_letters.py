"""Dead letters: what ended without success, and the two ways on from there: replay and discard."""

from urllib.parse import urlencode

from noroshi.domain.channels import CHANNELS
from noroshi.entrypoints.console.calls import Call, back_to
from noroshi.entrypoints.console.replies import Reply

PER_PAGE = 50
_LETTERS = "/console/dead-letters"
_FILTERS = ("channel", "code", "category", "user_id", "batch_id")


async def show(call: Call) -> Reply:
    wanted = _wanted(call.query)
    page = await call.api.dead_letters(limit=PER_PAGE, cursor=call.query.get("cursor"), **wanted)
    return call.page(
        "dead_letters.html",
        letters=page.items,
        next_cursor=page.next_cursor,
        wanted={name: wanted.get(name, "") for name in _FILTERS},
        is_narrowed=bool(wanted),
        filters=urlencode(wanted),
        channels=list(CHANNELS),
    )


async def show_one(call: Call) -> Reply:
    return call.page("dead_letter.html", letter=await call.api.dead_letter(call.number("dead_letter_id")))


async def replay_one(call: Call) -> Reply:
    await call.api.replay(call.number("dead_letter_id"))
    return back_to(_LETTERS, "replayed", 1)


async def discard_one(call: Call) -> Reply:
    await call.api.discard(call.number("dead_letter_id"))
    return back_to(_LETTERS, "discarded", 1)


async def replay_all(call: Call) -> Reply:
    wanted = _wanted(call.form)
    answer = await call.api.replay_all(**wanted, all=not wanted)
    return back_to(_list(wanted), "untouched" if answer.untouched else "replayed", answer.replayed)


async def discard_all(call: Call) -> Reply:
    wanted = _wanted(call.form)
    answer = await call.api.discard_all(**wanted, all=not wanted)
    return back_to(_list(wanted), "discarded", answer.discarded)


def _wanted(given: dict[str, str]) -> dict[str, str]:
    return {name: given[name].strip() for name in _FILTERS if given.get(name, "").strip()}


def _list(wanted: dict[str, str]) -> str:
    return f"{_LETTERS}?{urlencode(wanted)}" if wanted else _LETTERS
