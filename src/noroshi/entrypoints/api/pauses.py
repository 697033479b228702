"""Pauses over the API: what an operator stops in; what is stopped out (N4.7)."""

from msgspec import Struct

from noroshi.domain.instants import iso
from noroshi.domain.problems import ProblemError
from noroshi.domain.records import Pause, PauseKind
from noroshi.domain.requests import NameText
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import Moment, known_channel


class PauseBody(Struct, frozen=True, forbid_unknown_fields=True):
    """`name` says which account, channel or category; `everything` has none."""

    kind: PauseKind
    name: NameText | None = None


class PauseItem(Struct, frozen=True):
    pause_id: int
    kind: PauseKind
    name: str | None
    created_at: Moment
    created_by: str


async def add_pause(desk: Desk, call: Call[NoQuery, PauseBody]) -> PauseItem:
    kind, name = call.body.kind, call.body.name
    if kind is PauseKind.EVERYTHING and name is not None:
        raise ProblemError("bad_field", "A pause of everything has no name.", field="name")
    if kind is not PauseKind.EVERYTHING and name is None:
        raise ProblemError("bad_field", f"Say which {kind} to pause.", field="name")
    if kind is PauseKind.CHANNEL and name is not None:
        known_channel(name, "name")
    pause = await desk.pauses.add(call.tenant, kind, name, call.caller.name)
    await desk.heed_pauses()
    return _show(pause)


async def list_pauses(desk: Desk, call: Call[PageQuery, None]) -> Page[PauseItem]:
    after = place_in(call.query.cursor, RowNumber)
    pauses = await desk.pauses.list_pauses(call.tenant, after or 0, call.query.limit + 1)
    return page_of(pauses, call.query, lambda pause: pause.pause_id, _show)


async def remove_pause(desk: Desk, call: Call[NoQuery, None]) -> None:
    if not await desk.pauses.remove(call.tenant, call.number("pause_id", "pause")):
        raise missing("pause")
    desk.pauses_changed()


def _show(pause: Pause) -> PauseItem:
    return PauseItem(pause.pause_id, pause.kind, pause.name, iso(pause.created_at), pause.created_by)
