"""The cast: eight people who differ in language, zone, reach and wishes."""

from typing import Any

from msgspec import Struct, field


class Person(Struct, frozen=True):
    """`devices` are (platform, token); `wishes` are preferences as the API takes them."""

    user_id: str
    name: str
    email: str | None = None
    phone: str | None = None
    locale: str | None = None
    timezone: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    devices: tuple[tuple[str, str], ...] = ()
    wishes: dict[str, Any] = field(default_factory=dict)


_ROOM_TO_PLAY = {channel: {"per_hour": 1000, "per_day": 10_000} for channel in ("email", "sms", "push", "in_app")}

CAST: tuple[Person, ...] = (
    Person(
        "hanako",
        "花子",
        email="hanako@example.com",
        phone="+819012345678",
        locale="ja",
        timezone="Asia/Tokyo",
        attributes={"plan": "gold"},
        devices=(("ios", "hanakos-phone"),),
        wishes={"categories": {"marketing": True}, "frequency_limit": _ROOM_TO_PLAY},
    ),
    Person(
        "alice",
        "Alice",
        email="alice@example.org",
        phone="+442071838750",
        locale="en-GB",
        timezone="Europe/London",
        attributes={"plan": "silver"},
    ),
    Person(
        "pierre",
        "Pierre",
        email="pierre@example.fr",
        phone="+33123456789",
        locale="fr",
        timezone="Europe/Paris",
        wishes={"categories": {"marketing": False}},
    ),
    Person(
        "kenji",
        "健二",
        email="kenji@example.jp",
        locale="ja-JP",
        timezone="Asia/Tokyo",
        devices=(("android", "kenjis-old-phone"),),
    ),
    Person(
        "yuki",
        "雪",
        email="yuki@example.jp",
        locale="ja",
        timezone="Asia/Tokyo",
        devices=(("ios", "yukis-phone"),),
        wishes={"frequency_limit": {"push": {"per_hour": 1, "per_day": 5}}},
    ),
    Person(
        "maria",
        "María",
        email="maria@example.mx",
        phone="+525512345678",
        locale="es",
        timezone="America/Mexico_City",
        devices=(("android", "marias-phone"), ("web", "marias-browser")),
    ),
    Person(
        "priya",
        "Priya",
        email="priya@example.in",
        phone="+911123456789",
        locale="en-IN",
        timezone="Asia/Kolkata",
        wishes={"channels": {"sms": False}},
    ),
    Person("sakura", "さくら", locale="ja", timezone="Asia/Tokyo"),
)
"""Hanako can be reached everywhere and has room to play; of Sakura nothing is known but her name."""
