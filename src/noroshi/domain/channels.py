"""What is fixed about each channel: what it needs to reach a person, its retries (N6.1), its limits (N8.1)."""

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct


class Needs(StrEnum):
    """The kind of endpoint a channel reaches a person by; USER means the user id itself is the address."""

    EMAIL = "email"
    PHONE = "phone"
    DEVICE = "device"
    LINE = "line"
    USER = "user"


NO_ENDPOINT: dict[Needs, str] = {
    Needs.EMAIL: "no_email",
    Needs.PHONE: "no_phone",
    Needs.DEVICE: "no_device",
    Needs.LINE: "no_device",
    Needs.USER: "no_device",
}


class RetryPolicy(Struct, frozen=True):
    """n retries are n + 1 sends; delay = min(base x factor^attempt, longest) x (0.5 ... 1.5)."""

    retries: int
    base: timedelta
    longest: timedelta
    factor: int


class Limit(Struct, frozen=True):
    """How many a person gets in any hour and any day."""

    per_hour: int
    per_day: int


class ChannelKind(Struct, frozen=True):
    name: str
    needs: Needs
    retry: RetryPolicy
    limit: Limit


def _retry(retries: int, base: int, longest: int, factor: int) -> RetryPolicy:
    return RetryPolicy(retries, timedelta(seconds=base), timedelta(seconds=longest), factor)


_OTHER_RETRY = _retry(3, 1, 60, 2)
_OTHER_LIMIT = Limit(10, 50)

CHANNELS: dict[str, ChannelKind] = {
    kind.name: kind
    for kind in (
        ChannelKind("push", Needs.DEVICE, _retry(3, 1, 60, 2), Limit(10, 50)),
        ChannelKind("email", Needs.EMAIL, _retry(5, 5, 300, 3), Limit(3, 10)),
        ChannelKind("sms", Needs.PHONE, _retry(2, 10, 60, 2), Limit(2, 5)),
        ChannelKind("in_app", Needs.USER, _retry(3, 1, 30, 2), Limit(20, 100)),
        ChannelKind("web_push", Needs.DEVICE, _retry(3, 2, 120, 2), Limit(8, 40)),
        ChannelKind("voice", Needs.PHONE, _OTHER_RETRY, _OTHER_LIMIT),
        ChannelKind("line", Needs.LINE, _OTHER_RETRY, _OTHER_LIMIT),
    )
}


def endpoint_kind(channel: str) -> str | None:
    """What an endpoint of this channel is called in the store; None where the user id itself is the address."""
    needs = CHANNELS[channel].needs
    if needs is Needs.USER:
        return None
    return channel if needs is Needs.DEVICE else needs.value
