"""Preferences over the API (N3.1, N3.2) and what is left of a person's limits (N8.3)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct, field

from noroshi.domain.addressing import Usage
from noroshi.domain.categories import Categories
from noroshi.domain.channels import CHANNELS, Limit
from noroshi.domain.instants import Instant, iso, plus
from noroshi.domain.people import FrequencyLimit, Preferences, QuietHours, User
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import NameText
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.users import ZoneText, checked_zone
from noroshi.entrypoints.api.wire import LocaleText, Moment, known_channel

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_UNUSED = Usage(0, 0, Instant(0), Instant(0))
_KEYS_ARE_CHANNELS = {"propertyNames": {"enum": list(CHANNELS)}}

TimeText = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", description="HH:MM.")]
LimitNumber = Annotated[int, Meta(ge=1, le=1_000_000)]
ChannelSwitches = Annotated[dict[str, bool], Meta(extra_json_schema=_KEYS_ARE_CHANNELS)]
CategorySwitches = Annotated[dict[NameText, bool], Meta(max_length=500)]
CategoryChannels = Annotated[dict[NameText, ChannelSwitches], Meta(max_length=500)]


class QuietHoursBody(Struct, frozen=True, forbid_unknown_fields=True):
    """[start, end) in `timezone`, else the person's own, else Asia/Tokyo; start = end means none."""

    enabled: bool = False
    start: TimeText = "23:00"
    end: TimeText = "07:00"
    timezone: ZoneText | None = None


class LimitBody(Struct, frozen=True, forbid_unknown_fields=True):
    per_hour: LimitNumber
    per_day: LimitNumber


Limits = Annotated[dict[str, LimitBody], Meta(extra_json_schema=_KEYS_ARE_CHANNELS)]


class PreferencesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the wishes; what is left out takes its default (locale and timezone stay as they are)."""

    channels: ChannelSwitches = field(default_factory=dict)
    categories: CategorySwitches = field(default_factory=dict)
    quiet_hours: QuietHoursBody = QuietHoursBody()
    category_channels: CategoryChannels = field(default_factory=dict)
    frequency_limit: Limits = field(default_factory=dict)
    locale: LocaleText | None = None
    timezone: ZoneText | None = None


class PreferencesAnswer(Struct, frozen=True):
    """What holds: every channel and category there is, whether the person named it or not. A category whose parent
    is off is off."""

    channels: dict[str, bool]
    categories: dict[str, bool]
    quiet_hours: QuietHoursBody
    category_channels: dict[str, dict[str, bool]]
    frequency_limit: dict[str, LimitBody]
    locale: str | None
    timezone: str | None


class WindowAnswer(Struct, frozen=True):
    """`reset` is when the oldest counted notification leaves the window; null while there is none."""

    limit: int
    remaining: int
    reset: Moment | None


class ChannelWindows(Struct, frozen=True):
    hour: WindowAnswer
    day: WindowAnswer


class RateLimitsAnswer(Struct, frozen=True):
    """For priority normal, per channel: high has five times as many, low half, critical is not limited."""

    user_id: str
    channels: dict[str, ChannelWindows]


async def show_preferences(desk: Desk, call: Call[NoQuery, None]) -> PreferencesAnswer:
    found = await desk.people.get_preferences(call.tenant, call.user_id)
    if found is None:
        raise missing("user")
    return _show(*found, desk.categories)


async def put_preferences(desk: Desk, call: Call[NoQuery, PreferencesBody]) -> PreferencesAnswer:
    body = call.body
    _check(body, desk.categories)
    quiet = body.quiet_hours
    wishes = Preferences(
        channels=body.channels,
        categories=body.categories,
        quiet_hours=QuietHours(quiet.enabled, quiet.start, quiet.end, quiet.timezone),
        category_channels=body.category_channels,
        frequency_limit={
            channel: FrequencyLimit(limit.per_hour, limit.per_day) for channel, limit in body.frequency_limit.items()
        },
    )
    if not await desk.people.put_preferences(call.tenant, call.user_id, wishes, body.locale, body.timezone):
        raise missing("user")
    return await show_preferences(desk, Call(call.caller, call.path, call.query, None))


async def show_rate_limits(desk: Desk, call: Call[NoQuery, None]) -> RateLimitsAnswer:
    found = await desk.people.get_preferences(call.tenant, call.user_id)
    usage = await desk.people.usage(call.tenant, call.user_id)
    if found is None or usage is None:
        raise missing("user")
    own = found[1].frequency_limit
    return RateLimitsAnswer(
        user_id=call.user_id,
        channels={
            name: _windows(own.get(name, kind.limit), usage.get(name, _UNUSED)) for name, kind in CHANNELS.items()
        },
    )


def _check(body: PreferencesBody, categories: Categories) -> None:
    _check_channels(body.channels, "channels")
    _check_channels(body.frequency_limit, "frequency_limit")
    for category, switches in body.category_channels.items():
        _check_channels(switches, f"category_channels.{category}")
        if all(switches.get(channel) is False for channel in CHANNELS):
            _refuse_if_required(category, categories, f"category_channels.{category}")
    for category, is_on in body.categories.items():
        if not is_on:
            _refuse_if_required(category, categories, f"categories.{category}")
    if body.timezone is not None:
        checked_zone(body.timezone, "timezone")
    if body.quiet_hours.timezone is not None:
        checked_zone(body.quiet_hours.timezone, "quiet_hours.timezone")


def _check_channels(by_channel: Mapping[str, object], path: str) -> None:
    for name in by_channel:
        known_channel(name, f"{path}.{name}")


def _refuse_if_required(name: str, categories: Categories, path: str) -> None:
    if any(category.is_required for category in categories.lineage(name)):
        raise ProblemError("required_category", "People must get this category.", field=path)


def _show(user: User, wishes: Preferences, categories: Categories) -> PreferencesAnswer:
    quiet = wishes.quiet_hours
    names = [*categories.names(), *(name for name in wishes.categories if name not in categories.names())]
    return PreferencesAnswer(
        channels={name: wishes.channels.get(name, True) for name in CHANNELS},
        categories={name: categories.is_on(name, wishes.categories) for name in names},
        quiet_hours=QuietHoursBody(quiet.enabled, quiet.start, quiet.end, quiet.timezone),
        category_channels=wishes.category_channels,
        frequency_limit={
            name: LimitBody(limit.per_hour, limit.per_day) for name, limit in wishes.frequency_limit.items()
        },
        locale=user.locale,
        timezone=user.timezone,
    )


def _windows(limit: FrequencyLimit | Limit, used: Usage) -> ChannelWindows:
    return ChannelWindows(
        hour=_window(limit.per_hour, used.hour, used.oldest_in_hour, _HOUR),
        day=_window(limit.per_day, used.day, used.oldest_in_day, _DAY),
    )


def _window(limit: int, used: int, oldest: Instant, span: timedelta) -> WindowAnswer:
    return WindowAnswer(limit, max(limit - used, 0), iso(plus(oldest, span)) if used else None)
