"""Fates: one notification for each way that a notification can go, sent through the API like any other."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from noroshi.client import Noroshi
from noroshi.client.answers import Notification
from noroshi.domain.instants import moment_of
from noroshi.ports.clock import Clock

_PATIENCE = timedelta(seconds=10)
_LOOKED_THROUGH = 100

_ORDER: dict[str, Any] = {
    "order_id": "A-1017",
    "carrier": "Kuroneko",
    "arrives": "3/4",
    "items": [
        {"name": "Hand-dipped candle", "count": 2, "price": "¥1,200"},
        {"name": "Cedar incense", "count": 1, "price": "¥800"},
    ],
    "total": "¥3,200",
}
_SALE = {"percent": 20, "until": "3/20"}


class Fate(Struct, frozen=True):
    """`is_it` knows the notification that shows the fate; until there is one, `requests` are sent one after the other,
    after `wishes` were put down and while the catcher has `fault` (a fault and its channel)."""

    title: str
    user_id: str
    is_it: Callable[[Notification], bool]
    requests: tuple[dict[str, Any], ...]
    fault: tuple[str, str] | None = None
    wishes: Callable[[datetime], dict[str, Any]] | None = None


class Told(Struct, frozen=True):
    """A fate that came about, and the batch that shows it."""

    title: str
    batch_id: str


def _quiet_now(now: datetime) -> dict[str, Any]:
    """Quiet hours around this moment, wherever it is."""
    zone = "America/Mexico_City"
    there = now.astimezone(ZoneInfo(zone))
    start, end = there - timedelta(hours=1), there + timedelta(hours=9)
    return {"quiet_hours": {"enabled": True, "start": f"{start:%H:%M}", "end": f"{end:%H:%M}", "timezone": zone}}


def _has(kind: str) -> Callable[[Notification], bool]:
    return lambda notification: any(entry.kind == kind for entry in notification.trail)


def _was(reason: str) -> Callable[[Notification], bool]:
    return lambda notification: notification.reason == reason


def _went_well(notification: Notification) -> bool:
    return notification.template_id == "order-shipped" and notification.status == "SENT"


FATES: tuple[Fate, ...] = (
    Fate(
        "sent: Hanako's order, in Japanese, on three channels",
        "hanako",
        _went_well,
        (
            {
                "template_id": "order-shipped",
                "data": _ORDER,
                "category": "transaction",
                "channels": ["email", "push", "sms"],
            },
        ),
    ),
    Fate(
        "deferred: María has quiet hours at this moment",
        "maria",
        _has("deferred"),
        ({"template_id": "spring-sale", "data": _SALE, "channels": ["push"]},),
        wishes=_quiet_now,
    ),
    Fate(
        "suppressed: Pierre wants no marketing",
        "pierre",
        _was("category_off"),
        ({"template_id": "spring-sale", "data": _SALE, "category": "marketing", "channels": ["email"]},),
    ),
    Fate(
        "rate-limited: Yuki allows one push an hour, and this was the second",
        "yuki",
        _was("rate_limited"),
        tuple(
            {
                "template_id": "new-comment",
                "data": {"who": who, "what": "snow.jpg", "text": text},
                "category": "social",
                "channels": ["push"],
            }
            for who, text in (("健二", "きれい！"), ("花子", "行きたい"))
        ),
    ),
    Fate(
        "dead-lettered: Kenji's old phone is gone",
        "kenji",
        _has("dead_lettered"),
        ({"template_id": "order-shipped", "data": _ORDER, "category": "transaction", "channels": ["push"]},),
        fault=("gone", "push"),
    ),
    Fate(
        "retried, then sent: the call to Alice failed once",
        "alice",
        lambda notification: notification.retry_count > 0,
        (
            {
                "template_id": "security-code",
                "data": {"code": "481516", "minutes": 10},
                "category": "one_time_code",
                "channels": ["voice"],
                "priority": "high",
            },
        ),
        fault=("error", "voice"),
    ),
)


async def bring_about(client: Noroshi, clock: Clock, caught: frozenset[str]) -> list[Told]:
    """Those that were there before are left as they are. Nothing is sent on a channel that is not caught: the people
    are made up, their addresses may be somebody's."""
    told: list[Told] = []
    for fate in FATES:
        found = await _find(client, fate)
        if found is None and all(caught.issuperset(request["channels"]) for request in fate.requests):
            await _make(client, fate, clock)
            found = await _find(client, fate)
        if found is not None:
            told.append(Told(fate.title, found.batch_id))
    return told


async def _find(client: Noroshi, fate: Fate) -> Notification | None:
    history = await client.history(fate.user_id, limit=_LOOKED_THROUGH)
    return next((one for one in history.items if fate.is_it(one)), None)


async def _make(client: Noroshi, fate: Fate, clock: Clock) -> None:
    if fate.wishes is not None:
        await client.put_preferences(fate.user_id, fate.wishes(moment_of(clock.now())))
    if fate.fault is None:
        await _tell(client, fate, clock)
        return
    await client.misbehave(fate.fault[0], channel=fate.fault[1], count=1)
    try:
        await _tell(client, fate, clock)
    finally:
        await client.behave()


async def _tell(client: Noroshi, fate: Fate, clock: Clock) -> None:
    for request in fate.requests:
        accepted = await client.send(fate.user_id, **request)
        async for _ in client.follow(accepted.batch_id, _PATIENCE, clock):
            pass
