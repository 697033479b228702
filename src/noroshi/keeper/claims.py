"""Taken deliveries in, a packed form in which what many share stands once, and back."""

from datetime import timedelta
from typing import Any

import msgspec

from noroshi.domain.accounts import BreakerState
from noroshi.domain.attachments import Attachment
from noroshi.domain.deliveries import Claim, DeliveryKey, Recipient, Taken
from noroshi.domain.instants import Instant
from noroshi.domain.lanes import Lane
from noroshi.domain.templates import TemplateVersion


class PackedClaim(msgspec.Struct, array_like=True):
    """`data` and `template` are places in what all share."""

    key: DeliveryKey
    fence: int
    claims: int
    tries: int
    category: str
    wanted_at: Instant
    expires_at: Instant | None
    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    attributes: dict[str, Any]
    address: str
    data: int
    template: int
    is_cancelled: bool


class PackedTaken(msgspec.Struct, array_like=True):
    """All claims of one take are of one lane and end together. `attachments` are by the place of their batch's data."""

    claims: list[PackedClaim]
    data: list[dict[str, Any]]
    attachments: dict[int, tuple[Attachment, ...]]
    templates: list[TemplateVersion]
    lane: Lane | None
    lease_until: Instant
    next_due_at: Instant | None
    has_more: bool
    wait: timedelta
    breaker: BreakerState | None


class _Shared:
    """Things by their identity, each once."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._places: dict[int, int] = {}

    def place(self, thing: Any) -> int:
        place = self._places.setdefault(id(thing), len(self.things))
        if place == len(self.things):
            self.things.append(thing)
        return place


def pack_taken(taken: Taken) -> PackedTaken:
    data, templates = _Shared(), _Shared()
    packed = [
        PackedClaim(
            c.key,
            c.fence,
            c.claims,
            c.tries,
            c.category,
            c.wanted_at,
            c.expires_at,
            c.recipient.user_id,
            c.recipient.name,
            c.recipient.locale,
            c.recipient.timezone,
            c.recipient.attributes,
            c.address,
            data.place(c.data),
            templates.place(c.template),
            c.is_cancelled,
        )
        for c in taken.claims
    ]
    first = taken.claims[0] if taken.claims else None
    lane, until = (None, Instant(0)) if first is None else (first.lane, first.lease_until)
    rest = (taken.next_due_at, taken.has_more, taken.wait, taken.breaker)
    attachments = {data.place(c.data): c.attachments for c in taken.claims if c.attachments}
    return PackedTaken(packed, data.things, attachments, templates.things, lane, until, *rest)


def opened(packed: PackedTaken) -> Taken:
    lane, until = packed.lane, packed.lease_until
    rest = (packed.next_due_at, packed.has_more, packed.wait, packed.breaker)
    if lane is None:
        return Taken([], *rest)
    claims = [
        Claim(
            c.key,
            lane,
            c.fence,
            c.claims,
            c.tries,
            c.category,
            c.wanted_at,
            c.expires_at,
            until,
            Recipient(c.user_id, c.name, c.locale, c.timezone, c.attributes),
            c.address,
            packed.data[c.data],
            packed.templates[c.template],
            c.is_cancelled,
            packed.attachments.get(c.data, ()),
        )
        for c in packed.claims
    ]
    return Taken(claims, *rest)
