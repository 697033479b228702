"""People: users, their endpoints and their preferences (N3)."""

from typing import Any

from msgspec import Struct, field

from noroshi.domain.ids import EndpointId
from noroshi.domain.instants import Instant

DEFAULT_LOCALE = "ja"
DEFAULT_ZONE = "Asia/Tokyo"


class QuietHours(Struct, frozen=True):
    """[start, end) as HH:MM in `timezone`, else the user's zone, else Asia/Tokyo; start = end means none."""

    enabled: bool = False
    start: str = "23:00"
    end: str = "07:00"
    timezone: str | None = None


class FrequencyLimit(Struct, frozen=True):
    """A person's own limit on one channel; it replaces the default."""

    per_hour: int
    per_day: int


class Preferences(Struct, frozen=True):
    """A person's wishes. What is not named has its default (channels on; categories as registered)."""

    channels: dict[str, bool] = field(default_factory=dict)
    categories: dict[str, bool] = field(default_factory=dict)
    quiet_hours: QuietHours = QuietHours()
    category_channels: dict[str, dict[str, bool]] = field(default_factory=dict)
    frequency_limit: dict[str, FrequencyLimit] = field(default_factory=dict)


class User(Struct, frozen=True):
    """A person as the API shows them. `is_zone_confirmed` is false for a zone that was inferred."""

    user_id: str
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    is_zone_confirmed: bool = True
    created_at: Instant = Instant(0)
    updated_at: Instant = Instant(0)
    line_user_id: str | None = None


class UserSummary(Struct, frozen=True):
    """A person in a list, without addresses: `reachable_by` names the kinds of active endpoints (`Needs` values)."""

    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    reachable_by: tuple[str, ...]
    created_at: Instant
    updated_at: Instant


class EndpointFact(Struct, frozen=True):
    """What addressing needs to know of an endpoint: not its address. `kind` is a `Needs` value."""

    endpoint_id: EndpointId
    kind: str
    is_active: bool
    is_suppressed: bool


class Device(Struct, frozen=True):
    """One installation of an app (N1.14)."""

    token_id: int
    user_id: str
    platform: str
    device_token: str
    app_version: str | None
    is_active: bool
    created_at: Instant
    last_used_at: Instant
