"""Ids: a batch's UUIDv7 and the notification ids that are counted off inside it.

A batch id is a UUIDv7 whose last 24 bits are zero; notification number n of that batch is the same
UUID with those bits set to n (1 ...). Deciding a slice again therefore gives the same ids, a batch's
notifications lie side by side in the store, and the batch of a notification needs no column.
"""

from typing import NewType
from uuid import UUID

TenantId = NewType("TenantId", int)
BatchId = NewType("BatchId", bytes)
NotificationId = NewType("NotificationId", bytes)
RequestId = NewType("RequestId", bytes)
EndpointId = NewType("EndpointId", int)

DEFAULT_TENANT = TenantId(1)

CHANNELS_PER_BATCH = 16
"""How many channels one request may name: the low four bits of a notification's number."""

_ORDINAL_BITS = 24
_ORDINAL_MASK = (1 << _ORDINAL_BITS) - 1
_RANDOM_BITS = 50


def new_batch_id(unix_ms: int, random_bits: int) -> BatchId:
    """A UUIDv7 for `unix_ms`; of `random_bits` the low 50 are used."""
    random_bits &= (1 << _RANDOM_BITS) - 1
    rand_a = random_bits >> 38
    rand_b = random_bits & ((1 << 38) - 1)
    high = (unix_ms << 16) | 0x7000 | rand_a
    low = (0b10 << 62) | (rand_b << _ORDINAL_BITS)
    return BatchId(((high << 64) | low).to_bytes(16, "big"))


def new_request_id(unix_ms: int, random_bits: int) -> RequestId:
    """A UUIDv7 for `unix_ms`; of `random_bits` the low 74 are used."""
    rand_a, rand_b = random_bits >> 62 & 0xFFF, random_bits & ((1 << 62) - 1)
    return RequestId(((((unix_ms << 16) | 0x7000 | rand_a) << 64) | (0b10 << 62) | rand_b).to_bytes(16, "big"))


def batch_id_for(request_id: RequestId, unix_ms: int) -> BatchId:
    """The id of the batch that an enqueued request becomes at `unix_ms`: as random as the request's own."""
    return new_batch_id(unix_ms, int.from_bytes(request_id[8:], "big"))


def notification_id(batch_id: BatchId, position: int, channel_number: int) -> NotificationId:
    """The id of the notification to recipient `position` on the batch's channel `channel_number`."""
    ordinal = position * CHANNELS_PER_BATCH + channel_number + 1
    return NotificationId(batch_id[:13] + ordinal.to_bytes(3, "big"))


def place_in_batch(of: NotificationId) -> tuple[int, int]:
    """(recipient position, channel number): what `notification_id` was given."""
    return divmod(int.from_bytes(of[13:], "big") - 1, CHANNELS_PER_BATCH)


def batch_of(of: NotificationId) -> BatchId:
    """The batch that a notification was counted off in."""
    return BatchId(of[:13] + b"\x00\x00\x00")


def last_id_of(batch_id: BatchId) -> NotificationId:
    """The highest notification id the batch can hold: the end of its range in the store."""
    return NotificationId(batch_id[:13] + b"\xff\xff\xff")


def show(raw: bytes) -> str:
    """An id as people see it: as a UUID is written, without the cost of making one."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def read(text: str) -> bytes | None:
    """The 16 bytes of a shown id, or None if the text is no UUID in its usual form."""
    if len(text) != 36:
        return None
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed.bytes if str(parsed) == text.lower() else None
