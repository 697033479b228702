"""Batches and notifications: an id in; what became of it, with the trail of decisions that explains it, out."""

import asyncio
from urllib.parse import urlencode

from noroshi.client.answers import Notification
from noroshi.domain.ids import NotificationId, batch_of, read, show
from noroshi.entrypoints.console.calls import Call, back_to
from noroshi.entrypoints.console.catcher import zone_of
from noroshi.entrypoints.console.fates import fate_of
from noroshi.entrypoints.console.replies import Reply, redirect

PER_PAGE = 50
_LOOKED_THROUGH = 100
_WITHOUT_NOTIFICATION = frozenset({"unknown_user", "repeated"})


async def show_batch(call: Call) -> Reply:
    batch_id = call.path["batch_id"]
    batch, sums, rejections = await asyncio.gather(
        call.api.batch(batch_id, limit=PER_PAGE, cursor=call.query.get("cursor")),
        call.api.batch_status(batch_id),
        call.api.rejections(batch_id, limit=PER_PAGE),
    )
    return call.page(
        "batch.html",
        batch=batch,
        sums=sums,
        fate=fate_of(batch, sums),
        zone=None,
        rejections=[one for one in rejections.items if one.code in _WITHOUT_NOTIFICATION],
    )


async def cancel_batch(call: Call) -> Reply:
    answer = await call.api.cancel(call.path["batch_id"])
    return back_to(f"/console/batches/{answer.batch_id}", "cancelled", answer.cancelled)


async def show_notification(call: Call) -> Reply:
    batch_id, notification_id = call.path["batch_id"], call.path["notification_id"]
    one, batch = await asyncio.gather(
        call.api.notification(batch_id, notification_id), call.api.batch(batch_id, limit=1)
    )
    zone, caught = await asyncio.gather(zone_of(call, one.user_id), _caught(call, one))
    return call.page("notification.html", one=one, batch=batch, zone=zone, caught=caught)


async def find(call: Call) -> Reply:
    """Whatever was typed or pasted into the search box: an id of a batch or notification, else a person."""
    wanted = call.query.get("q", "").strip()
    raw = read(wanted)
    if raw is None:
        return redirect(f"/console/people?{urlencode({'prefix': wanted})}")
    batch_id = show(batch_of(NotificationId(raw)))
    return redirect(f"/console/batches/{batch_id}" + ("" if wanted == batch_id else f"/{show(raw)}"))


async def _caught(call: Call, one: Notification) -> int | None:
    """The message itself, if the catcher has it among the last of this person on this channel."""
    if one.sent_at is None:
        return None
    page = await call.api.caught(user_id=one.user_id, channel=one.channel, limit=_LOOKED_THROUGH)
    return next((m.caught_id for m in page.items if m.notification_id == one.notification_id), None)
