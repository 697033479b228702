"""The cast: the same few people in every test, so that a name tells what is special about them."""

from typing import Any

from msgspec import Struct, field

from noroshi.domain.people import User


class Person(Struct, frozen=True):
    """Someone to tell things to. `devices` are push tokens, `browsers` those of web push."""

    user_id: str
    name: str
    email: str | None = None
    phone: str | None = None
    locale: str | None = None
    timezone: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    browsers: tuple[str, ...] = ()

    @property
    def user(self) -> User:
        """As the store keeps her."""
        return User(
            user_id=self.user_id,
            name=self.name,
            email=self.email,
            phone=self.phone,
            locale=self.locale,
            timezone=self.timezone,
            attributes=self.attributes,
        )

    @property
    def body(self) -> dict[str, Any]:
        """As a caller registers her."""
        known = {"email": self.email, "phone": self.phone, "locale": self.locale, "timezone": self.timezone}
        return {"name": self.name, "attributes": self.attributes} | {k: v for k, v in known.items() if v is not None}


HANAKO = Person(
    "hanako",
    "Hanako",
    email="hanako@example.com",
    phone="+819012345678",
    locale="ja",
    timezone="Asia/Tokyo",
    attributes={"plan": "gold"},
    devices=("token-of-hanakos-phone",),
)
"""Can be reached on every channel."""

TARO = Person("taro", "Taro", email="taro@example.com", locale="ja-JP", timezone="Asia/Tokyo")
"""Has an address and nothing else; his locale names a region."""

JIRO = Person("jiro", "Jiro", devices=("token-of-jiros-phone", "token-of-jiros-tablet", "token-of-jiros-watch"))
"""Has three devices and no address."""

SAKURA = Person("sakura", "Sakura")
"""Is registered and cannot be reached, except by her user id."""

ALICE = Person(
    "alice", "Alice", email="alice@example.org", phone="+442071838750", locale="en-GB", timezone="Europe/London"
)
"""Lives where the clocks change."""

PIERRE = Person("pierre", "Pierre", email="pierre@example.fr", locale="fr", timezone="Europe/Paris")
"""Speaks a language that few templates have."""

MALLORY = Person("mallory", "Mallory", email="mallory@example.net", devices=("token-of-mallorys-phone",))
"""Belongs to another tenant."""

STRANGER = "nobody-knows-me"
"""An id that was never registered."""


def crowd(count: int) -> list[Person]:
    """People about whom nothing is special but that there are many: each has an e-mail address."""
    return [Person(f"guest-{n:04}", f"Guest {n}", email=f"guest-{n}@example.com") for n in range(count)]
