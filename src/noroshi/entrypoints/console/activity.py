"""Activity: what was asked for last and what has become of it, and whatever keeps it from going out."""

import asyncio
from typing import Any

from noroshi.client import NoroshiError
from noroshi.client.answers import Workload
from noroshi.entrypoints.console.calls import Call
from noroshi.entrypoints.console.fates import fate_of
from noroshi.entrypoints.console.replies import Reply

PER_PAGE = 25


async def show(call: Call) -> Reply:
    cursor = call.query.get("cursor")
    listed, standing = await asyncio.gather(newest(call, cursor), look_around(call))
    return call.page("activity.html", **listed, **standing, cursor=cursor)


async def newest(call: Call, cursor: str | None = None) -> dict[str, Any]:
    page = await call.api.batches(limit=PER_PAGE, cursor=cursor)
    rows = [{"batch": batch, "fate": fate_of(batch, batch.sums)} for batch in page.items]
    return {"rows": rows, "next_cursor": page.next_cursor}


async def look_around(call: Call) -> dict[str, Any]:
    """What the tiles and notices above the list are made of."""
    workload, pauses, alerts, ready = await asyncio.gather(
        workload_of(call), call.api.pauses(), call.api.alerts(limit=3), readiness(call)
    )
    return {"workload": workload, "pauses": pauses.items, "alerts": alerts.items, **ready}


async def workload_of(call: Call) -> Workload | None:
    """None for a tenant who is not the operator of the server."""
    try:
        return await call.api.workload()
    except NoroshiError as error:
        if error.code != "forbidden":
            raise
        return None


async def readiness(call: Call) -> dict[str, list[str]]:
    try:
        answer = await call.api.readiness()
    except NoroshiError as error:
        if error.code != "not_ready":
            raise
        return {"notes": [], "problems": error.members["problems"]}
    return {"notes": answer.notes, "problems": []}
