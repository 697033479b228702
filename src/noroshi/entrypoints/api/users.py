"""Users and their devices over the API: contact points, checked, in; the person as kept out."""

from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

import msgspec
from msgspec import Meta, Struct, field

from noroshi.domain.instants import iso
from noroshi.domain.people import Device, User, UserSummary
from noroshi.domain.problems import ProblemError
from noroshi.domain.requests import UserIdText
from noroshi.entrypoints.api.calls import Call, NoQuery, missing
from noroshi.entrypoints.api.desk import Desk
from noroshi.entrypoints.api.paging import Page, PageQuery, RowNumber, page_of, place_in
from noroshi.entrypoints.api.wire import LocaleText, Moment

ATTRIBUTES_AT_MOST = 16_384

EmailText = Annotated[str, Meta(min_length=3, max_length=254, extra_json_schema={"format": "email"})]
PhoneText = Annotated[str, Meta(pattern=r"^\+[1-9][0-9]{6,14}$", description="E.164, such as +819012345678.")]
LineText = Annotated[
    str, Meta(pattern=r"^U[0-9a-f]{32}$", description="The id under which LINE knows the person; no display name.")
]
ZoneText = Annotated[str, Meta(min_length=1, max_length=64, description="IANA name, such as Asia/Tokyo.")]
PersonName = Annotated[str, Meta(min_length=1, max_length=256)]
TokenText = Annotated[str, Meta(min_length=1, max_length=4096)]
VersionText = Annotated[str, Meta(min_length=1, max_length=64)]


class UserBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the person; what is left out is empty afterwards. Preferences stay."""

    email: EmailText | None = None
    phone: PhoneText | None = None
    line_user_id: LineText | None = None
    name: PersonName | None = None
    locale: LocaleText | None = None
    timezone: ZoneText | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


class UserAnswer(Struct, frozen=True):
    user_id: str
    email: str | None
    phone: str | None
    line_user_id: str | None
    name: str | None
    locale: str | None
    timezone: str | None
    timezone_confirmed: bool
    attributes: dict[str, Any]
    created_at: Moment
    updated_at: Moment


class UserQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    prefix: UserIdText | None = None


class UserItem(Struct, frozen=True):
    """A person without addresses; `reachable_by` names what they can be reached by."""

    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    reachable_by: list[str]
    created_at: Moment
    updated_at: Moment


class DeviceBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Sent by the app at every launch: the same token again refreshes the device."""

    platform: Literal["ios", "android", "web"]
    device_token: TokenText
    app_version: VersionText | None = None


class DeviceAnswer(Struct, frozen=True):
    token_id: int
    user_id: str
    platform: str
    device_token: str
    app_version: str | None
    is_active: bool
    created_at: Moment
    last_used_at: Moment


async def put_user(desk: Desk, call: Call[NoQuery, UserBody]) -> UserAnswer:
    body = call.body
    if len(msgspec.json.encode(body.attributes)) > ATTRIBUTES_AT_MOST:
        raise ProblemError("bad_field", f"Over {ATTRIBUTES_AT_MOST:,} bytes of JSON.", field="attributes")
    user = User(
        user_id=call.user_id,
        email=None if body.email is None else _checked_email(body.email),
        phone=None if body.phone is None else _checked_phone(body.phone),
        line_user_id=body.line_user_id,
        name=body.name,
        locale=body.locale,
        timezone=None if body.timezone is None else checked_zone(body.timezone, "timezone"),
        attributes=body.attributes,
    )
    return _show_user(await desk.people.put_user(call.tenant, user))


async def show_user(desk: Desk, call: Call[NoQuery, None]) -> UserAnswer:
    user = await desk.people.get_user(call.tenant, call.user_id)
    if user is None:
        raise missing("user")
    return _show_user(user)


async def list_users(desk: Desk, call: Call[UserQuery, None]) -> Page[UserItem]:
    query = call.query
    after = place_in(query.cursor, UserIdText)
    users = await desk.people.list_users(call.tenant, query.prefix or "", after, query.limit + 1)
    return page_of(users, query, lambda user: user.user_id, _show_item)


async def remove_user(desk: Desk, call: Call[NoQuery, None]) -> None:
    if not await desk.people.remove_user(call.tenant, call.user_id):
        raise missing("user")


async def register_device(desk: Desk, call: Call[NoQuery, DeviceBody]) -> DeviceAnswer:
    body = call.body
    device = await desk.devices.register(call.tenant, call.user_id, body.platform, body.device_token, body.app_version)
    if device is None:
        raise missing("user")
    return _show_device(device)


async def list_devices(desk: Desk, call: Call[PageQuery, None]) -> Page[DeviceAnswer]:
    after = place_in(call.query.cursor, RowNumber)
    devices = await desk.devices.list_devices(call.tenant, call.user_id)
    if devices is None:
        raise missing("user")
    rest = [d for d in sorted(devices, key=lambda d: d.token_id) if after is None or d.token_id > after]
    return page_of(rest, call.query, lambda device: device.token_id, _show_device)


async def remove_device(desk: Desk, call: Call[NoQuery, None]) -> None:
    if not await desk.devices.remove_device(call.tenant, call.user_id, call.number("token_id", "device")):
        raise missing("device")


def checked_zone(name: str, field: str) -> str:
    if name not in _zones():
        raise ProblemError("bad_field", "Expected an IANA time zone name, such as Asia/Tokyo.", field=field)
    return name


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _checked_email(text: str) -> str:
    checks = _late("email_validator")
    try:
        normalized: str = checks.validate_email(text, check_deliverability=False, test_environment=True).normalized
    except checks.EmailNotValidError:
        # The library's message repeats parts of the address.
        raise ProblemError("bad_field", "Not an e-mail address.", field="email") from None
    return normalized


def _checked_phone(text: str) -> str:
    phonenumbers = _late("phonenumbers")
    try:
        is_possible = phonenumbers.is_possible_number(phonenumbers.parse(text, None))
    except phonenumbers.NumberParseException:
        is_possible = False
    if not is_possible:
        raise ProblemError("bad_field", "Not a phone number in E.164 form, such as +819012345678.", field="phone")
    return text


@cache
def _late(library: str) -> Any:
    """Loaded by the first address to be checked: the two take a tenth of a server's start."""
    return import_module(library)


def _show_user(user: User) -> UserAnswer:
    return UserAnswer(
        user_id=user.user_id,
        email=user.email,
        phone=user.phone,
        line_user_id=user.line_user_id,
        name=user.name,
        locale=user.locale,
        timezone=user.timezone,
        timezone_confirmed=user.is_zone_confirmed,
        attributes=user.attributes,
        created_at=iso(user.created_at),
        updated_at=iso(user.updated_at),
    )


def _show_item(user: UserSummary) -> UserItem:
    return UserItem(
        user_id=user.user_id,
        name=user.name,
        locale=user.locale,
        timezone=user.timezone,
        reachable_by=list(user.reachable_by),
        created_at=iso(user.created_at),
        updated_at=iso(user.updated_at),
    )


def _show_device(device: Device) -> DeviceAnswer:
    return DeviceAnswer(
        token_id=device.token_id,
        user_id=device.user_id,
        platform=device.platform,
        device_token=device.device_token,
        app_version=device.app_version,
        is_active=device.is_active,
        created_at=iso(device.created_at),
        last_used_at=iso(device.last_used_at),
    )
