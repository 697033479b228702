"""Alerts over the API: what went wrong often enough that a person should know."""

from typing import Any

from msgspec import Struct

from noroshi.domain.instants import Instant, iso
from noroshi.domain.records import RaisedAlert
from noroshi.entrypoints.api.calls import Call
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import Moment


class AlertItem(Struct, frozen=True):
    """Raised `count` times from `since` to `last_at`."""

    kind: str
    severity: str
    subject: str
    since: Moment
    last_at: Moment
    count: int


async def list_alerts(desk: Desk, call: Call[PageQuery, None]) -> Page[AlertItem]:
    place: Any = place_in(call.query.cursor, tuple[RowNumber, str, str])
    before = None if place is None else (Instant(place[0]), place[1], place[2])
    alerts = await desk.alerts.list_alerts(call.tenant, before, call.query.limit + 1)
    return page_of(alerts, call.query, lambda alert: (alert.last_at, alert.kind, alert.subject), _show)


def _show(alert: RaisedAlert) -> AlertItem:
    return AlertItem(alert.kind, alert.severity, alert.subject, iso(alert.since), iso(alert.last_at), alert.count)
