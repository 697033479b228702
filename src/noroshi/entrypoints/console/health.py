"""Health: whether the server can do its work, what is stopped, and what people should know of."""

import asyncio

from noroshi.domain.channels import CHANNELS
from noroshi.entrypoints.console.activity import readiness, workload_of
from noroshi.entrypoints.console.calls import Call, back_to
from noroshi.entrypoints.console.replies import Reply

_HEALTH = "/console/health"


async def show(call: Call) -> Reply:
    ready, workload, pauses, alerts = await asyncio.gather(
        readiness(call), workload_of(call), call.api.pauses(), call.api.alerts(limit=20)
    )
    return call.page(
        "health.html",
        **ready,
        workload=workload,
        pauses=pauses.items,
        alerts=alerts.items,
        channels=list(CHANNELS),
    )


async def pause(call: Call) -> Reply:
    """`what` is `everything` or `channel:email`, as the list of choices has it."""
    kind, _, name = call.form.get("what", "").partition(":")
    await call.api.pause(kind, name or None)
    return back_to(_HEALTH, "paused")


async def resume(call: Call) -> Reply:
    await call.api.resume(call.number("pause_id"))
    return back_to("/console" if call.form.get("from") == "activity" else _HEALTH, "resumed")
