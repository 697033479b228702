"""Enqueued requests over the API: listed, inspected, and taken in again when they are dead."""

from typing import Annotated

from msgspec import Meta, Struct

from noroshi.domain.enqueued import EnqueuedView, RequestState
from noroshi.domain.ids import RequestId, show
from noroshi.domain.instants import iso
from noroshi.domain.problems import ProblemError
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import IdBytes, Page, PageQuery, page_of, place_in
from noroshi.entrypoints.api.wire import IdText, Moment

_STATES = {state.name.lower(): state for state in RequestState}
StateName = Annotated[str, Meta(extra_json_schema={"enum": list(_STATES)})]


class RequestQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    state: StateName | None = None


class RequestItem(Struct, frozen=True):
    """`batch_id` says what a taken request became; `code` and `error` why a dead one did not. A key is shown for as
    long as it is held: a day."""

    request_id: IdText
    state: StateName
    idempotency_key: str | None
    batch_id: IdText | None
    code: str | None
    error: str | None
    created_at: Moment
    created_by: str


async def list_requests(desk: Desk, call: Call[RequestQuery, None]) -> Page[RequestItem]:
    query = call.query
    if query.state is not None and query.state not in _STATES:
        raise ProblemError("bad_field", f"Expected one of: {', '.join(_STATES)}.", field="state")
    state = None if query.state is None else _STATES[query.state]
    before = place_in(query.cursor, IdBytes)
    views = await desk.requests.list_requests(
        call.tenant, state, None if before is None else RequestId(before), query.limit + 1
    )
    return page_of(views, query, lambda view: view.request_id, _show)


async def show_request(desk: Desk, call: Call[NoQuery, None]) -> RequestItem:
    return _show(await _find(desk, call))


async def retry_request(desk: Desk, call: Call[NoQuery, None]) -> RequestItem:
    if not await desk.requests.retry(call.tenant, call.request_id):
        await _find(desk, call)
        raise ProblemError("conflict", "The request is not dead: there is nothing to try again.")
    desk.announce_enqueued()
    return _show(await _find(desk, call))


async def _find(desk: Desk, call: Call[NoQuery, None]) -> EnqueuedView:
    view = await desk.requests.find(call.tenant, call.request_id)
    if view is None:
        raise missing("request")
    return view


def _show(view: EnqueuedView) -> RequestItem:
    return RequestItem(
        request_id=show(view.request_id),
        state=view.state.name.lower(),
        idempotency_key=view.idempotency_key,
        batch_id=None if view.batch_id is None else show(view.batch_id),
        code=view.code,
        error=view.error,
        created_at=iso(view.created_at),
        created_by=view.created_by,
    )
