"""Templates: versions in; each as its recipient would see it, with data of one's own, out; new ones, old ones back."""

import asyncio
from typing import Any
from urllib.parse import quote, urlencode

from noroshi.client import NoroshiError
from noroshi.client.answers import Preview, TemplateVersion, UserEntry
from noroshi.domain.instants import moment_of
from noroshi.entrypoints.console.calls import Call, back_to
from noroshi.entrypoints.console.catcher import zone_of
from noroshi.entrypoints.console.drafts import RICH, other_metadata, read_draft, read_object, sample_data
from noroshi.entrypoints.console.drawing import draw, letter_of
from noroshi.entrypoints.console.replies import Reply, letter

PER_PAGE = 100
_SOME = 20
_PLACE = ("channel", "locale", "variant")


async def show(call: Call) -> Reply:
    page = await call.api.templates(limit=PER_PAGE, cursor=call.query.get("cursor"))
    return call.page("templates.html", templates=page.items, next_cursor=page.next_cursor)


async def show_one(call: Call) -> Reply:
    template_id = call.path["template_id"]
    versions, people = await asyncio.gather(call.api.template(template_id, limit=PER_PAGE), call.api.users(limit=_SOME))
    chosen = _chosen(call, versions.items)
    return call.page(
        "template.html",
        template_id=template_id,
        home=_page_of(template_id),
        places=_places(versions.items),
        history=[one for one in versions.items if _place(one) == _place(chosen)],
        chosen=chosen,
        query=urlencode(_place(chosen)),
        rich={name: chosen.metadata.get(name) or "" for name in RICH},
        other=other_metadata(chosen),
        user_id=call.query.get("user_id", _somebody(people.items, chosen.locale)),
        sample=sample_data(chosen),
    )


async def preview(call: Call) -> Reply:
    """A fragment: the message, or what is wrong with template or data."""
    try:
        rendered = await _rendered(call)
    except NoroshiError as error:
        if error.status not in {404, 422}:
            raise
        return call.page("_preview_problem.html", error=error)
    user_id = call.form.get("user_id", "").strip()
    zone = await zone_of(call, user_id) if user_id else None
    drawn = draw(rendered, moment_of(call.clock.now()), zone)
    return call.page("_preview.html", drawn=drawn, fields=call.form, home=_page_of(call.path["template_id"]))


async def preview_letter(call: Call) -> Reply:
    """The HTML of an e-mail that is being written, by itself."""
    return letter(letter_of((await _rendered(call)).metadata), has_images=False)


async def save(call: Call) -> Reply:
    answer = await call.api.add_template(call.path["template_id"], **read_draft(call.form))
    place = {name: getattr(answer, name) for name in _PLACE}
    return back_to(f"{_page_of(call.path['template_id'])}?{urlencode(place)}", "saved", answer.version)


async def roll_back(call: Call) -> Reply:
    place = {name: call.form.get(name, "") for name in _PLACE}
    version = call.form.get("version", "")
    number = int(version) if version.isdecimal() and len(version) < 10 else 0
    answer = await call.api.roll_back_template(call.path["template_id"], version=number, **place)
    return back_to(f"{_page_of(call.path['template_id'])}?{urlencode(place)}", "rolled_back", answer.version)


async def send(call: Call) -> Reply:
    """To one person, on one channel: for real, or to the catcher where that stands in."""
    data = read_object(call.form.get("data", ""), "data")
    channel, user_id = call.form.get("channel", ""), call.form.get("user_id", "").strip()
    answer = await call.api.send([user_id], call.path["template_id"], data, channels=[channel])
    return back_to(f"/console/batches/{answer.batch_id}", "sent", answer.accepted)


async def _rendered(call: Call) -> Preview:
    fields: dict[str, Any] = read_draft(call.form)
    return await call.api.preview(
        call.path["template_id"],
        **fields,
        data=read_object(call.form.get("data", ""), "data"),
        user_id=call.form.get("user_id", "").strip() or None,
    )


def _somebody(people: list[UserEntry], locale: str) -> str:
    """To try a text on: one who reads its language, if there is one among the first."""
    readers = [one.user_id for one in people if one.locale == locale]
    return (readers or [one.user_id for one in people] or [""])[0]


def _chosen(call: Call, versions: list[TemplateVersion]) -> TemplateVersion:
    """The version that the address names, else the one in use, else the newest."""
    wanted = {name: call.query[name] for name in _PLACE if name in call.query}
    fitting = [one for one in versions if wanted.items() <= _place(one).items()] or versions
    numbered = [one for one in fitting if str(one.version) == call.query.get("version")]
    active = [one for one in fitting if one.is_active]
    return (numbered or active or fitting)[0]


def _place(version: TemplateVersion) -> dict[str, str]:
    return {name: getattr(version, name) for name in _PLACE}


def _places(versions: list[TemplateVersion]) -> list[dict[str, str]]:
    """Each channel, locale and variant once, in their order."""
    places = {tuple(_place(one).values()): _place(one) for one in versions}
    return [{**place, "query": urlencode(place)} for _, place in sorted(places.items())]


def _page_of(template_id: str) -> str:
    return f"/console/templates/{quote(template_id, safe='')}"
